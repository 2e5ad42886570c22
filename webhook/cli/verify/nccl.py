"""`rdma-webhook verify nccl`: run nccl-tests over the nodes of a fabric, and judge that."""

from __future__ import annotations

import argparse
import re
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.cli.inputs import input_name
from webhook.cli.options import add_cluster_options, cluster_client
from webhook.cli.output import print_message
from webhook.cli.verify.options import (
    add_machine_option,
    add_nodes_option,
    add_pod_options,
    add_result_options,
    given_rate,
    port_rate,
    whole_number,
)
from webhook.cli.verify.output import NOT_COMPLETED, RUN_EXIT_CODES, exit_code, print_evaluation
from webhook.cli.verify.selection import chosen_fabric, chosen_nodes, fabric_source, gpu_tolerations
from webhook.cli.verify.session import NcclSession, RunSignals, make_folder, pod_problems, write_log
from webhook.diagnose.verify.published import NCCL_MACHINES
from webhook.diagnose.verify.runs.nccl_job import NcclPlan
from webhook.diagnose.verify.runs.nccl_run import NcclEnvironment
from webhook.diagnose.verify.runs.plan import RunEnvironment
from webhook.errors import DocumentError

if TYPE_CHECKING:
    from webhook.kube.client import Client
    from webhook.kube.reads import HttpReads
    from webhook.model.fabric import Fabric

_MAX_GPUS = 64
_SIZE = re.compile(r"\d{1,6}[KMG]?", re.IGNORECASE)
_ANY_GPU = "nvidia.com/gpu"
_EXAMPLES = f"""examples:
  rdma-webhook verify nccl --fabric h100-ib -n lab --image registry.example/nccl-tests --gpus 8
  rdma-webhook verify nccl --fabric h100-ib --image IMAGE --gpus 8 --nodes gpu-0,gpu-1 --logs logs
  rdma-webhook verify nccl --fabric h100-ib --image IMAGE --test alltoall_perf --largest 256M

The cluster needs mpi-operator (MPIJob, kubeflow.org/v2beta1); the image needs nccl-tests, Open MPI,
ssh and sshd. Ctrl-C deletes the job. If a run was killed, `rdma-webhook verify clean` deletes its
job.

{RUN_EXIT_CODES}
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `verify nccl`."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    add("--image", required=True, help="image with nccl-tests, Open MPI and sshd")
    add("--gpus", type=_gpus, default=1, metavar="N", help="GPUs per node (default: 1)")
    add(
        "--gpu-resource",
        metavar="NAME",
        help=f"resource name of the GPUs (default: the fabric's only one, else {_ANY_GPU})",
    )
    add("--fabric", metavar="NAME", help="fabric to measure (default: the only one)")
    add(
        "-c",
        "--config",
        type=input_name,
        metavar="FABRICS",
        help="fabrics file (default: the cluster's fabrics)",
    )
    add_nodes_option(command)
    help_text = "program of nccl-tests to run (default: %(default)s)"
    add("--test", default="all_reduce_perf", metavar="PROGRAM", help=help_text)
    help_text = "size of the largest message (default: 1G)"
    add("--largest", type=_size, default="1G", metavar="SIZE", help=help_text)
    add(
        "--rate",
        type=given_rate,
        metavar="GBPS",
        help="rate of the ports (default: the fabric's rateGbps)",
    )
    add_machine_option(command, NCCL_MACHINES)
    add_pod_options(command)
    add("--logs", type=Path, metavar="DIR", help="save the log of the launcher")
    add_result_options(command)
    add("-q", "--quiet", action="store_true", help="print no progress to standard error")
    add_cluster_options(command)


def _gpus(given: str) -> int:
    return whole_number(given, 1, _MAX_GPUS, "GPUs")


def _size(given: str) -> str:
    if not _SIZE.fullmatch(given):
        raise argparse.ArgumentTypeError(f"{given!r:.80} is not a size such as 256M")
    return given


def run(arguments: argparse.Namespace) -> int:
    """Run the job, delete it, print, and return the exit code."""
    from webhook.kube.reads import HttpReads  # noqa: PLC0415 -- slow to import

    client, namespace = cluster_client(arguments)
    plan = _plan(arguments, HttpReads(client))
    if arguments.logs is not None:
        make_folder(arguments.logs)
    with RunSignals() as signals:
        environment = _environment(arguments, plan, client, namespace, signals)
        evaluation, deleted = NcclSession(plan, namespace, environment, signals).complete()
    if evaluation is not None:
        print_evaluation(evaluation, arguments.output)
    if signals.exit_code is not None:
        return signals.exit_code
    if evaluation is None or not deleted:
        return NOT_COMPLETED
    return exit_code(evaluation.worst.level, strict=arguments.strict)


def _plan(arguments: argparse.Namespace, reads: HttpReads) -> NcclPlan:
    source = fabric_source(arguments.config, reads)
    fabric = chosen_fabric(arguments.fabric, source)
    return NcclPlan(
        name=f"verify-{secrets.token_hex(4)}",
        fabric=fabric,
        nodes=chosen_nodes(arguments.nodes, fabric, source.configuration, reads),
        gpus=arguments.gpus,
        gpu_resource=arguments.gpu_resource or _gpu_resource(fabric),
        image=arguments.image,
        test=arguments.test,
        largest=arguments.largest,
        start_timeout=arguments.timeout,
        pull_secrets=tuple(arguments.pull_secrets),
        tolerations=(*gpu_tolerations(fabric), *arguments.tolerations),
        rate=port_rate(arguments.rate, fabric),
        machine=arguments.machine,
    )


def _gpu_resource(fabric: Fabric) -> str:
    """Return the only GPU resource of a fabric; that of NVIDIA if it names none."""
    names = sorted(fabric.gpu_resources)
    if len(names) > 1:
        raise DocumentError(
            f"fabric {fabric.name} has several GPU resources, {', '.join(names)}; choose one with "
            "--gpu-resource"
        )
    return names[0] if names else _ANY_GPU


def _environment(
    arguments: argparse.Namespace,
    plan: NcclPlan,
    client: Client,
    namespace: str,
    signals: RunSignals,
) -> NcclEnvironment:
    from webhook.kube.pods import (  # noqa: PLC0415
        LabeledPods,
        MpiJobs,
        PodAccess,
    )
    from webhook.kube.reads import HttpReads  # noqa: PLC0415

    def report_progress(message: str) -> None:
        if not arguments.quiet:
            print_message("run", message)

    def save_log(text: str) -> None:
        if arguments.logs is not None:
            write_log(arguments.logs / f"{plan.name}.txt", text)

    run_environment = RunEnvironment(
        pods=LabeledPods(client, namespace),
        explain=pod_problems(HttpReads(client), PodAccess(client), namespace),
        report_progress=lambda _, message: report_progress(message),
        save_log=lambda _, text: save_log(text),
        wait_for_end=signals.wait_for_end,
        now=time.monotonic,
    )
    return NcclEnvironment(run_environment, MpiJobs(client, namespace), report_progress, save_log)
