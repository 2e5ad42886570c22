"""`rdma-webhook preview`: read the files, decide, print in the form that is asked for."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from webhook.cli.fabrics import configured
from webhook.cli.output import colour, say, unreadable, width, write
from webhook.config import EXAMPLE
from webhook.config.facts_file import load_facts
from webhook.config.load import load_fabrics
from webhook.core.fabric import Fabrics
from webhook.documents.read import LONGEST, Document, joined, read_documents
from webhook.errors import DocumentError
from webhook.preview import PreviewOptions, patches, preview_documents, rewrite
from webhook.render.diff import diff
from webhook.render.form import form_text
from webhook.render.report import Report, asides
from webhook.render.text import text

_DONE, _DENIED = 0, 1
#: What a directory is searched for, as kubectl does.
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})


def run(arguments: argparse.Namespace) -> int:
    """Preview the files and return the exit code."""
    documents = [document for name in _names(arguments) for document in _documents(name)]
    report = preview_documents(documents, _options(arguments))
    _PRINT[arguments.output](documents, report)
    return _DENIED if report.denied else _DONE


def _names(arguments: argparse.Namespace) -> list[str]:
    names = [name for given in (*arguments.files, *arguments.more) for name in _expanded(given)]
    if not names:
        raise DocumentError(
            "no file: name one, or - for standard input (see rdma-webhook preview --help)"
        )
    return names


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
    return read_documents(_data(name)) if name == "-" else read_documents(_data(name), name)


def _data(name: str) -> bytes:
    """Read one byte more than a document may have: that is refused, whatever the file is."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(LONGEST + 1)
        with Path(name).open("rb") as file:
            return file.read(LONGEST + 1)
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


def _text(_: list[Document], report: Report) -> None:
    write(text(report, width=width(), colour=colour()))


def _json(_: list[Document], report: Report) -> None:
    write(form_text(report))


def _yaml(documents: list[Document], report: Report) -> None:
    whole = joined(_rewritten(documents, report))
    write(whole if whole.endswith("\n") or not whole else f"{whole}\n")
    _asides(report)


def _diff(documents: list[Document], report: Report) -> None:
    pairs = zip(documents, _rewritten(documents, report), strict=True)
    for name, group in groupby(pairs, lambda pair: pair[0].name):
        own = list(group)
        before = joined([document.text for document, _ in own])
        after = joined([new for _, new in own])
        write(diff(name.strip("<>").lstrip("/"), before, after, colour=colour()))
    _asides(report)


def _rewritten(documents: list[Document], report: Report) -> list[str]:
    texts = []
    for document, rewritten in zip(documents, rewrite(documents, report), strict=True):
        if rewritten.warning:
            say("warning", f"{document.name}:{document.line}: {rewritten.warning}")
        texts.append(rewritten.text)
    return texts


def _patch(documents: list[Document], report: Report) -> None:
    for patch in patches(documents, report):
        write(json.dumps(patch, ensure_ascii=False) + "\n")
    _asides(report)


def _asides(report: Report) -> None:
    """Tell people what an output for programs has no place for."""
    for label, sentence in asides(report):
        say(label, sentence)


#: For each word that -o takes.
_PRINT: dict[str, Callable[[list[Document], Report], None]] = {
    "text": _text,
    "json": _json,
    "yaml": _yaml,
    "patch": _patch,
    "diff": _diff,
}
