"""The options that say which cluster a command reads, and as whom: those of kubectl."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from webhook.cli.options import request_timeout
from webhook.kube.access import Overrides, kubeconfig_or_pod

if TYPE_CHECKING:
    from webhook.kube.client import Client

_TITLE = "the cluster (as for kubectl)"
#: Options with a value: their names, the field of Overrides, what --help shows.
_WORDS = (
    (("--context",), "context", "NAME", "a context of the kubeconfig (default: the current one)"),
    (("--cluster",), "cluster", "NAME", "a cluster of the kubeconfig"),
    (("--user",), "user", "NAME", "a user of the kubeconfig"),
    (("-s", "--server"), "server", "URL", "the API server"),
    (("--token",), "token", "TOKEN", "a bearer token"),
    (("--certificate-authority",), "certificate_authority", "FILE", "the CA of the API server"),
    (("--client-certificate",), "client_certificate", "FILE", "a client certificate"),
    (("--client-key",), "client_key", "FILE", "its key"),
    (("--tls-server-name",), "tls_server_name", "NAME", "the name in the API server's certificate"),
    (("--as",), "acting_as", "USER", "impersonate a user"),
    (("--as-uid",), "acting_uid", "UID", "and this UID"),
)


class ClusterAccess(NamedTuple):
    """The kubeconfig, None for the service account of the pod we run in, and what changes it."""

    kubeconfig: Path | None
    overrides: Overrides


def add_cluster_options(command: argparse.ArgumentParser) -> None:
    """Add the options; `cluster_access` reads them."""
    group = command.add_argument_group(_TITLE)
    add = group.add_argument
    help_ = "default: $KUBECONFIG, ~/.kube/config, or in a pod its service account"
    add("--kubeconfig", type=Path, metavar="FILE", help=help_)
    for names, field, metavar, told in _WORDS:
        add(*names, dest=field, default="", metavar=metavar, help=told)
    add(
        "--as-group",
        dest="acting_groups",
        action="append",
        default=[],
        metavar="GROUP",
        help="and this group; may be repeated",
    )
    add(
        "--insecure-skip-tls-verify",
        dest="insecure",
        action="store_true",
        help="do not check the API server's certificate",
    )
    add(
        "--request-timeout",
        dest="seconds",
        type=request_timeout,
        default=0.0,
        metavar="TIME",
        help="the longest that a request may take, such as 5s (default: 10s to 30s)",
    )


def cluster_access(arguments: argparse.Namespace) -> ClusterAccess:
    """Return what the options say; the command ends if they contradict each other."""
    given = {field: getattr(arguments, field) for field in Overrides._fields}
    overrides = Overrides(**{**given, "acting_groups": tuple(arguments.acting_groups)})
    if (overrides.acting_uid or overrides.acting_groups) and not overrides.acting_as:
        arguments.command.error("--as-uid and --as-group need --as")
    return ClusterAccess(kubeconfig_or_pod(arguments.kubeconfig, os.environ), overrides)


def names_cluster(arguments: argparse.Namespace) -> bool:
    """Return whether an option names a cluster, or as whom to read it."""
    return bool(arguments.kubeconfig) or any(getattr(arguments, one) for one in Overrides._fields)


def cluster_client(arguments: argparse.Namespace) -> tuple[Client, str]:
    """Return a client, and the namespace of the options, else of the context or of our pod.

    Slow: it imports the Kubernetes client.
    """
    from webhook.kube.client import Client  # noqa: PLC0415
    from webhook.kube.credentials import context_namespace  # noqa: PLC0415

    kubeconfig, overrides = cluster_access(arguments)
    client = Client(kubeconfig, overrides)
    usual = context_namespace(kubeconfig, overrides.context, os.environ)
    return client, arguments.namespace or usual
