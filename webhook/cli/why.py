"""`rdma-webhook why`: explain why a pod has RDMA or not, and what to do."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.cli.config_files import read_configuration
from webhook.cli.inputs import input_name, read_input, shown_name
from webhook.cli.options import add_cluster_options, add_output_format, cluster_client
from webhook.cli.output import color, print_message, terminal, width, write, write_json
from webhook.diagnose.why.answer import explain_pod
from webhook.diagnose.why.code_output import (
    CodeExplanation,
    code_form,
    code_text,
    codes_text,
)
from webhook.diagnose.why.collector import CollectOptions, Collector, NoPodError
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.explanation import Explanation
from webhook.diagnose.why.file_collector import collect_from_objects, objects_of
from webhook.diagnose.why.output import why_form, why_text
from webhook.errors import ClusterError, DocumentError, WebhookError
from webhook.kube.objects import Manifest
from webhook.model.fabric import CompiledConfiguration
from webhook.text.yaml.documents import DOCUMENT_LIMITS, read_documents

_WELL, _NOT_WELL, _UNREADABLE = 0, 1, 2
_POD_PREFIXES = ("pod/", "pods/", "po/")
_EXAMPLES = """examples:
  rdma-webhook why train-0-abcde -n lab        a pod in the cluster
  rdma-webhook why train-0-abcde --logs        the same, with lines from NCCL and UCX in its log
  kubectl get pod train-0-abcde -o yaml | rdma-webhook why -f -
  rdma-webhook why FabricAmbiguous             the meaning of a code
  rdma-webhook why --codes                     a list of all codes

exit codes: 0 every pod has RDMA or is a launcher, and nothing prevents it from running (always for
codes), 1 a pod has no RDMA, may have none, or cannot run, 2 wrong usage or unreadable input
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `why`."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    add("names", nargs="*", metavar="POD|CODE", help="name of a pod, or a code")
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
        help="namespace of the pods (default: the context's, or in a pod its own)",
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
        raise DocumentError(f"missing POD or CODE (see {arguments.command.prog} --help)")
    report = _report(arguments, names)
    if report.codes or report.pods:
        _print(report, arguments.output)
    if report.unreadable:
        return _UNREADABLE
    return _WELL if all(pod.well for pod in report.pods) else _NOT_WELL


def _report(arguments: argparse.Namespace, names: Sequence[str]) -> _Report:
    """Explain each name: that of a pod has no capitals, and a code begins with one.

    A name without capitals is a code, too, if there is no such pod.
    """
    codes = _explain_codes([name for name in names if name != name.lower()])
    pods = [name for name in names if name == name.lower()]
    configuration = read_configuration(arguments.config) if arguments.config else None
    evidence, failures = _collect(arguments, pods, configuration)
    lower_codes = _print_failures(failures)
    return _Report(
        codes=[*codes, *_explain_codes(lower_codes)],
        pods=[explain_pod(pod) for pod in evidence],
        unreadable=len(lower_codes) < len(failures),
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
    """Return the message about a name: unlike those of most pods, codes have no punctuation."""
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


def _collect(
    arguments: argparse.Namespace, pods: list[str], configuration: CompiledConfiguration | None
) -> tuple[list[PodEvidence], dict[str, WebhookError]]:
    """Return the evidence of all pods, and the error for each unreadable pod."""
    evidence: list[PodEvidence] = []
    if arguments.files:
        objects = [
            manifest for name in dict.fromkeys(arguments.files) for manifest in _objects(name)
        ]
        evidence += collect_from_objects(objects, arguments.namespace or "default", configuration)
        if not evidence:
            raise DocumentError(_no_pod(arguments.files))
    if not pods:
        return evidence, {}
    try:
        collector, namespace = _collector(arguments, configuration)
    except ClusterError as error:
        return evidence, dict.fromkeys(pods, error)
    failures: dict[str, WebhookError] = {}
    for name in pods:
        try:
            evidence.append(collector.collect(namespace, _without_kind(name)))
        except NoPodError as error:
            failures[name] = error
    return evidence, failures


def _without_kind(given: str) -> str:
    """Return the name in `pod/NAME`; raise DocumentError for another kind."""
    for prefix in _POD_PREFIXES:
        given = given.removeprefix(prefix)
    if "/" in given:
        kind, _, name = given.partition("/")
        raise DocumentError(
            f"{given!r:.80} is not a pod; pass one of the pods of {kind} {name} (kubectl get pods)"
        )
    return given


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


def _collector(
    arguments: argparse.Namespace, configuration: CompiledConfiguration | None
) -> tuple[Collector, str]:
    """Return the collector of evidence, and the namespace of the pods."""
    from webhook.kube.pods import PodAccess  # noqa: PLC0415 -- slow to import
    from webhook.kube.reads import HttpReads  # noqa: PLC0415

    client, namespace = cluster_client(arguments)
    options = CollectOptions(
        processes=arguments.processes, logs=arguments.logs, configuration=configuration
    )
    return Collector(HttpReads(client), PodAccess(client), options), namespace


def _print(report: _Report, output_format: str) -> None:
    if output_format == "json":
        write_json(why_form(report.pods, map(code_form, report.codes)))
        return
    codes = [code_text(code, width=width(), color=color()) for code in report.codes]
    pods = [why_text(report.pods, width=width(), color=color())] if report.pods else []
    write("\n".join((*codes, *pods)))
