"""`rdma-webhook why`: explain why a pod has RDMA, or why it has none, and what to do."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.cli.config_files import read_configuration
from webhook.cli.inputs import input_name, read_input, shown_name
from webhook.cli.options import add_cluster_options, add_output_format, cluster_client
from webhook.cli.output import color, print_message, terminal, width, write, write_json
from webhook.cli.why_words import NamedWorkload, read_words
from webhook.diagnose.why.answer import explain_pod
from webhook.diagnose.why.code_output import (
    CodeExplanation,
    code_form,
    code_text,
    codes_text,
)
from webhook.diagnose.why.collector import CollectOptions, Collector, NoPodError
from webhook.diagnose.why.explanation import Explanation
from webhook.diagnose.why.file_collector import collect_from_objects, objects_of
from webhook.diagnose.why.no_pods import explain_missing_pods, explain_without_pods
from webhook.diagnose.why.output import why_form, why_text
from webhook.diagnose.why.workload_reads import MAX_PODS, WorkloadReads
from webhook.errors import ClusterError, DocumentError, WebhookError
from webhook.kube.objects import Manifest
from webhook.model.fabric import CompiledConfiguration
from webhook.text.yaml.documents import DOCUMENT_LIMITS, read_documents

_WELL, _NOT_WELL, _UNREADABLE = 0, 1, 2
_EXAMPLES = """examples:
  rdma-webhook why train-0-abcde -n lab        a pod in the cluster
  rdma-webhook why train-0-abcde --logs        the same, with lines from NCCL and UCX in its log
  rdma-webhook why job/train                   the newest pods of a controller, or why it has none
  rdma-webhook why deploy server               the same for a Deployment, written as for kubectl
  kubectl get pod train-0-abcde -o yaml | rdma-webhook why -f -
  rdma-webhook why FabricAmbiguous             the meaning of a code
  rdma-webhook why --codes                     a list of all codes

exit codes: 0 every pod has RDMA or is a launcher, and nothing prevents it from running (always for
codes), 1 a pod has no RDMA, might have none, or cannot run, or a controller has no pods, 2 wrong
usage or unreadable input
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `why`."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    help_text = "name of a pod, the kind and name of a controller (KIND/NAME), or a code"
    add("names", nargs="*", metavar="POD|KIND/NAME|CODE", help=help_text)
    add(
        "-f",
        "--filename",
        action="append",
        default=[],
        type=input_name,
        dest="files",
        metavar="FILE",
        help="output of kubectl get pod -o yaml (or json), or - for standard input; may be "
        "repeated",
    )
    add(
        "-n",
        "--namespace",
        help="namespace of the pods (default: the context's; inside a pod, that pod's)",
    )
    add(
        "--logs", action="store_true", help="also search the pods' logs for lines from NCCL and UCX"
    )
    add(
        "--exec",
        action="store_true",
        dest="processes",
        help="also run a shell in the containers to check whether processes have registered memory",
    )
    add(
        "-c",
        "--config",
        type=input_name,
        metavar="FABRICS",
        help="also show what the webhook would decide today with this fabrics file",
    )
    add("--codes", action="store_true", help="list the codes of all commands with their meanings")
    add_output_format(command)
    add_cluster_options(command)


class _Report(NamedTuple):
    """The explanations to print."""

    codes: list[CodeExplanation]
    pods: list[Explanation]
    unreadable: bool


def run(arguments: argparse.Namespace) -> int:
    """Explain the pods and codes, and return the exit code."""
    names: list[str] = arguments.names
    if arguments.codes:
        return _list_codes(arguments)
    if not names and not arguments.files:
        raise DocumentError(f"missing POD, KIND/NAME or CODE (see {arguments.command.prog} --help)")
    report = _report(arguments, names)
    if report.codes or report.pods:
        _print(report, arguments.output)
    if report.unreadable:
        return _UNREADABLE
    return _WELL if all(pod.well for pod in report.pods) else _NOT_WELL


def _report(arguments: argparse.Namespace, names: Sequence[str]) -> _Report:
    """Explain each name; a pod's name is a code, too, if there is no such pod."""
    codes, named_workloads = read_words(names)
    configuration = read_configuration(arguments.config) if arguments.config else None
    explained_codes = _explain_codes(codes)
    pods, failures = _explain(arguments, named_workloads, configuration)
    codes_tried_as_pods = _print_failures(failures)
    return _Report(
        codes=[*explained_codes, *_explain_codes(codes_tried_as_pods)],
        pods=pods,
        unreadable=len(codes_tried_as_pods) < len(failures),
    )


def _list_codes(arguments: argparse.Namespace) -> int:
    from webhook.diagnose.codes import CODE_NAMES  # noqa: PLC0415 -- it imports all tools

    if arguments.names or arguments.files:
        raise DocumentError("--codes takes neither pods nor codes")
    codes = _explain_codes(CODE_NAMES)
    if arguments.output == "json":
        write_json(why_form([], map(code_form, codes)))
    else:
        write(codes_text(codes, width=width() if terminal() else None, color=color()))
    return _WELL


def _explain_codes(names: Sequence[str]) -> list[CodeExplanation]:
    """Explain codes, in any case; raise UnknownCodeError for other names."""
    if not names:
        return []
    from webhook.diagnose.codes import explain_code  # noqa: PLC0415 -- it imports all tools

    return [explain_code(name) for name in names]


def _print_failures(failures: Mapping[str, WebhookError]) -> list[str]:
    """Print the errors of names that are neither pods nor codes; return the codes."""
    if not failures:
        return []
    from webhook.diagnose.codes import is_code  # noqa: PLC0415 -- it imports all tools

    messages = {
        _failure(name, error): None for name, error in failures.items() if not is_code(name)
    }
    for message in messages:
        print_message("error", message)
    return list(filter(is_code, failures))


def _failure(name: str, error: WebhookError) -> str:
    """Return the message about a name, which may be a code: most names of pods have hyphens."""
    from webhook.diagnose.codes import unknown_code  # noqa: PLC0415 -- it imports all tools

    if not name.isalnum():
        return str(error)
    unknown = unknown_code(name)
    if isinstance(error, NoPodError) or unknown.endswith("?"):
        return f"{error}; {unknown}"
    return (
        f"{name} is not a code, and cannot be looked up as a pod: {error}; `rdma-webhook why "
        "--codes` lists all codes"
    )


def _explain(
    arguments: argparse.Namespace,
    named_workloads: Sequence[NamedWorkload],
    configuration: CompiledConfiguration | None,
) -> tuple[list[Explanation], dict[str, WebhookError]]:
    """Explain the pods in files, and the named workloads; return the errors by name."""
    explanations: list[Explanation] = []
    if arguments.files:
        objects = [
            manifest for name in dict.fromkeys(arguments.files) for manifest in _objects(name)
        ]
        evidence = collect_from_objects(objects, arguments.namespace or "default", configuration)
        if not evidence:
            raise DocumentError(_no_pod(arguments.files))
        explanations += map(explain_pod, evidence)
    if not named_workloads:
        return explanations, {}
    try:
        explainer = _explainer(arguments, configuration)
    except ClusterError as error:
        return explanations, {
            named_workload.written_name: error for named_workload in named_workloads
        }
    failures: dict[str, WebhookError] = {}
    for named_workload in named_workloads:
        try:
            explanations += explainer.explain(named_workload)
        except NoPodError as error:
            failures[named_workload.written_name] = error
    return explanations, failures


def _no_pod(files: list[str]) -> str:
    names = ", ".join(map(shown_name, files))
    return (
        f"{names}: contains no pods; pass the output of kubectl get pod -o yaml, or use "
        "rdma-webhook preview for the pods of a workload"
    )


def _objects(name: str) -> Iterator[Manifest]:
    content = read_input(name, DOCUMENT_LIMITS.size)
    for document in read_documents(content, shown_name(name)):
        yield from objects_of(document.value)


class _Explainer(NamedTuple):
    """Explains pods and controllers of one namespace."""

    collector: Collector
    workloads: WorkloadReads
    namespace: str

    def explain(self, named_workload: NamedWorkload) -> list[Explanation]:
        """Explain a pod, or the newest pods of a controller; raise NoPodError without either."""
        if not named_workload.kinds:
            return [self._pod(named_workload.name)]
        workload = self.workloads.of(named_workload.kinds, named_workload.name)
        if not workload.pods:
            return [explain_without_pods(workload)]
        if (count := len(workload.pods)) > MAX_PODS:
            title = workload.controller.title
            sentence = f"{title} has {count:,} pods; explaining the newest {MAX_PODS}"
            print_message("note", sentence)
        missing = explain_missing_pods(workload)
        pods = [self._pod(name) for name in workload.pods[:MAX_PODS]]
        return [missing, *pods] if missing else pods

    def _pod(self, name: str) -> Explanation:
        return explain_pod(self.collector.collect(self.namespace, name))


def _explainer(
    arguments: argparse.Namespace, configuration: CompiledConfiguration | None
) -> _Explainer:
    from webhook.kube.pods import PodAccess  # noqa: PLC0415 -- slow to import
    from webhook.kube.reads import HttpReads  # noqa: PLC0415

    client, namespace = cluster_client(arguments)
    options = CollectOptions(
        processes=arguments.processes, logs=arguments.logs, configuration=configuration
    )
    reads = HttpReads(client)
    collector = Collector(reads, PodAccess(client), options)
    return _Explainer(collector, WorkloadReads(reads, namespace), namespace)


def _print(report: _Report, output_format: str) -> None:
    if output_format == "json":
        write_json(why_form(report.pods, map(code_form, report.codes)))
        return
    codes = [code_text(code, width=width(), color=color()) for code in report.codes]
    pods = [why_text(report.pods, width=width(), color=color())] if report.pods else []
    write("\n".join((*codes, *pods)))
