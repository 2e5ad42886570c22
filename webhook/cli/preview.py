"""`rdma-webhook preview`: read the files, decide, and print the result in the requested format."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from webhook.cli import argument_types as types
from webhook.cli.common_options import (
    CONFIG_VARIABLE,
    FACTS_HELP,
    add_files,
    configured,
    given_files,
)
from webhook.cli.output import colour, say, terminal, unreadable, width, write
from webhook.cli.stdin import read_stdin
from webhook.config import EXAMPLE
from webhook.config.facts_file import load_facts
from webhook.config.load import load_fabrics
from webhook.errors import DocumentError
from webhook.fabric.records import Fabrics
from webhook.preview.dry_run import PreviewOptions, preview_documents, stranger
from webhook.preview.formats import FORMATS, writer
from webhook.preview.formats.display import Display, Shown
from webhook.yamltext.documents import DOCUMENT_LIMITS, Document, read_documents

_DONE, _DENIED, _UNREADABLE = 0, 1, 2
#: The files read from a directory, as kubectl does.
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})

_EXAMPLES = """examples:
  rdma-webhook preview -c fabrics.yaml train.yaml
  rdma-webhook preview --enable -o diff train.yaml
  rdma-webhook preview -o yaml train.yaml | kubectl apply -f -
  rdma-webhook preview -o json train.yaml | jq '.decisions[].outcomes[]'
  kubectl get namespaces,limitranges,resourcequotas,nodes -A -o yaml > facts.yaml
  rdma-webhook preview --facts facts.yaml -n lab train.yaml

exit codes: 0 nothing is denied, 1 a pod would be denied (with --strict: or may not have RDMA),
2 usage or unreadable input
(what else can be read is shown)
"""
_OUTPUT_HELP = "; ".join(f"{one.name}: {one.summary}" for one in FORMATS) + " (default: text)"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `preview`."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    add_files(command, "a manifest in YAML or JSON, a directory, or -")
    add(
        "-c",
        "--config",
        metavar="FABRICS",
        help=f"the fabrics file (default: ${CONFIG_VARIABLE}, else an example)",
    )
    add(
        "-n",
        "--namespace",
        default="default",
        help="namespace of objects that name none (default: default)",
    )
    add(
        "--namespace-label",
        action="append",
        default=[],
        type=types.label,
        metavar="KEY=VALUE",
        help="a label of their namespaces; may be repeated",
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
        help="exit with 1 unless every pod that opted in is equipped for RDMA",
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
    found = _Found()
    for given in given_files(arguments, "rdma-webhook preview"):
        found.take(given)
    if found.unreadable and not found.documents:
        return _UNREADABLE
    if not found.documents:
        raise DocumentError(f"{found.names[0]}: there is no document in it{found.others}")
    report = preview_documents(found.documents, _options(arguments))
    display = Display(width=width(), colour=colour(), terminal=terminal(), most=None)
    _print(writer(arguments.output)(found.documents, report, display))
    if found.unreadable:
        return _UNREADABLE
    if report.denied or (arguments.strict and not report.equipped):
        return _DENIED
    return _DONE


class _Found:
    """The documents of the files, and whether a file could not be read, which was reported."""

    def __init__(self) -> None:
        self.documents: list[Document] = []
        self.names: list[str] = []
        self.unreadable = False
        self._taken: set[str] = set()

    @property
    def others(self) -> str:
        """Say how many inputs besides the first have no document either."""
        return f", nor in {len(self.names) - 1} more" if len(self.names) > 1 else ""

    def take(self, given: str) -> None:
        """Read a file, or the files of a directory."""
        try:
            names = _expanded(given)
        except DocumentError as error:
            self._refuse(error)
            return
        for name in names:
            self._read(name)

    def _read(self, name: str) -> None:
        """Read a file, once however often it is given."""
        place = name if name == "-" or "\0" in name else os.path.realpath(name)
        if place in self._taken:
            return
        self._taken.add(place)
        try:
            documents = _documents(name)
        except DocumentError as error:
            self._refuse(error)
        else:
            self.names.append("<stdin>" if name == "-" else name)
            self.documents.extend(documents)

    def _refuse(self, error: DocumentError) -> None:
        say("error", str(error))
        self.unreadable = True


def _expanded(name: str) -> list[str]:
    """Return the manifests in a directory, or the name itself."""
    folder = Path(name)
    try:
        if name == "-" or not folder.is_dir():
            return [name]
        found = sorted(str(path) for path in folder.iterdir() if path.suffix in _SUFFIXES)
    except OSError as error:
        raise unreadable(name, error) from None
    if not found:
        raise DocumentError(f"{name}: no .yaml, .yml or .json file in this directory")
    return found


def _documents(name: str) -> list[Document]:
    """Read one input; DocumentError also if it has a document that cannot be previewed."""
    data = _data(name)
    documents = read_documents(data) if name == "-" else read_documents(data, name)
    for document in documents:
        if why := stranger(document):
            raise DocumentError(why)
    return documents


def _data(name: str) -> bytes:
    """Read at most one byte more than the limit: that byte gets any larger file rejected."""
    try:
        if name == "-":
            return read_stdin(DOCUMENT_LIMITS.octets + 1)
        with Path(name).open("rb") as file:
            return file.read(DOCUMENT_LIMITS.octets + 1)
    except (OSError, ValueError) as error:
        raise unreadable(name, error) from None


def _options(arguments: argparse.Namespace) -> PreviewOptions:
    return PreviewOptions(
        fabrics=_fabrics(arguments.config),
        facts=load_facts(Path(arguments.facts)) if arguments.facts else None,
        namespace=arguments.namespace,
        namespace_labels=dict(arguments.namespace_label),
        enable=arguments.enable,
    )


def _fabrics(given: str | None) -> Fabrics:
    path = configured(given)
    if path is None:
        say("note", f"no -c given: using the example fabrics {EXAMPLE}")
    return load_fabrics(path or EXAMPLE).fabrics


def _print(shown: Shown) -> None:
    """Write the result, and on standard error what a format for programs cannot hold."""
    write(shown.text)
    for label, sentence in shown.remarks:
        say(label, sentence)
