"""Options that the commands of `verify` share, and the expected rate."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from webhook.cli.options import namespace_name, object_name, request_timeout
from webhook.diagnose.verify.results import PortRate
from webhook.errors import ConfigError
from webhook.model.fabric import CompiledConfiguration, Fabric
from webhook.model.names import shortened_list
from webhook.model.nearest import suggestion

# Options.

_MAX_START_SECONDS = 3600
#: KEY, KEY=VALUE, each with :EFFECT, as kubectl taint writes taints.
_TOLERATION = re.compile(r"([\w./-]{1,317})(?:=([\w.-]{0,63}))?(?::(NoSchedule|NoExecute))?")


def add_pod_options(command: argparse.ArgumentParser) -> None:
    """Add the options for the pods of a run, except for their image."""
    add = command.add_argument
    add(
        "-n",
        "--namespace",
        type=namespace_name,
        help="namespace of the pods (default: the context's; inside a pod, that pod's)",
    )
    add(
        "--image-pull-secret",
        action="append",
        default=[],
        type=object_name,
        dest="pull_secrets",
        metavar="NAME",
        help="Secret for the registry of the image; may be repeated",
    )
    add(
        "--toleration",
        action="append",
        default=[],
        type=toleration,
        dest="tolerations",
        metavar="KEY[=VALUE][:EFFECT]",
        help="taint of nodes to tolerate, besides those of GPUs; may be repeated",
    )
    add(
        "--timeout",
        type=start_timeout,
        default=300.0,
        metavar="TIME",
        help="longest time for a pod to start (default: 5m)",
    )


def add_nodes_option(command: argparse.ArgumentParser) -> None:
    """Add the option for the nodes of a run."""
    command.add_argument(
        "--nodes",
        action="extend",
        default=[],
        type=node_names,
        metavar="A,B,...",
        help="nodes to measure (default: the fabric's ready nodes that offer its RDMA resources)",
    )


def add_machine_option(command: argparse.ArgumentParser, machines: Sequence[str]) -> None:
    """Add the option for the machine type of the nodes, one of those with a published minimum."""
    command.add_argument(
        "--machine",
        choices=machines,
        default="",
        metavar="TYPE",
        help="machine type of the nodes, to compare with the minimum of its cloud's health check: "
        f"{', '.join(machines)}",
    )


def add_result_options(command: argparse.ArgumentParser) -> None:
    """Add the options for the exit code and the format of the results."""
    add = command.add_argument
    add("--strict", action="store_true", help="also exit with 1 for a warning")
    add(
        "-o",
        "--output",
        choices=("text", "json", "junit"),
        default="text",
        help="output format: text for people, json for programs, junit for CI (default: text)",
    )


def start_timeout(given: str) -> float:
    """Parse the longest time that a pod may take to start, in seconds."""
    seconds = request_timeout(given)
    if not 0 < seconds <= _MAX_START_SECONDS:
        raise argparse.ArgumentTypeError(f"{given!r:.80} is not a time from 1s to 1h")
    return seconds


def node_names(given: str) -> list[str]:
    """Parse names of nodes, separated by commas."""
    return [object_name(name) for name in given.split(",") if name]


def toleration(given: str) -> dict[str, str]:
    """Parse a toleration."""
    match = _TOLERATION.fullmatch(given)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{given!r:.80} is not KEY[=VALUE][:EFFECT], such as nvidia.com/gpu:NoSchedule"
        )
    key, value, effect = match.groups()
    parsed = {"key": key, "operator": "Exists"}
    if value is not None:
        parsed |= {"operator": "Equal", "value": value}
    return {**parsed, "effect": effect} if effect else parsed


def whole_number(given: str, minimum: int, maximum: int, noun: str) -> int:
    """Parse a number between two others; argparse's error if it is not one."""
    number = int(given) if given.isascii() and given.isdigit() and len(given) <= 4 else -1  # noqa: PLR2004
    if not minimum <= number <= maximum:
        raise argparse.ArgumentTypeError(
            f"{given!r:.80} is not a number of {noun} from {minimum} to {maximum}"
        )
    return number


# The measured fabric, by name, and the expected rate of its ports.

_MAX_RATE = 10_000


def find_fabric(name: str, configuration: CompiledConfiguration, source: str) -> Fabric:
    """Return the fabric with a name; raise ConfigError if the `source` has no such fabric."""
    by_name = configuration.fabrics
    if name not in by_name:
        hint = suggestion(name, by_name) or f"; the fabrics are {shortened_list([*by_name], 8)}"
        raise ConfigError(f"{source}: no fabric {name!r:.80}{hint if by_name else ''}")
    return by_name[name]


def given_rate(given: str) -> float:
    """Parse a rate; argparse's error if it is not one."""
    try:
        rate = float(given)
    except ValueError:
        rate = 0.0
    if not 0 < rate <= _MAX_RATE:
        raise argparse.ArgumentTypeError(
            f"{given!r:.80} is not a rate in Gb/s up to {_MAX_RATE:,}, such as 200"
        )
    return rate


def port_rate(given: float | None, fabric: Fabric | None) -> PortRate | None:
    """Return the expected rate: that of the option, which is more certain, else the fabric's."""
    if given is not None:
        return PortRate(given, f"--rate {given:g}")
    if fabric is None or fabric.rate_gbps is None:
        return None
    return PortRate(fabric.rate_gbps, f"rateGbps {fabric.rate_gbps} (fabric {fabric.name})")
