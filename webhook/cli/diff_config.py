"""`rdma-webhook diff-config`: show the decisions that a new fabrics file would change."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from webhook.cli.config_files import read_configuration, read_facts
from webhook.cli.inputs import input_name
from webhook.cli.manifest_files import ManifestFiles
from webhook.cli.options import (
    FACTS_HELP,
    add_cluster_options,
    add_output_format,
    add_recursive,
    cluster_client,
    given_files,
    names_cluster,
    namespace_name,
)
from webhook.cli.output import color, width, write, write_json
from webhook.errors import ConfigError, DocumentError
from webhook.model.fabric import CompiledConfiguration
from webhook.preview.comparison import Comparison, changes_form, changes_text, compare_reports
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.preview.input_facts import LiveFacts
from webhook.preview.live import (
    LiveTemplates,
    config_maps_of,
    live_templates,
    namespaces_of,
    read_live,
)
from webhook.text.yaml.documents import Document

_EQUAL, _DIFFERENT, _UNREADABLE = 0, 1, 2
_EXAMPLES = """examples:
  rdma-webhook diff-config new.yaml                  against the fabrics of the cluster
  rdma-webhook diff-config new.yaml -n lab           the same, for the pods of one namespace
  rdma-webhook diff-config new.yaml -c old.yaml      against a file, for the pods of the cluster
  rdma-webhook diff-config new.yaml -c old.yaml -f workloads.yaml      without a cluster

This compares the decisions on the workloads' pod templates. A new configuration does not change
running pods, only pods that are created later.

exit codes: 0 no decision changes, 1 a decision changes, 2 wrong usage or unreadable input
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `diff-config`."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    add("new", type=input_name, metavar="NEW", help="new fabrics file, or - for standard input")
    add(
        "-c",
        "--config",
        type=input_name,
        metavar="OLD",
        help="current fabrics file (default: the cluster's fabrics)",
    )
    add(
        "-f",
        "--filename",
        action="append",
        default=[],
        type=input_name,
        dest="filenames",
        metavar="FILE",
        help="file or directory of workloads, or -, instead of those in the cluster; may be "
        "repeated",
    )
    add_recursive(command)
    add(
        "-n",
        "--namespace",
        type=namespace_name,
        help="namespace to read (default: all labeled rdma.lab/enable=true); with -f, the "
        "namespace of objects that set none",
    )
    add("--facts", type=input_name, metavar="FILE", help=FACTS_HELP)
    add_output_format(command)
    add_cluster_options(command)


class _Workloads(NamedTuple):
    """The workloads to decide on, and the facts about them."""

    documents: Sequence[Document]
    live_facts: LiveFacts
    #: The cluster's fabrics; None if -c replaces them, or they could not be read.
    configuration: CompiledConfiguration | None = None
    unreadable: bool = False
    notes: Sequence[str] = ()


def run(arguments: argparse.Namespace) -> int:
    """Compare, and return the exit code."""
    new = read_configuration(arguments.new)
    old = read_configuration(arguments.config) if arguments.config else None
    offline = arguments.filenames and arguments.config and not names_cluster(arguments)
    workloads = _read_files(arguments) if offline else _read_cluster(arguments, (new, old))
    if workloads.unreadable and not workloads.documents:
        return _UNREADABLE
    before = old or workloads.configuration
    if before is None:
        raise ConfigError("\n".join((*workloads.notes, "pass the current fabrics with -c OLD")))
    comparison = _compare(arguments, workloads, before, new)
    if arguments.output == "json":
        write_json(changes_form(comparison))
    else:
        write(changes_text(comparison, width=width(), color=color()))
    if workloads.unreadable:
        return _UNREADABLE
    return _DIFFERENT if comparison.changes else _EQUAL


def _compare(
    arguments: argparse.Namespace,
    workloads: _Workloads,
    before: CompiledConfiguration,
    after: CompiledConfiguration,
) -> Comparison:
    options = PreviewOptions(
        configuration=before,
        facts=read_facts(arguments.facts) if arguments.facts else None,
        live_facts=workloads.live_facts,
        namespace=arguments.namespace or "default",
    )
    today = preview_documents(workloads.documents, options)
    then = preview_documents(workloads.documents, replace(options, configuration=after))
    return compare_reports(today, then, workloads.notes)


def _read_files(arguments: argparse.Namespace) -> _Workloads:
    """Read the workloads from files."""
    arguments.files = []
    manifests = ManifestFiles(given_files(arguments), recursive=arguments.recursive)
    if not manifests.documents and not manifests.unreadable:
        raise DocumentError(manifests.no_documents_message)
    return _Workloads(manifests.documents, LiveFacts(), unreadable=bool(manifests.unreadable))


def _read_cluster(
    arguments: argparse.Namespace, file_configurations: Sequence[CompiledConfiguration | None]
) -> _Workloads:
    """Read the cluster: facts about its pods, its fabrics, and without files its workloads.

    `file_configurations` are the fabrics of NEW and OLD; None without OLD.
    """
    from webhook.kube.reads import HttpReads  # noqa: PLC0415 -- slow to import

    namespace = arguments.namespace or ""
    client, default_namespace = cluster_client(arguments)
    reads = HttpReads(client)
    live = None if arguments.filenames else live_templates(reads, namespace)
    workloads = _read_files(arguments) if live is None else _live_workloads(live)
    documents = workloads.documents
    reading = read_live(
        reads,
        live.namespaces if live else namespaces_of(documents, default_namespace),
        read_fabrics=not arguments.config,
        unread_clause="pass them with -c",
        claims=any(
            configuration.uses_claims
            for configuration in file_configurations
            if configuration is not None
        ),
        config_maps=config_maps_of(documents, default_namespace),
    )
    arguments.namespace = default_namespace
    configuration = reading.configuration.compiled if reading.configuration else None
    notes = reading.live_facts.notes if live is None else workloads.notes
    return workloads._replace(
        live_facts=reading.live_facts, configuration=configuration, notes=notes
    )


def _live_workloads(templates: LiveTemplates) -> _Workloads:
    """Return the workloads of the cluster as documents."""
    documents = [
        Document(name="the cluster", index=index, value=manifest, line=0, text="", syntax="json")
        for index, manifest in enumerate(templates.objects)
    ]
    return _Workloads(documents, LiveFacts(), notes=templates.notes)
