"""Write a report in each of the output formats: text, json, yaml, diff and patch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from webhook.preview.patches import Rewritten, lost_layout, patches, rewrite
from webhook.preview.report.json import LONGEST, form_text
from webhook.preview.report.record import OPTIONS, Report, Wording, asides
from webhook.text.diff import diff
from webhook.text.escape import visible_json
from webhook.text.yaml.documents import Document, joined
from webhook.text.yaml.edits import ensure_final_newline

# What a format is told of its reader, and what it returns; `Write` is what each one defines.


class OutputOptions(NamedTuple):
    """What the output depends on besides the report: its reader, and where it is shown."""

    #: Columns of a line of text.
    width: int = 100
    #: Whether to use ANSI colors.
    colour: bool = False
    #: Whether a terminal shows it: characters in the documents could then act as commands to it.
    terminal: bool = False
    #: How readers request another report.
    ways: Wording = OPTIONS
    #: The largest number of characters, beyond which `write` raises DocumentError; None: no limit.
    most: int | None = LONGEST


class Output(NamedTuple):
    """A report in one format, and remarks that the format cannot hold."""

    text: str
    #: Labels and visible sentences: ("denied", "Pod lab/a: …").
    remarks: Sequence[tuple[str, str]] = ()


#: The function `write` in each file of a format.
Write = Callable[[Sequence[Document], Report, OutputOptions], Output]


# `diff`: what changes in each input, as `diff -u` shows it and `patch -p1` accepts it.


def write_diff(documents: Sequence[Document], report: Report, display: OutputOptions) -> Output:
    """Write one diff for each input."""
    rewritten = rewrite(documents, report, most=display.most)
    remarks = [*lost_layout(documents, rewritten), *asides(report)]
    return Output("".join(_diffs(documents, rewritten, display)), remarks)


def _diffs(
    documents: Sequence[Document], rewritten: Sequence[Rewritten], display: OutputOptions
) -> Iterator[str]:
    """Yield one diff for each input, which may contain several documents."""
    pairs = zip(documents, rewritten, strict=True)
    for name, group in groupby(pairs, lambda pair: pair[0].name):
        own = list(group)
        before = joined([document.text for document, _ in own])
        after = joined([new.text for _, new in own])
        heading = name.strip("<>").lstrip("/")
        yield diff(heading, before, after, colour=display.colour, terminal=display.terminal)


# `json`: the documented form, for programs.


def write_json(_: Sequence[Document], report: Report, display: OutputOptions) -> Output:
    """Write the form."""
    return Output(form_text(report, most=display.most))


# `patch`: the RFC 6902 patch of each document, one per line.


def write_patch(documents: Sequence[Document], report: Report, _: OutputOptions) -> Output:
    """Write the patches, one a line."""
    written = (json.dumps(patch, ensure_ascii=False) for patch in patches(documents, report))
    lines = [visible_json(one) + "\n" for one in written]
    return Output("".join(lines), asides(report))


# `text`: for people.


def write_text(_: Sequence[Document], report: Report, display: OutputOptions) -> Output:
    """Write the report."""
    from webhook.preview.report.text import report_text  # noqa: PLC0415 -- it loads rich

    text = report_text(report, width=display.width, colour=display.colour, ways=display.ways)
    return Output(text)


# `yaml`: the documents after the patches, ready for `kubectl apply`.


def write_yaml(documents: Sequence[Document], report: Report, display: OutputOptions) -> Output:
    """Write the documents with the patches applied."""
    rewritten = rewrite(documents, report, most=display.most)
    texts = [one.text for one in rewritten]
    whole = joined([*map(ensure_final_newline, texts[:-1]), *texts[-1:]])
    return Output(whole, [*lost_layout(documents, rewritten), *asides(report)])
