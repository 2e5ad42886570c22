"""`rdma-webhook verify run`: let the nodes of a fabric measure each other, and show verdicts."""

from __future__ import annotations

import argparse
import secrets
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from webhook import __version__
from webhook.cli.inputs import input_name
from webhook.cli.options import CONFIG_VARIABLE, add_cluster_options, cluster_client
from webhook.cli.output import color, print_message, width, write, write_json
from webhook.cli.verify.options import (
    add_nodes_option,
    add_pod_options,
    add_result_options,
    given_rate,
    port_rate,
    whole_number,
)
from webhook.cli.verify.output import RUN_EXIT_CODES, exit_code
from webhook.cli.verify.selection import (
    chosen_fabric,
    chosen_nodes,
    chosen_rounds,
    fabric_source,
    gpu_tolerations,
    require_verbs,
)
from webhook.cli.verify.session import RunSession, RunSignals, make_folder, pod_problems, write_log
from webhook.diagnose.verify.matrix import pair_title
from webhook.diagnose.verify.matrix_output import matrix_form, matrix_junit, matrix_text
from webhook.diagnose.verify.matrix_page import matrix_page
from webhook.diagnose.verify.results import NodePair, RunReport
from webhook.diagnose.verify.runs.plan import RunEnvironment, RunPlan
from webhook.errors import DocumentError

if TYPE_CHECKING:
    from webhook.kube.client import Client
    from webhook.kube.reads import HttpReads

#: The image of docs/verify.md, which must be on the nodes under this name.
_IMAGE = f"rdma-webhook-perftest:{__version__}"
_CONFIG_HELP = f"fabrics file (default: the cluster's fabrics, else ${CONFIG_VARIABLE})"
_DEFAULT_SECONDS, _MIN_SECONDS, _MAX_SECONDS = 10, 5, 3600
_MAX_DEVICES = 64
_EXAMPLES = f"""examples:
  rdma-webhook verify run --fabric v100-ib -n lab          each node with the next one
  rdma-webhook verify run --fabric v100-ib --all-pairs --latency
  rdma-webhook verify run --fabric v100-ib --nodes gpu-0,gpu-1 --seconds 30 --logs logs/
  rdma-webhook verify run -c fabrics.yaml --fabric v100-ib -o junit > verify.xml

Ctrl-C deletes the pods of the run and prints the results so far. If a run was killed,
`rdma-webhook verify clean` deletes its pods.

{RUN_EXIT_CODES}
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `verify run`."""
    command.epilog = _EXAMPLES
    _add_measurement_options(command)
    add_pod_options(command)
    add = command.add_argument
    add("--image", default=_IMAGE, help="image with perftest (default: %(default)s)")
    add(
        "--devices",
        type=_devices,
        metavar="N",
        help="RDMA devices per pod, if the fabric has count: per-gpu",
    )
    add(
        "--rate",
        type=given_rate,
        metavar="GBPS",
        help="rate of the ports (default: the fabric's rateGbps)",
    )
    add("--logs", type=Path, metavar="DIR", help="save the pods' logs, a file for each pair")
    add("--html", type=Path, metavar="FILE", help="also write a page with heat maps")
    add_result_options(command)
    add("-q", "--quiet", action="store_true", help="print no progress to standard error")
    add_cluster_options(command)


def _add_measurement_options(command: argparse.ArgumentParser) -> None:
    """Add the options for the measurements."""
    add = command.add_argument
    add("--fabric", metavar="NAME", help="fabric to measure (default: the only one)")
    add("-c", "--config", type=input_name, metavar="FABRICS", help=_CONFIG_HELP)
    add_nodes_option(command)
    pairs = command.add_mutually_exclusive_group()
    pairs.add_argument(
        "--ring", action="store_true", help="measure each node against the next one (default)"
    )
    pairs.add_argument(
        "--all-pairs", action="store_true", help="measure all pairs of nodes, each in one direction"
    )
    add(
        "--seconds",
        type=_seconds,
        default=_DEFAULT_SECONDS,
        metavar="N",
        help="seconds of measurement for each HCA (default: %(default)s)",
    )
    add("--latency", action="store_true", help="also measure latencies")


def _seconds(given: str) -> int:
    return whole_number(given, _MIN_SECONDS, _MAX_SECONDS, "seconds")


def _devices(given: str) -> int:
    return whole_number(given, 1, _MAX_DEVICES, "devices")


def run(arguments: argparse.Namespace) -> int:
    """Measure, delete the pods, print, and return the exit code."""
    from webhook.kube.reads import HttpReads  # noqa: PLC0415 -- slow to import

    client, namespace = cluster_client(arguments)
    plan = _plan(arguments, HttpReads(client))
    if arguments.logs is not None:
        make_folder(arguments.logs)
    if arguments.html is not None:
        check_page(arguments.html)
    with RunSignals() as signals:
        environment = _environment(arguments, client, namespace, signals)
        run_end = RunSession(plan, namespace, environment, signals).complete()
    report = run_end.report
    if report.pairs or report.findings:
        print_report(report, arguments.output)
        if arguments.html is not None:
            write_page(report, arguments.html, namespace)
    if run_end.code is not None:
        return run_end.code
    return exit_code(report.evaluation.worst.level, strict=arguments.strict)


def _plan(arguments: argparse.Namespace, reads: HttpReads) -> RunPlan:
    source = fabric_source(arguments.config, reads)
    fabric = chosen_fabric(arguments.fabric, source)
    require_verbs(fabric)
    nodes = chosen_nodes(arguments.nodes, fabric, source.configuration, reads)
    return RunPlan(
        name=f"verify-{secrets.token_hex(4)}",
        fabric=fabric,
        nodes=nodes,
        rounds=chosen_rounds(nodes, arguments),
        image=arguments.image,
        rate=port_rate(arguments.rate, fabric),
        tests=("ib_write_bw", "ib_write_lat") if arguments.latency else ("ib_write_bw",),
        seconds=arguments.seconds,
        start_timeout=arguments.timeout,
        devices=arguments.devices,
        pull_secrets=tuple(arguments.pull_secrets),
        tolerations=(*gpu_tolerations(fabric), *arguments.tolerations),
    )


def _environment(
    arguments: argparse.Namespace, client: Client, namespace: str, signals: RunSignals
) -> RunEnvironment:
    from webhook.kube.pods import (  # noqa: PLC0415
        LabeledPods,
        PodAccess,
    )
    from webhook.kube.reads import HttpReads  # noqa: PLC0415

    def report_progress(pair: NodePair | None, message: str) -> None:
        if not arguments.quiet:
            print_message(pair_title(pair) if pair else "run", message)

    def save_log(pair: NodePair, text: str) -> None:
        if arguments.logs is not None:
            write_log(arguments.logs / f"{pair.client}_{pair.server}.txt", text)

    return RunEnvironment(
        pods=LabeledPods(client, namespace),
        explain=pod_problems(HttpReads(client), PodAccess(client), namespace),
        report_progress=report_progress,
        save_log=save_log,
        wait_for_end=signals.wait_for_end,
        now=time.monotonic,
    )


# Print what a run measured, and write its page.


def print_report(report: RunReport, output: str) -> None:
    """Print a report; `output` is text, json or junit."""
    if output == "json":
        write_json(matrix_form(report))
    elif output == "junit":
        write(matrix_junit(report))
    else:
        write(matrix_text(report, width=width(), color=color()))


def write_page(report: RunReport, path: Path, namespace: str) -> None:
    """Write the page of a report."""
    page = matrix_page(report, datetime.now(UTC), namespace)
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise DocumentError(f"{path}: cannot be written: {error.strerror}") from None


def check_page(path: Path) -> None:
    """Raise DocumentError, before anything is measured, if no page can be written there."""
    if path.is_dir():
        raise DocumentError(f"{path} is a directory; pass the name of a file")
    if not path.parent.is_dir():
        raise DocumentError(f"{path}: directory {path.parent} does not exist")
