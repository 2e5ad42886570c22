"""The options of every command, with their help."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import NoReturn

from webhook import __version__
from webhook.cli.certs_parser import add_certs
from webhook.cli.duration import duration
from webhook.cli.form import add_form
from webhook.visible import visible

CONFIG_VARIABLE = "RDMA_WEBHOOK_CONFIG"
OUTPUTS = ("text", "json", "yaml", "patch", "diff")
_USAGE = 2
#: RFC 1123 subdomain, as Kubernetes names objects.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME = 253
_LONGEST_DRAIN = 3600  # seconds; longer than any terminationGracePeriodSeconds


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Leaves the examples as they are, and the options room."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(_USAGE, f"rdma-webhook: error: {visible(message)} (see {self.prog} --help)\n")


_EXAMPLES = """examples:
  rdma-webhook preview train.yaml              what would happen to its pods, and why
  rdma-webhook preview --enable train.yaml     the same, as if they had opted in
  kubectl get deploy -o yaml | rdma-webhook preview -c fabrics.yaml -
  rdma-webhook check-config fabrics.yaml
  rdma-webhook serve --dev                     a webhook on 127.0.0.1, no cluster needed
"""
_PREVIEW_EXAMPLES = """examples:
  rdma-webhook preview -c fabrics.yaml train.yaml
  rdma-webhook preview --enable -o diff train.yaml
  rdma-webhook preview -o yaml train.yaml | kubectl apply -f -
  rdma-webhook preview -o json train.yaml | jq '.decisions[].outcomes[]'
  kubectl get namespaces,limitranges,resourcequotas,nodes -A -o yaml > facts.yaml
  rdma-webhook preview --facts facts.yaml -n lab train.yaml

exit codes: 0 nothing is denied, 1 a pod would be denied, 2 usage or unreadable input
(what else can be read is shown)
"""
_CHECK_EXAMPLES = """examples:
  rdma-webhook check-config fabrics.yaml
  kubectl get cm fabrics -o jsonpath='{.data.fabrics\\.yaml}' | rdma-webhook check-config -

exit codes: 0 valid, 1 invalid (with --strict also where something is odd),
2 usage or a file that cannot be read
"""
_SERVE_EXAMPLES = """examples:
  rdma-webhook serve --dev
  rdma-webhook serve -c fabrics.yaml --tls-cert tls.crt --tls-key tls.key --client-ca ca.crt
  rdma-webhook serve                           in a cluster, with certificates of its own

The fabrics file and the certificate are read again when they change. SIGTERM and Ctrl-C end it.
"""
_PORTS = (
    ("--port", 8443, "HTTPS for the API server: /mutate"),
    ("--preview-port", 8444, "HTTPS for people: /preview"),
    ("--health-port", 8080, "HTTP: /healthz, /readyz, /metrics"),
)
_TLS_FILES = (
    ("--tls-cert", "the certificate, with its chain, in PEM"),
    ("--tls-key", "its private key, in PEM"),
    ("--client-ca", "check client certificates by these CAs, in PEM (default: unchecked)"),
)
_OWN_TITLE = "certificates of its own (in a cluster, without --tls-cert and --dev)"
_OWN_CERTIFICATES = (
    ("--namespace", None, "the namespace of its Service and its Secret (default: the pod's)"),
    ("--service", "rdma-webhook", "the Service that the API server calls"),
    ("--ca-secret", "rdma-webhook-ca", "the Secret of its CA, made if there is none"),
    (
        "--webhook-configuration",
        "zz-rdma-webhook",
        "the MutatingWebhookConfiguration whose caBundle it keeps",
    ),
)
#: Of those certificates: with less than a minute, tests see in minutes what takes a year.
_LIFETIMES = (
    ("--ca-lifetime", "365d", None),
    ("--leaf-lifetime", "24h", None),
    ("--ca-round", "5s", None),
    ("--ca-propagation", "2m", "until every API server is taken to use a changed caBundle"),
)
_KUBECONFIG_HELP = "reach the API server by this file (default: as the pod's service account)"
_LOG_LEVELS = ("debug", "info", "warning", "error")
_FACTS_HELP = "what kubectl get ns,limitrange,quota,node -A -o yaml printed"
_WATCH_HELP = "in a cluster, keep up with namespaces, LimitRanges and quotas (default: on)"
_DEV_HELP = "127.0.0.1 only, with certificates of its own and, without -c, example fabrics"
_DRAIN_HELP = "how long to go on serving after SIGTERM (default: 15)"
_OUTPUT_HELP = """text: for people; json: the documented form; yaml: the patched documents, comments
and order kept; patch: one RFC 6902 patch a line, for each document; diff: a unified diff
(default: text)"""


def parser() -> argparse.ArgumentParser:
    """Make the parser; `module` becomes the command's module in webhook.cli."""
    root = _Parser(
        prog="rdma-webhook",
        description="An admission webhook that makes NCCL, UCX and MPI run over RDMA.",
        epilog=_EXAMPLES,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=f"rdma-webhook {__version__}")
    commands = root.add_subparsers(metavar="COMMAND", required=True)
    _add_serve(_command(commands, "serve", "run the webhook"))
    _add_preview(_command(commands, "preview", "show what would happen to pods, and why"))
    _add_check_config(_command(commands, "check-config", "check a fabrics file"))
    _add_certs(_command(commands, "certs", "show certificates, or exchange the CA"))
    _add_schema(_command(commands, "schema", "print a JSON Schema"))
    return root


def _command(
    commands: argparse._SubParsersAction[_Parser],
    name: str,
    summary: str,
) -> _Parser:
    command = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    command.set_defaults(module=name.replace("-", "_"))
    return command


#: The path is that of webhook.app.options, which costs too much to import for a --help.
_CONFIG_HELP = (
    f"the fabrics file (default: ${CONFIG_VARIABLE}, else /etc/rdma-webhook/fabrics.yaml)"
)


def _add_serve(command: _Parser) -> None:
    command.epilog = _SERVE_EXAMPLES
    add = command.add_argument
    add("-c", "--config", metavar="FABRICS", help=_CONFIG_HELP)
    add("--facts", type=Path, metavar="FILE", help=_FACTS_HELP)
    add("--watch", choices=("on", "off"), default="on", help=_WATCH_HELP)
    add("--dev", action="store_true", help=_DEV_HELP)
    add("--host", default="", help="the address to listen on (default: all of this machine)")
    for flag, port, what in _PORTS:
        add(flag, type=_port, default=port, metavar="PORT", help=f"{what} (default: {port})")
    for flag, what in _TLS_FILES:
        add(flag, type=Path, metavar="FILE", help=what)
    _add_own_certificates(command.add_argument_group(_OWN_TITLE))
    add("--kubeconfig", type=Path, metavar="FILE", help=_KUBECONFIG_HELP)
    add("--preview", choices=("on", "off"), default="on", help="serve the preview (default: on)")
    add(
        "--log-level",
        choices=_LOG_LEVELS,
        default="info",
        help="least level that is logged (default: info)",
    )
    add("--drain-seconds", type=_seconds, default=15.0, metavar="SECONDS", help=_DRAIN_HELP)


def _add_own_certificates(group: argparse._ArgumentGroup) -> None:
    _add_names(group)
    for flag, usual, why in _LIFETIMES:
        told = f"{why} (default: {usual})" if why else argparse.SUPPRESS
        group.add_argument(flag, type=duration, default=usual, metavar="DURATION", help=told)


def _add_certs(command: _Parser) -> None:
    add_certs(command)
    _add_names(command)


def _add_names(options: argparse._ActionsContainer) -> None:
    for flag, name, what in _OWN_CERTIFICATES:
        told = f"{what} (default: {name})" if name else what
        options.add_argument(flag, type=_name, default=name, metavar="NAME", help=told)


def _add_preview(command: _Parser) -> None:
    command.epilog = _PREVIEW_EXAMPLES
    add = command.add_argument
    add("files", nargs="*", metavar="FILE", help="a manifest in YAML or JSON, a directory, or -")
    add(
        "-f",
        "--filename",
        action="append",
        default=[],
        dest="more",
        metavar="FILE",
        help="the same, as for kubectl; may be repeated",
    )
    add(
        "-c",
        "--config",
        metavar="FABRICS",
        help=f"the fabrics file (default: ${CONFIG_VARIABLE}, else an example)",
    )
    add(
        "-n",
        "--namespace",
        default="default",
        help="namespace of objects that name none (default: default)",
    )
    add(
        "--namespace-label",
        action="append",
        default=[],
        type=_label,
        metavar="KEY=VALUE",
        help="a label of their namespaces; may be repeated",
    )
    add(
        "--facts",
        metavar="FILE",
        help=_FACTS_HELP,
    )
    add("--enable", action="store_true", help="decide as if every pod had opted in")
    add("-o", "--output", choices=OUTPUTS, default="text", help=_OUTPUT_HELP)


def _add_check_config(command: _Parser) -> None:
    command.epilog = _CHECK_EXAMPLES
    add = command.add_argument
    add("files", nargs="+", metavar="FILE", help="a fabrics file, or - for standard input")
    add("--strict", action="store_true", help="warnings make the file invalid too")
    add_form(command)


def _add_schema(command: _Parser) -> None:
    command.add_argument(
        "what",
        nargs="?",
        choices=("fabrics", "form"),
        default="fabrics",
        help="fabrics: the fabrics file (default); form: the answer of preview -o json",
    )


def _label(given: str) -> tuple[str, str]:
    key, equals, value = given.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{given!r} is not KEY=VALUE")
    return key, value


def _name(given: str) -> str:
    if len(given) > _LONGEST_NAME or not _NAME.fullmatch(given):
        raise argparse.ArgumentTypeError(f"{given!r:.80} is no name of an object")
    return given


def _port(given: str) -> int:
    port = int(given) if given.isascii() and given.isdigit() else -1
    if not 0 <= port < 1 << 16:
        raise argparse.ArgumentTypeError(f"{given!r} is no port: 0 to 65535, 0 for any free one")
    return port


def _seconds(given: str) -> float:
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LONGEST_DRAIN:
        raise argparse.ArgumentTypeError(f"{given!r} is no number from 0 to {_LONGEST_DRAIN}")
    return seconds
