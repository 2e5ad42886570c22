"""`rdma-webhook verify clean`: delete the pods of runs that were killed."""

from __future__ import annotations

import argparse
import re
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from webhook.cli.options import add_cluster_options, cluster_client, namespace_name
from webhook.cli.output import print_message, write_lines
from webhook.diagnose.verify.runs.pods import RUN_LABEL, remove_pods, run_selector
from webhook.kube.api import StatusError
from webhook.kube.objects import PodRecord
from webhook.model.facts import key_of

if TYPE_CHECKING:
    from webhook.kube.client import Object
    from webhook.kube.pods import MpiJobs

_RUN = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_EXAMPLES = """examples:
  rdma-webhook verify clean                    the pods of all runs in the context's namespace
  rdma-webhook verify clean -n lab --run verify-1a2b3c4d
  rdma-webhook verify clean -A

Without --run, this also ends the runs in progress.

exit codes: 0 nothing is left, 2 wrong usage, or pods that could not be deleted
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `verify clean`."""
    command.epilog = _EXAMPLES
    scope = command.add_mutually_exclusive_group()
    scope.add_argument(
        "-n",
        "--namespace",
        type=namespace_name,
        help="namespace of the pods (default: the context's; inside a pod, that pod's)",
    )
    scope.add_argument(
        "-A", "--all-namespaces", action="store_true", help="delete the pods in all namespaces"
    )
    command.add_argument(
        "--run",
        type=_run_name,
        dest="name",
        metavar="NAME",
        help="delete only the pods of run NAME, as printed when the run started",
    )
    add_cluster_options(command)


def _run_name(given: str) -> str:
    if not _RUN.fullmatch(given):
        raise argparse.ArgumentTypeError(
            f"{given!r:.80} is not the name of a run, such as verify-1a2b3c4d"
        )
    return given


def run(arguments: argparse.Namespace) -> int:
    """Delete the pods, list them, and return the exit code."""
    from webhook.kube.pods import (  # noqa: PLC0415
        LabeledPods,
        MpiJobs,
    )

    client, namespace = cluster_client(arguments)
    scope = "" if arguments.all_namespaces else namespace
    selector = run_selector(arguments.name or "")
    jobs = _remove_jobs(MpiJobs(client, scope), selector)
    pods = LabeledPods(client, scope)
    removed = remove_pods(pods, selector, time.sleep, time.monotonic)
    if not removed and not jobs:
        searched = "any namespace" if arguments.all_namespaces else f"namespace {namespace}"
        print_message("note", f"nothing to delete in {searched}")
    write_lines("".join(f"{line}\n" for line in (*map(_job_line, jobs), *map(_pod_line, removed))))
    return 0


def _remove_jobs(jobs: MpiJobs, selector: str) -> list[Object]:
    """Delete the jobs of `verify nccl`, which would recreate their pods, and return them.

    A user without the right to list jobs has created none.
    """
    try:
        listed = jobs.list(selector)
    except StatusError as error:
        if error.code == HTTPStatus.FORBIDDEN:
            return []
        raise
    for job in listed:
        jobs.delete(job)
    return listed


def _job_line(job: Object) -> str:
    return f"deleted MPIJob {'/'.join(key_of(job))}"


def _pod_line(pod: PodRecord) -> str:
    metadata, node = pod.metadata, pod.spec.node_name
    on_node = f" on {node}" if node else ""
    run_name = metadata.labels.get(RUN_LABEL)
    return f"deleted pod {metadata.namespace}/{metadata.name} of {run_name}{on_node}"
