"""`rdma-webhook verify run`: let the nodes of a fabric measure each other, and judge that."""

from __future__ import annotations

import argparse
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

from webhook import __version__
from webhook.cli.cluster_options import add_cluster_options, cluster_client
from webhook.cli.common_options import CONFIG_VARIABLE
from webhook.cli.output import say
from webhook.cli.verify.exit_codes import EXIT_CODES, exit_code
from webhook.cli.verify.measured_fabric import given_rate, port_rate
from webhook.cli.verify.options import (
    add_nodes_option,
    add_pod_options,
    add_result_options,
    whole_number,
)
from webhook.cli.verify.pod_problems import pod_problems
from webhook.cli.verify.run_logs import make_folder, write_log
from webhook.cli.verify.run_output import check_page, print_report, write_page
from webhook.cli.verify.run_signals import RunSignals
from webhook.cli.verify.selection import (
    chosen_fabric,
    chosen_nodes,
    chosen_rounds,
    fabric_source,
    gpu_tolerations,
)
from webhook.cli.verify.session import RunSession
from webhook.diagnose.verify.run_report import NodePair
from webhook.diagnose.verify.runs.pair_judging import pair_name
from webhook.diagnose.verify.runs.plan import RunPlan
from webhook.diagnose.verify.runs.run_cluster import RunSite

if TYPE_CHECKING:
    from webhook.kube.client import Client
    from webhook.kube.reads import ApiReads

#: The image of docs/verify.md, which must be on the nodes under this name.
_IMAGE = f"rdma-webhook-perftest:{__version__}"
_CONFIG_HELP = f"the fabrics file (default: the cluster's, else ${CONFIG_VARIABLE})"
_SECONDS, _SHORTEST, _LONGEST = 10, 5, 3600
_MOST_DEVICES = 64
_EXAMPLES = f"""examples:
  rdma-webhook verify run --fabric v100-ib -n lab          each node with the next one
  rdma-webhook verify run --fabric v100-ib --all-pairs --latency
  rdma-webhook verify run --fabric v100-ib --nodes gpu-0,gpu-1 --seconds 30 --logs logs/
  rdma-webhook verify run -c fabrics.yaml --fabric v100-ib -o junit > verify.xml

Ctrl-C deletes the pods of the run, and shows what was measured so far; rdma-webhook verify clean
deletes what a run left that could not do so.

{EXIT_CODES}130 after Ctrl-C, 143 after SIGTERM
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `verify run`."""
    command.epilog = _EXAMPLES
    _add_what(command)
    add_pod_options(command)
    add = command.add_argument
    add("--image", default=_IMAGE, help="an image with perftest (default: %(default)s)")
    add(
        "--devices",
        type=_devices,
        metavar="N",
        help="RDMA devices for each pod, where the fabric counts them by GPUs",
    )
    add("--rate", type=given_rate, metavar="GBPS", help="the ports' rate (default: rateGbps)")
    add("--logs", type=Path, metavar="DIR", help="keep what the pods print, a file for each pair")
    add("--html", type=Path, metavar="FILE", help="write a page with the matrix as heat maps, too")
    add_result_options(command)
    add("-q", "--quiet", action="store_true", help="do not tell what happens on standard error")
    add_cluster_options(command)


def _add_what(command: argparse.ArgumentParser) -> None:
    """Add the options that say what is measured."""
    add = command.add_argument
    add("--fabric", metavar="NAME", help="the fabric (default: the only one)")
    add("-c", "--config", metavar="FABRICS", help=_CONFIG_HELP)
    add_nodes_option(command)
    pairs = command.add_mutually_exclusive_group()
    pairs.add_argument("--ring", action="store_true", help="each node with the next one (default)")
    pairs.add_argument("--all-pairs", action="store_true", help="each node with every other one")
    add(
        "--seconds",
        type=_seconds,
        default=_SECONDS,
        metavar="N",
        help="how long to measure each HCA (default: %(default)s)",
    )
    add("--latency", action="store_true", help="measure latencies, too")


def _seconds(given: str) -> int:
    return whole_number(given, _SHORTEST, _LONGEST, "seconds")


def _devices(given: str) -> int:
    return whole_number(given, 1, _MOST_DEVICES, "devices")


def run(arguments: argparse.Namespace) -> int:
    """Measure, delete the pods, print, and return the exit code."""
    from webhook.kube.reads import ApiReads  # noqa: PLC0415 -- slow to import

    client, namespace = cluster_client(arguments)
    plan = _plan(arguments, ApiReads(client))
    if arguments.logs is not None:
        make_folder(arguments.logs)
    if arguments.html is not None:
        check_page(arguments.html)
    with RunSignals() as signals:
        site = _site(arguments, client, namespace, signals)
        ended = RunSession(plan, namespace, site, signals).complete()
    report = ended.report
    if report.results or report.remarks:
        print_report(report, arguments.output)
        if arguments.html is not None:
            write_page(report, arguments.html)
    if ended.code is not None:
        return ended.code
    return exit_code(report.assessment.worst.verdict, strict=arguments.strict)


def _plan(arguments: argparse.Namespace, reads: ApiReads) -> RunPlan:
    found = fabric_source(arguments.config, reads)
    fabric = chosen_fabric(arguments.fabric, found)
    nodes = chosen_nodes(arguments.nodes, fabric, found.fabrics, reads)
    return RunPlan(
        name=f"verify-{secrets.token_hex(4)}",
        fabric=fabric,
        nodes=nodes,
        rounds=chosen_rounds(nodes, arguments),
        image=arguments.image,
        rate=port_rate(arguments.rate, fabric),
        tests=("ib_write_bw", "ib_write_lat") if arguments.latency else ("ib_write_bw",),
        seconds=arguments.seconds,
        patience=arguments.timeout,
        devices=arguments.devices,
        pull_secrets=tuple(arguments.pull_secrets),
        tolerations=(*gpu_tolerations(fabric), *arguments.tolerations),
    )


def _site(
    arguments: argparse.Namespace, client: Client, namespace: str, signals: RunSignals
) -> RunSite:
    from webhook.kube.pod_access import PodAccess  # noqa: PLC0415
    from webhook.kube.pods import LabelledPods  # noqa: PLC0415 -- slow to import
    from webhook.kube.reads import ApiReads  # noqa: PLC0415

    def tell(pair: NodePair | None, what: str) -> None:
        if not arguments.quiet:
            say(pair_name(pair) if pair else "run", what)

    def keep(pair: NodePair, text: str) -> None:
        if arguments.logs is not None:
            write_log(arguments.logs / f"{pair.client}_{pair.server}.txt", text)

    return RunSite(
        pods=LabelledPods(client, namespace),
        explain=pod_problems(ApiReads(client), PodAccess(client), namespace),
        tell=tell,
        keep=keep,
        pause=signals.pause,
        now=time.monotonic,
    )
