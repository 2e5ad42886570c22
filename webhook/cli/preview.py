"""`rdma-webhook preview`: read the files, decide, and print the result in the requested format."""

from __future__ import annotations

import argparse
from pathlib import Path

from webhook.cli import argument_types as types
from webhook.cli.common_options import (
    CONFIG_VARIABLE,
    FACTS_HELP,
    add_files,
    configured,
    given_files,
)
from webhook.cli.manifest_files import ManifestFiles
from webhook.cli.output import colour, say, terminal, width, write
from webhook.config import EXAMPLE, INSTALLED
from webhook.config.facts_file import load_facts
from webhook.config.load import load_fabrics
from webhook.errors import ConfigError, DocumentError
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.preview.formats import APPLIED, FORMATS, writer
from webhook.preview.formats.display import Display, Shown

_DONE, _DENIED, _UNREADABLE = 0, 1, 2

_EXAMPLES = """examples:
  rdma-webhook preview -c fabrics.yaml train.yaml
  rdma-webhook preview -c fabrics.yaml --enable -o diff train.yaml
  rdma-webhook preview -c fabrics.yaml -o yaml train.yaml | kubectl apply -f -
  helm template chart | rdma-webhook preview -c fabrics.yaml -
  kustomize build overlay | rdma-webhook preview -c fabrics.yaml -
  rdma-webhook preview -o json train.yaml | jq '.decisions[].outcomes[]'
  kubectl get namespaces,limitranges,resourcequotas,nodes -A -o yaml > facts.yaml
  rdma-webhook preview --facts facts.yaml -n lab train.yaml

Without a fabrics file, text and json show what the webhook would do with example fabrics.

exit codes: 0 no pod would be denied, 1 a pod would be denied (with --strict: or might not have
RDMA), 2 wrong usage, or an input that cannot be read (the others are shown)
"""
_OUTPUT_HELP = "; ".join(f"{one.name}: {one.summary}" for one in FORMATS) + " (default: text)"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `preview`."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    add_files(command, "a manifest in YAML or JSON, a directory, or - for standard input")
    add(
        "-c",
        "--config",
        metavar="FABRICS",
        help=f"the fabrics file (default: ${CONFIG_VARIABLE}, else {INSTALLED})",
    )
    add(
        "-n",
        "--namespace",
        default="default",
        type=types.namespace,
        help="namespace for objects that name none (default: default)",
    )
    add(
        "--namespace-label",
        action="append",
        default=[],
        type=types.label,
        metavar="KEY=VALUE",
        help="a label that the pods' namespaces have; may be repeated",
    )
    add(
        "--facts",
        metavar="FILE",
        help=FACTS_HELP,
    )
    add("--enable", action="store_true", help="decide as if every pod had opted in")
    add(
        "--strict",
        action="store_true",
        help="exit with 1 unless every pod that opted in is equipped for RDMA, or is a launcher",
    )
    add(
        "-o",
        "--output",
        choices=tuple(one.name for one in FORMATS),
        default="text",
        help=_OUTPUT_HELP,
    )


def run(arguments: argparse.Namespace) -> int:
    """Preview the files and return the exit code; report unreadable files, and show the rest."""
    fabrics = _fabrics(arguments)
    found = ManifestFiles(given_files(arguments, "rdma-webhook preview"))
    if found.unreadable and not found.documents:
        return _UNREADABLE
    if not found.documents:
        raise DocumentError(found.nothing)
    report = preview_documents(found.documents, _options(arguments, fabrics))
    if report.example and arguments.output == "json":
        say(
            "note",
            f"these are example fabrics ({report.example}), not yours: give yours with -c FABRICS",
        )
    display = Display(width=width(), colour=colour(), terminal=terminal(), most=None)
    _print(writer(arguments.output)(found.documents, report, display))
    if found.unreadable:
        return _UNREADABLE
    if report.denied or (arguments.strict and not report.equipped):
        return _DENIED
    return _DONE


def _options(arguments: argparse.Namespace, path: Path | None) -> PreviewOptions:
    return PreviewOptions(
        fabrics=load_fabrics(path or EXAMPLE).fabrics,
        example=path is None,
        facts=load_facts(Path(arguments.facts)) if arguments.facts else None,
        namespace=arguments.namespace,
        namespace_labels=dict(arguments.namespace_label),
        enable=arguments.enable,
    )


def _fabrics(arguments: argparse.Namespace) -> Path | None:
    """Return the fabrics file; None, for the example, only if nobody would apply the output."""
    path = configured(arguments.config) or (INSTALLED if INSTALLED.exists() else None)
    if path is None and arguments.output in APPLIED:
        raise ConfigError(
            f"-o {arguments.output} needs your fabrics, since it is applied to a cluster: give "
            f"them with -c FABRICS or ${CONFIG_VARIABLE} ({EXAMPLE.parent} has examples)"
        )
    return path


def _print(shown: Shown) -> None:
    """Write the result, and on standard error what a format for programs cannot hold."""
    write(shown.text)
    for label, sentence in shown.remarks:
        say(label, sentence)
