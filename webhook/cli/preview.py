"""`rdma-webhook preview`: read the files, decide, and print the result in the requested format."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from webhook.cli.config_files import read_configuration, read_facts
from webhook.cli.inputs import input_name
from webhook.cli.manifest_files import ManifestFiles
from webhook.cli.options import (
    CONFIG_VARIABLE,
    FACTS_HELP,
    add_cluster_options,
    add_files,
    add_recursive,
    cluster_client,
    config_name,
    given_files,
    label_pair,
    names_cluster,
    namespace_name,
)
from webhook.cli.output import color, print_message, terminal, width, write
from webhook.cli.preview_page import add_page_options, page_requested, serve_page
from webhook.config import EXAMPLE, INSTALLED_FABRICS
from webhook.config.bundled_examples import is_example
from webhook.errors import ConfigError, DocumentError
from webhook.model.fabric import CompiledConfiguration
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.preview.formats import FOR_CLUSTER, FORMATS, writer
from webhook.preview.input_facts import LiveFacts
from webhook.preview.live import LiveReading, config_maps_of, namespaces_of, read_live
from webhook.preview.writers import Output, OutputOptions
from webhook.text.yaml.documents import Document

_DONE, _DENIED, _UNREADABLE = 0, 1, 2

_EXAMPLES = """examples:
  rdma-webhook preview -c fabrics.yaml train.yaml
  rdma-webhook preview -c fabrics.yaml --enable -o diff train.yaml
  rdma-webhook preview -c fabrics.yaml -o yaml train.yaml | kubectl apply -f -
  helm template chart | rdma-webhook preview -c fabrics.yaml -
  kustomize build overlay | rdma-webhook preview -c fabrics.yaml -
  rdma-webhook preview -o json train.yaml | jq '.decisions[].outcomes[]'
  rdma-webhook preview --live train.yaml             with your cluster's namespaces and fabrics
  kubectl get namespaces,limitranges,resourcequotas,nodes -A -o yaml > facts.yaml
  rdma-webhook preview --facts facts.yaml -n lab train.yaml
  rdma-webhook preview --page -c fabrics.yaml        a page in your browser, to paste manifests

Without a fabrics file, text and json show what the webhook would do with example fabrics.

exit codes: 0 no pod would be denied, 1 a pod would be denied or, with --strict, might lack RDMA,
2 wrong usage or unreadable input (the other inputs are shown)
"""
_FORMAT_HELP = "; ".join(f"{format_.name}: {format_.summary}" for format_ in FORMATS)
_OUTPUT_HELP = f"output format (default: text); {_FORMAT_HELP}"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `preview`."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    add_files(command, "manifest in YAML or JSON, directory, or - for standard input")
    add_recursive(command)
    add(
        "-c",
        "--config",
        type=input_name,
        metavar="FABRICS",
        help=f"fabrics file (default: with --live the cluster's, else ${CONFIG_VARIABLE}, else "
        f"{INSTALLED_FABRICS})",
    )
    add(
        "-n",
        "--namespace",
        type=namespace_name,
        help="namespace of objects that set none (default: default; with --live, the context's)",
    )
    add(
        "--namespace-label",
        action="append",
        default=[],
        type=label_pair,
        metavar="KEY=VALUE",
        help="label of the pods' namespaces; may be repeated",
    )
    add(
        "--facts",
        type=input_name,
        metavar="FILE",
        help=FACTS_HELP,
    )
    add(
        "--live",
        action="store_true",
        help="read the cluster: the pods' namespaces, the nodes, the webhook's registration and "
        "its fabrics",
    )
    add("--enable", action="store_true", help="decide as if every pod had opted in")
    add(
        "--strict",
        action="store_true",
        help="exit with 1 unless every pod that opted in is equipped for RDMA or is a launcher",
    )
    add(
        "-o",
        "--output",
        choices=tuple(output_format.name for output_format in FORMATS),
        default="text",
        help=_OUTPUT_HELP,
    )
    add_page_options(command)
    add_cluster_options(command)


def run(arguments: argparse.Namespace) -> int:
    """Preview the files and return the exit code; report unreadable files, and show the rest."""
    if page_requested(arguments):
        return serve_page(arguments, _fabrics_file(arguments))
    use_cluster = arguments.live or names_cluster(arguments)
    if not use_cluster:
        _refuse_example(arguments)
    manifests = ManifestFiles(given_files(arguments), recursive=arguments.recursive)
    if manifests.unreadable and not manifests.documents:
        return _UNREADABLE
    if not manifests.documents:
        raise DocumentError(manifests.no_documents_message)
    file_configuration = read_configuration(arguments.config) if arguments.config else None
    reading = (
        _read_cluster(arguments, manifests.documents, file_configuration) if use_cluster else None
    )
    report = preview_documents(
        manifests.documents, _options(arguments, reading, file_configuration)
    )
    if report.example and arguments.output == "json":
        print_message(
            "note",
            f"these are example fabrics ({report.example}), not yours; pass yours with -c FABRICS",
        )
    display = OutputOptions(width=width(), color=color(), terminal=terminal(), max_characters=None)
    _print(writer(arguments.output)(manifests.documents, report, display))
    if manifests.unreadable:
        return _UNREADABLE
    if report.denied or (arguments.strict and not report.equipped):
        return _DENIED
    return _DONE


def _read_cluster(
    arguments: argparse.Namespace,
    documents: Sequence[Document],
    file_configuration: CompiledConfiguration | None,
) -> LiveReading:
    """Read the facts of the pods; the cluster's namespace becomes the default."""
    from webhook.kube.reads import HttpReads  # noqa: PLC0415 -- slow to import

    client, arguments.namespace = cluster_client(arguments)
    path = _fabrics_file(arguments)
    reading = read_live(
        HttpReads(client),
        namespaces_of(documents, arguments.namespace, enable=arguments.enable),
        read_fabrics=not arguments.config,
        unread_clause=f"using the fabrics of {path}" if path else "using example fabrics",
        claims=bool(file_configuration and file_configuration.uses_claims),
        config_maps=config_maps_of(documents, arguments.namespace, enable=arguments.enable),
    )
    if reading.configuration is None:
        _refuse_example(arguments, reading.live_facts.notes)
    return reading


def _options(
    arguments: argparse.Namespace,
    reading: LiveReading | None,
    file_configuration: CompiledConfiguration | None,
) -> PreviewOptions:
    cluster_configuration = reading.configuration if reading else None
    configuration = cluster_configuration.compiled if cluster_configuration else file_configuration
    path = _fabrics_file(arguments)
    configuration = configuration or read_configuration(path or str(EXAMPLE))
    return PreviewOptions(
        configuration=configuration,
        example=cluster_configuration is None and path is None,
        given_example=arguments.output == "json"
        and cluster_configuration is None
        and is_example(configuration),
        facts=read_facts(arguments.facts) if arguments.facts else None,
        live_facts=reading.live_facts if reading else LiveFacts(),
        namespace=arguments.namespace or "default",
        namespace_labels=dict(arguments.namespace_label),
        enable=arguments.enable,
    )


def _fabrics_file(arguments: argparse.Namespace) -> str | None:
    """Return the fabrics file of this machine; None without one."""
    return config_name(arguments.config) or (
        str(INSTALLED_FABRICS) if INSTALLED_FABRICS.exists() else None
    )


def _refuse_example(arguments: argparse.Namespace, notes: Sequence[str] = ()) -> None:
    """Reject the example for an output that is applied; `notes` are about the cluster."""
    if arguments.output not in FOR_CLUSTER or _fabrics_file(arguments):
        return
    for note in notes:
        print_message("note", note)
    raise ConfigError(
        f"-o {arguments.output} requires your fabrics, since its output is for a cluster; pass "
        f"-c FABRICS or set ${CONFIG_VARIABLE} (examples: {EXAMPLE.parent})"
    )


def _print(output: Output) -> None:
    """Write the result, and on standard error the remarks that its format excludes."""
    write(output.text)
    for label, sentence in output.remarks:
        print_message(label, sentence)
