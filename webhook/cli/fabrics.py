"""`rdma-webhook fabrics`: the nodes of each fabric, what they offer, and what is wrong."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from webhook.cli.config_files import read_configuration, read_facts
from webhook.cli.inputs import input_name
from webhook.cli.options import CONFIG_VARIABLE, add_cluster_options, cluster_access, config_name
from webhook.cli.output import color, print_message, width, write
from webhook.errors import ClusterError, DocumentError
from webhook.model.fabric import CompiledConfiguration
from webhook.model.inventory import FabricInventory, Reserved, build_inventory
from webhook.preview.fabrics.record import FABRICS_FORMATS, FabricsDisplay, fabrics_output

if TYPE_CHECKING:
    from webhook.kube.reads import HttpReads

_NO_PROBLEM, _PROBLEM = 0, 1
_NODES_COMMAND = "kubectl get nodes -o yaml"
_FABRICS_ADVICE = "pass the fabrics file with -c"
_EXAMPLES = f"""examples:
  rdma-webhook fabrics                               nodes and fabrics of the cluster
  rdma-webhook fabrics --free                        also the amounts that no pod has reserved
  rdma-webhook fabrics -c fabrics.yaml -o wide       with the names of all nodes
  {_NODES_COMMAND} > nodes.yaml
  rdma-webhook fabrics -c fabrics.yaml -f nodes.yaml

Without -c, the fabrics are the cluster's, or with -f those of ${CONFIG_VARIABLE}.

exit codes: 0 no problem, 1 a problem (a fabric lacks nodes or a resource; a node takes no pods,
matches several fabrics, or matches none), 2 wrong usage or unreadable input
"""
_FORMAT_HELP = "; ".join(f"{format_.name}: {format_.summary}" for format_ in FABRICS_FORMATS)
_OUTPUT_HELP = f"output format (default: text); {_FORMAT_HELP}"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `fabrics`."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    add(
        "-c",
        "--config",
        type=input_name,
        metavar="FABRICS",
        help="fabrics file, or - for standard input (default: the cluster's fabrics)",
    )
    add(
        "-f",
        "--filename",
        type=input_name,
        metavar="FILE",
        help=f"output of {_NODES_COMMAND} (or json), or - for standard input, instead of the "
        "cluster",
    )
    add(
        "--free",
        action="store_true",
        help="also list all pods, and show the GPUs and RDMA resources that no pod has reserved",
    )
    add(
        "-o",
        "--output",
        choices=tuple(output_format.name for output_format in FABRICS_FORMATS),
        default="text",
        help=_OUTPUT_HELP,
    )
    add_cluster_options(command)


def run(arguments: argparse.Namespace) -> int:
    """Take the inventory, print it, and return the exit code."""
    inventory = _from_file(arguments) if arguments.filename else _from_cluster(arguments)
    display = FabricsDisplay(width=width(), color=color())
    write(fabrics_output(inventory, arguments.output, display))
    return _NO_PROBLEM if inventory.is_healthy else _PROBLEM


def _from_file(arguments: argparse.Namespace) -> FabricInventory:
    if arguments.free:
        raise DocumentError("--free counts the pods of a cluster; omit -f")
    path = config_name(arguments.config)
    if path is None:
        raise DocumentError(f"no fabrics; {_FABRICS_ADVICE}, or set ${CONFIG_VARIABLE}")
    facts = read_facts(arguments.filename, _NODES_COMMAND)
    return build_inventory(facts.nodes, read_configuration(path))


def _from_cluster(arguments: argparse.Namespace) -> FabricInventory:
    """Read the nodes, and with --free the pods, with the rights of the caller."""
    from webhook.kube.api import StatusError  # noqa: PLC0415
    from webhook.kube.client import Client  # noqa: PLC0415 -- slow to import
    from webhook.kube.cluster_reads import (  # noqa: PLC0415
        FORBIDDEN,
        nodes_of_cluster,
        reserved_in_cluster,
    )
    from webhook.kube.reads import HttpReads  # noqa: PLC0415

    reads = HttpReads(Client(*cluster_access(arguments)))
    configuration = _configuration(arguments, reads)
    try:
        nodes = nodes_of_cluster(reads)
    except StatusError as error:
        is_forbidden = error.code == FORBIDDEN
        hint = "; besides the fabrics, only the right to list nodes is needed" * is_forbidden
        raise ClusterError(f"cannot list nodes: {error}{hint}") from error
    reserved: Reserved | None = None
    if arguments.free:
        reserved, refused = reserved_in_cluster(reads)
        if refused:
            print_message("note", f"free amounts are unknown: {refused}")
    return build_inventory(nodes, configuration, reserved)


def _configuration(arguments: argparse.Namespace, reads: HttpReads) -> CompiledConfiguration:
    """Return the configuration of the named file, or the cluster's."""
    if arguments.config:
        return read_configuration(arguments.config)
    from webhook.preview.live import read_live  # noqa: PLC0415 -- slow to import

    reading = read_live(reads, (), read_fabrics=True, unread_clause=_FABRICS_ADVICE)
    if reading.configuration is None:
        raise DocumentError(
            "\n".join(["the cluster's fabrics are unknown", *reading.live_facts.notes])
        )
    return reading.configuration.compiled
