"""Write a report in each of the output formats: text, json, yaml, diff and patch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from webhook.preview.changed_inputs import changed_inputs, input_texts
from webhook.preview.formats import MAX_CHARACTERS
from webhook.preview.patches import RewrittenDocument, layout_remarks, patches, rewrite
from webhook.preview.report.json import report_json
from webhook.preview.report.record import CLI_WORDING, Report, Wording, remarks_of
from webhook.text.diff import diff
from webhook.text.escape import visible_json
from webhook.text.yaml.documents import Document, join_documents
from webhook.text.yaml.edits import ensure_final_newline

# The input and the output of a format's writer; `Write` is the writer's type.


class OutputOptions(NamedTuple):
    """How to render a report: width, colors, limits, and wording."""

    #: Columns of a line of text.
    width: int = 100
    #: Whether to use ANSI colors.
    color: bool = False
    #: Whether a terminal shows the output: characters in the documents could act as commands to it.
    terminal: bool = False
    #: The audience's words for requesting another report.
    wording: Wording = CLI_WORDING
    #: The largest number of characters; a longer output is a DocumentError. None: no limit.
    max_characters: int | None = MAX_CHARACTERS


class Output(NamedTuple):
    """A report in one format, and remarks that the format cannot hold."""

    text: str
    #: Labels and escaped sentences: ("denied", "Pod lab/a: …").
    remarks: Sequence[tuple[str, str]] = ()


#: The type of the functions `write_<format>`.
Write = Callable[[Sequence[Document], Report, OutputOptions], Output]


# `diff`: the changes in each input, in the format of `diff -u` and `patch -p1`.


def write_diff(documents: Sequence[Document], report: Report, display: OutputOptions) -> Output:
    """Write one diff for each input."""
    rewritten = rewrite(documents, report, max_characters=display.max_characters)
    remarks = [*layout_remarks(documents, rewritten), *remarks_of(report)]
    return Output("".join(_diffs(documents, rewritten, display)), remarks)


def _diffs(
    documents: Sequence[Document], rewritten: Sequence[RewrittenDocument], display: OutputOptions
) -> Iterator[str]:
    """Yield one diff for each input, which may contain several documents."""
    for texts in input_texts(documents, rewritten):
        heading = texts.name.strip("<>").lstrip("/")
        yield diff(
            heading, texts.before, texts.after, color=display.color, terminal=display.terminal
        )


# `json`: the documented form, for programs.


def write_json(documents: Sequence[Document], report: Report, display: OutputOptions) -> Output:
    """Write the JSON form."""
    rewritten = rewrite(documents, report, max_characters=display.max_characters)
    changes = [*changed_inputs(documents, rewritten, report)]
    return Output(report_json(report, changes, max_characters=display.max_characters))


# `patch`: the RFC 6902 patch of each document, one per line.


def write_patch(documents: Sequence[Document], report: Report, _: OutputOptions) -> Output:
    """Write the patches, one per line."""
    written = (json.dumps(patch, ensure_ascii=False) for patch in patches(documents, report))
    lines = [visible_json(line) + "\n" for line in written]
    return Output("".join(lines), remarks_of(report))


# `text`: for people.


def write_text(_: Sequence[Document], report: Report, display: OutputOptions) -> Output:
    """Write the report."""
    from webhook.preview.report.text import report_text  # noqa: PLC0415 -- it loads rich

    text = report_text(report, width=display.width, color=display.color, wording=display.wording)
    return Output(text)


# `yaml`: the documents after the patches, ready for `kubectl apply`.


def write_yaml(documents: Sequence[Document], report: Report, display: OutputOptions) -> Output:
    """Write the documents with the patches applied."""
    rewritten = rewrite(documents, report, max_characters=display.max_characters)
    texts = [document.text for document in rewritten]
    text = join_documents([*map(ensure_final_newline, texts[:-1]), *texts[-1:]])
    return Output(text, [*layout_remarks(documents, rewritten), *remarks_of(report)])
