"""Types of options, and options that several commands share.

A type is a function that parses a word, or raises argparse's error with a hint.
"""

from __future__ import annotations

import argparse
import os
import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from webhook.cli.inputs import input_name
from webhook.config import FACTS_COMMAND
from webhook.config.names import LABEL_FORM, is_dns_label, is_dns_subdomain
from webhook.kube.access import Overrides, kubeconfig_or_pod
from webhook.model.names import MAX_SUBDOMAIN_LENGTH

#: The maximum of options in seconds: an hour; the Deployment's terminationGracePeriodSeconds is
#: 150.
_MAX_SECONDS = 3600
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_MAX_TIMEOUT_DIGITS = 6
_DURATION = re.compile(r"(\d{1,6})([smhd])", re.ASCII)


def duration(given: str) -> timedelta:
    """Parse a duration; raises argparse's error if it is malformed."""
    match = _DURATION.fullmatch(given)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{given!r:.80} is not a duration such as 90s, 2m, 24h or 365d"
        )
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def label_pair(given: str) -> tuple[str, str]:
    """Parse KEY=VALUE."""
    key, equals, value = given.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{given!r:.80} is not KEY=VALUE")
    return key, value


def object_name(given: str) -> str:
    """Parse the name of a Kubernetes object."""
    if not is_dns_subdomain(given):
        raise argparse.ArgumentTypeError(
            f"{given!r:.80} is not a valid object name; write at most {MAX_SUBDOMAIN_LENGTH} "
            "lowercase letters, digits, . and -"
        )
    return given


def namespace_name(given: str) -> str:
    """Parse the name of a namespace."""
    if not is_dns_label(given):
        raise argparse.ArgumentTypeError(
            f"{given!r:.80} is not a valid namespace name; write {LABEL_FORM}"
        )
    return given


def port_number(given: str) -> int:
    """Parse a TCP port; 0 means any free port."""
    number = int(given) if given.isascii() and given.isdigit() else -1
    if not 0 <= number < 1 << 16:
        raise argparse.ArgumentTypeError(
            f"{given!r:.80} is not a port from 0 to 65535 (0: any free port)"
        )
    return number


def decision_count(given: str) -> int:
    """Parse the number of decisions to keep."""
    number = int(given) if given.isascii() and given.isdigit() and len(given) < _DIGITS else -1
    if not 0 <= number <= _MAX_KEPT_DECISIONS:
        raise argparse.ArgumentTypeError(
            f"{given!r:.80} is not a number from 0 (off) to {_MAX_KEPT_DECISIONS}"
        )
    return number


#: More would not fit into the 2 MB of all kept decisions.
_MAX_KEPT_DECISIONS, _DIGITS = 4096, 6


def seconds_up_to_hour(given: str) -> float:
    """Parse a number of seconds, at most an hour."""
    try:
        number = float(given)
    except ValueError:
        number = -1.0
    if not 0 <= number <= _MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{given!r:.80} is not a number from 0 to {_MAX_SECONDS}")
    return number


def request_timeout(given: str) -> float:
    """Parse a timeout as kubectl does: 30, 30s, 2m, 1h; 0 means the default."""
    if given.isascii() and given.isdigit() and len(given) <= _MAX_TIMEOUT_DIGITS:
        return float(given)
    return duration(given).total_seconds()


def duration_text(span: timedelta) -> str:
    """Format a duration so that `duration` can parse it, in the largest unit that divides it."""
    seconds_in = {"d": 86400, "h": 3600, "m": 60, "s": 1}
    total = int(span.total_seconds())
    unit = next(unit for unit, seconds in seconds_in.items() if total % seconds == 0)
    return f"{total // seconds_in[unit]}{unit}"


# The options for the cluster that a command reads, and for the user: those of kubectl.

if TYPE_CHECKING:
    from webhook.kube.client import Client

_TLS_NAME_HELP = "name to expect in the API server's certificate (default: the host of its URL)"
_TITLE = "cluster options (as in kubectl)"
#: Options with a value: their names, the field of Overrides, what --help shows.
_VALUE_OPTIONS = (
    (("--context",), "context", "NAME", "kubeconfig context to use (default: the current context)"),
    (("--cluster",), "cluster", "NAME", "kubeconfig cluster to use"),
    (("--user",), "user", "NAME", "kubeconfig user to use"),
    (("-s", "--server"), "server", "URL", "address of the API server"),
    (("--token",), "token", "TOKEN", "bearer token for the API server"),
    (
        ("--certificate-authority",),
        "certificate_authority",
        "FILE",
        "CA certificate of the API server",
    ),
    (("--client-certificate",), "client_certificate", "FILE", "TLS client certificate"),
    (("--client-key",), "client_key", "FILE", "private key of the client certificate"),
    (("--tls-server-name",), "tls_server_name", "NAME", _TLS_NAME_HELP),
    (("--as",), "acting_as", "USER", "user to impersonate"),
    (("--as-uid",), "acting_uid", "UID", "UID to impersonate, with --as"),
)


class ClusterAccess(NamedTuple):
    """The kubeconfig (None: the pod's service account), and the options that override it."""

    kubeconfig: Path | None
    overrides: Overrides


def add_cluster_options(command: argparse.ArgumentParser) -> None:
    """Add the options; `cluster_access` reads them."""
    group = command.add_argument_group(_TITLE)
    add = group.add_argument
    help_ = "kubeconfig to use (default: $KUBECONFIG, ~/.kube/config, or the pod's service account)"
    add("--kubeconfig", type=Path, metavar="FILE", help=help_)
    for names, field, metavar, help_text in _VALUE_OPTIONS:
        add(*names, dest=field, default="", metavar=metavar, help=help_text)
    add(
        "--as-group",
        dest="acting_groups",
        action="append",
        default=[],
        metavar="GROUP",
        help="group to impersonate, with --as; may be repeated",
    )
    add(
        "--insecure-skip-tls-verify",
        dest="insecure",
        action="store_true",
        help="do not verify the API server's certificate",
    )
    add(
        "--request-timeout",
        type=request_timeout,
        default=0.0,
        metavar="TIME",
        help="longest time for a request, such as 5s (default: 10s to 30s, depending on the "
        "request)",
    )


def cluster_access(arguments: argparse.Namespace) -> ClusterAccess:
    """Return the access that the options name; exit if they contradict each other."""
    given = {field: getattr(arguments, field) for field in Overrides._fields}
    overrides = Overrides(**{**given, "acting_groups": tuple(arguments.acting_groups)})
    if (overrides.acting_uid or overrides.acting_groups) and not overrides.acting_as:
        arguments.command.error("--as-uid and --as-group require --as")
    return ClusterAccess(kubeconfig_or_pod(arguments.kubeconfig, os.environ), overrides)


def names_cluster(arguments: argparse.Namespace) -> bool:
    """Return whether an option names a cluster, or a user to connect as."""
    return bool(arguments.kubeconfig) or any(
        getattr(arguments, field) for field in Overrides._fields
    )


def cluster_client(arguments: argparse.Namespace) -> tuple[Client, str]:
    """Return a client, and the namespace of the options, else of the context or of our pod.

    Slow: it imports the Kubernetes client.
    """
    from webhook.kube.client import Client  # noqa: PLC0415
    from webhook.kube.credentials import context_namespace  # noqa: PLC0415

    kubeconfig, overrides = cluster_access(arguments)
    client = Client(kubeconfig, overrides)
    default_namespace = context_namespace(kubeconfig, overrides.context, os.environ)
    return client, arguments.namespace or default_namespace


# Options that several commands share.

CONFIG_VARIABLE = "RDMA_WEBHOOK_CONFIG"
MISSING_FILE = "missing FILE; use - for standard input"
FACTS_HELP = f"facts of a cluster: the output of {FACTS_COMMAND}"


def add_output_format(command: argparse.ArgumentParser) -> None:
    """Add the option for the output format."""
    command.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="output format: text for people, json for programs (default: text)",
    )


def add_files(command: argparse.ArgumentParser, help_text: str) -> None:
    """Add the files, by position and as `-f`; `given_files` returns them."""
    command.add_argument("files", nargs="*", type=input_name, metavar="FILE", help=help_text)
    command.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        type=input_name,
        dest="filenames",
        metavar="FILE",
        help="same as the argument FILE, as in kubectl; may be repeated",
    )


def add_recursive(command: argparse.ArgumentParser) -> None:
    """Add the option for the subdirectories of directories, as in kubectl."""
    help_text = "also read the subdirectories of a directory"
    command.add_argument("-R", "--recursive", action="store_true", help=help_text)


def given_files(arguments: argparse.Namespace) -> list[str]:
    """Return the files of the command line, each once; exit if there are none."""
    given = list(dict.fromkeys([*arguments.files, *arguments.filenames]))
    if not given:
        arguments.command.error(MISSING_FILE)
    return given


def config_name(given: str | None) -> str | None:
    """Return the file named by the option, or else by the environment; None if neither is set."""
    return given or os.environ.get(CONFIG_VARIABLE) or None
