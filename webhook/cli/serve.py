"""`rdma-webhook serve`: run the webhook until a signal ends it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from certs.durations import Durations
from webhook.cli.installation_options import add_name_options
from webhook.cli.options import (
    CONFIG_VARIABLE,
    FACTS_HELP,
    config_name,
    decision_count,
    duration,
    duration_text,
    port_number,
    seconds_up_to_hour,
)
from webhook.config import INSTALLED_FABRICS
from webhook.serve.options import DEFAULTS
from webhook.serve.server import ServeOptions, serve
from webhook.text.escape import visible_lines

_EXAMPLES = """examples:
  rdma-webhook serve --dev
  rdma-webhook serve -c fabrics.yaml --tls-cert tls.crt --tls-key tls.key --client-ca ca.crt
  rdma-webhook serve                           in a cluster, with its own certificates

The server reloads the configuration and the certificate when they change. SIGTERM and Ctrl-C stop
it.
"""
_PORTS = (
    ("--port", DEFAULTS.port, "HTTPS port of /mutate, for the API server"),
    ("--preview-port", DEFAULTS.preview_port, "HTTPS port of /preview and the page, for people"),
    ("--health-port", DEFAULTS.health_port, "HTTP port of /healthz, /readyz and /metrics"),
    ("--page-port", DEFAULTS.page_port, "with --dev, HTTP port of the page for browsers"),
)
_TLS_FILES = (
    ("--tls-cert", "certificate with its chain, in PEM"),
    ("--tls-key", "private key of the certificate, in PEM"),
    (
        "--client-ca",
        "CAs of client certificates, in PEM (default: no client certificate is required)",
    ),
)
_OWN_TITLE = "self-managed certificates (in a cluster, without --tls-cert and --dev)"
#: Options for the lifetimes of those certificates. With lifetimes below a minute, tests see in
#: minutes what otherwise takes a year.
_DURATIONS = (
    ("--ca-lifetime", DEFAULTS.durations.ca, None),
    ("--leaf-lifetime", DEFAULTS.durations.leaf, None),
    ("--ca-interval", DEFAULTS.durations.round_interval, None),
    (
        "--ca-propagation",
        DEFAULTS.durations.propagation,
        "time after which every API server is assumed to use a changed caBundle",
    ),
)
_SWITCH = ("on", "off")
_KUBECONFIG_HELP = "kubeconfig to use (default: the pod's service account)"
_LOG_LEVELS = ("debug", "info", "warning", "error")
_WATCH_HELP = "watch the cluster's namespaces, LimitRanges and quotas (default: on)"
_DEV_HELP = (
    "to try the webhook: listen on 127.0.0.1 only, with temporary certificates and, without -c, "
    "example fabrics"
)
#: What `--preview` may be: whether to serve previews, and whether to serve admission.
_PREVIEWS = (*_SWITCH, "only")
_PREVIEW_HELP = "serve /preview; only: serve nothing else, except health (default: on)"
_DECISION_CACHE_HELP = (
    "number of decisions to keep for other pods of the same workloads, 0 for none "
    f"(default: {DEFAULTS.decision_cache})"
)
_DRAIN_HELP = f"seconds to keep serving after SIGTERM (default: {DEFAULTS.drain_seconds:g})"
_CONFIG_HELP = (
    f"fabrics file (default: ${CONFIG_VARIABLE}, else in a cluster the object "
    f"fabricconfigurations.rdma.lab/default, elsewhere {INSTALLED_FABRICS})"
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `serve`, with the defaults of `ServeOptions`."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    add("-c", "--config", metavar="FABRICS", help=_CONFIG_HELP)
    add("--facts", type=Path, metavar="FILE", help=FACTS_HELP)
    add("--watch", choices=_SWITCH, default=_on_or_off(on=DEFAULTS.watch), help=_WATCH_HELP)
    add("--dev", action="store_true", help=_DEV_HELP)
    add(
        "--host",
        default=DEFAULTS.host,
        help="address to listen on (default: all addresses)",
    )
    for flag, port, summary in _PORTS:
        add(
            flag,
            type=port_number,
            default=port,
            metavar="PORT",
            help=f"{summary} (default: {port})",
        )
    for flag, summary in _TLS_FILES:
        add(flag, type=Path, metavar="FILE", help=summary)
    _add_own_certificates(command.add_argument_group(_OWN_TITLE))
    add("--kubeconfig", type=Path, metavar="FILE", help=_KUBECONFIG_HELP)
    add("--preview", choices=_PREVIEWS, default=DEFAULTS.preview, help=_PREVIEW_HELP)
    add(
        "--decision-cache",
        type=decision_count,
        default=DEFAULTS.decision_cache,
        metavar="NUMBER",
        help=_DECISION_CACHE_HELP,
    )
    add(
        "--log-level",
        choices=_LOG_LEVELS,
        default=DEFAULTS.log_level,
        help=f"lowest level to log (default: {DEFAULTS.log_level})",
    )
    add(
        "--drain-seconds",
        type=seconds_up_to_hour,
        default=DEFAULTS.drain_seconds,
        metavar="SECONDS",
        help=_DRAIN_HELP,
    )


def _add_own_certificates(group: argparse._ArgumentGroup) -> None:
    add_name_options(group)
    for flag, default, summary in _DURATIONS:
        help_text = (
            f"{summary} (default: {duration_text(default)})" if summary else argparse.SUPPRESS
        )
        group.add_argument(flag, type=duration, default=default, metavar="DURATION", help=help_text)


def _on_or_off(*, on: bool) -> str:
    return "on" if on else "off"


def run(arguments: argparse.Namespace) -> int:
    """Serve, and return the exit code."""
    config = config_name(arguments.config)
    return serve(
        ServeOptions(
            config=Path(config) if config else None,
            facts=arguments.facts,
            watch=arguments.watch == "on",
            host=arguments.host,
            port=arguments.port,
            preview_port=arguments.preview_port,
            health_port=arguments.health_port,
            page_port=arguments.page_port,
            tls_cert=arguments.tls_cert,
            tls_key=arguments.tls_key,
            client_ca=arguments.client_ca,
            namespace=arguments.namespace,
            service=arguments.service,
            ca_secret=arguments.ca_secret,
            webhook_configuration=arguments.webhook_configuration,
            validating_webhook_configuration=arguments.validating_webhook_configuration,
            durations=Durations(
                ca=arguments.ca_lifetime,
                leaf=arguments.leaf_lifetime,
                propagation=arguments.ca_propagation,
                round_interval=arguments.ca_interval,
            ),
            kubeconfig=arguments.kubeconfig,
            preview=arguments.preview,
            decision_cache=arguments.decision_cache,
            log_level=arguments.log_level,
            drain_seconds=arguments.drain_seconds,
            dev=arguments.dev,
            announce=_announce,
        )
    )


def _announce(message: str) -> None:
    sys.stdout.write(visible_lines(message))
    sys.stdout.flush()
