"""The options of `rdma-webhook discover`."""

from __future__ import annotations

import argparse
from pathlib import Path

from webhook.cli.inputs import input_name
from webhook.cli.options import add_cluster_options, namespace_name
from webhook.config.names import is_network
from webhook.diagnose.discover.cluster import OBJECTS_COMMAND

_MAX_DIGITS = 9
#: In place of the file of --nodes.
FROM_API = "-from the API server-"
_EXAMPLES = """examples:
  rdma-webhook discover script > collect.sh         a script that collects the output on a node
  ansible gpu -m script -a collect.sh | rdma-webhook discover -
  rdma-webhook discover --dir nodes/                a file or directory for each node
  rdma-webhook discover --dir nodes/ -o yaml > fabrics.yaml
  rdma-webhook discover --dir nodes/ --plugin device-plugin/
  rdma-webhook discover node1.txt node2.txt --nodes nodes.yaml -o json
  rdma-webhook discover --dir nodes/ --against yesterday.json

exit codes: 0 no error, 1 a finding is an error (such as a port that is down, or a host
that did not answer), 2 wrong usage or unreadable input
"""


def add_discover_options(command: argparse.ArgumentParser) -> None:
    """Add the files and the options, and examples below the help."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    add(
        "files",
        nargs="*",
        type=input_name,
        metavar="FILE",
        help="file or directory with the output of tools on a node, or - for standard input; or "
        "`script` or `daemonset`, to print a script or a DaemonSet that collects such output",
    )
    add(
        "--dir",
        action="append",
        default=[],
        metavar="DIR",
        help="directory that has a file or a directory for each node; may be repeated",
    )
    add("--run", action="store_true", help="run the tools on this node")
    add(
        "--nodes",
        nargs="?",
        const=FROM_API,
        type=input_name,
        metavar="FILE",
        help=f"output of {OBJECTS_COMMAND}, or -; without FILE, read the cluster",
    )
    add(
        "--expect-nodes",
        type=_positive,
        metavar="N",
        help="report an error unless there are N nodes",
    )
    add(
        "--expect-hcas",
        type=_positive,
        metavar="N",
        help="report an error for each node whose fabric does not have N usable HCAs there",
    )
    add(
        "--against",
        type=input_name,
        metavar="FILE",
        help="earlier output of discover -o json, or -: report what changed since then",
    )
    add(
        "-o",
        "--output",
        choices=("text", "json", "yaml"),
        default="text",
        help="output format: text for people, json for programs, yaml for the fabrics file "
        "(default: text)",
    )
    _add_plan_options(command)
    add_cluster_options(command)


def _add_plan_options(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--mode",
        choices=("shared-device", "host-network", "sr-iov", "host-device"),
        help="how pods access the devices (default: chosen for each fabric)",
    )
    networks = command.add_mutually_exclusive_group()
    networks.add_argument(
        "--network-prefix",
        default="",
        type=_network_prefix,
        metavar="[NAMESPACE/]NAME",
        help="in place of --network: the beginning of the networks' names, which end with the "
        "number of the rail, as rail0 to rail7 do",
    )
    networks.add_argument(
        "--network",
        action="append",
        default=[],
        type=_network,
        dest="networks",
        metavar="[NAMESPACE/]NAME",
        help="Multus network of a RoCE device in mode shared-device; repeat for each device",
    )
    add("--svg", metavar="FILE", type=Path, help="also write a diagram of the fabrics")
    add(
        "--html",
        metavar="FILE",
        type=Path,
        help="also write a page with the diagram and the findings",
    )
    add(
        "--plugin",
        metavar="DIR",
        type=Path,
        help="also write the device plugins' configuration, policies and networks to DIR",
    )
    add(
        "--ofed",
        action="store_true",
        help="with --plugin: let the NicClusterPolicy replace the nodes' RDMA driver",
    )
    add(
        "--namespace",
        default="default",
        type=namespace_name,
        help="namespace of the networks and the DaemonSet (default: default)",
    )
    add(
        "--image",
        default="busybox",
        help="image of the DaemonSet, with sh, grep and cat (default: busybox)",
    )


def _positive(given: str) -> int:
    if not given.isascii() or not given.isdigit() or len(given) > _MAX_DIGITS or not int(given):
        raise argparse.ArgumentTypeError(f"{given!r:.80} is not a positive number")
    return int(given)


def _network(given: str) -> str:
    if not is_network(given):
        raise argparse.ArgumentTypeError(f"{given!r:.80} is not [NAMESPACE/]NAME[@INTERFACE]")
    return given


def _network_prefix(given: str) -> str:
    if not is_network(f"{given}0") or "@" in given:
        raise argparse.ArgumentTypeError(f"{given!r:.80} is not the beginning of [NAMESPACE/]NAME")
    return given
