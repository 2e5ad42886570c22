"""What an output format is: a name, and how a report is written in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from webhook.render.json_form import LONGEST
from webhook.render.report import Report
from webhook.render.text import OPTIONS, Ways
from webhook.yamltext.documents import Document


class Display(NamedTuple):
    """What the output depends on besides the report: who reads it, and where."""

    #: Columns of a line of text.
    width: int = 100
    #: Whether ANSI colors are understood.
    colour: bool = False
    #: Whether a terminal shows it, which could take something in the documents for a command.
    terminal: bool = False
    #: How readers request another report.
    ways: Ways = OPTIONS
    #: Characters at most, beyond which `write` raises DocumentError; None: any number.
    most: int | None = LONGEST


class Shown(NamedTuple):
    """A report in one format, and what the format has no place for."""

    text: str
    #: Labels and visible sentences: ("denied", "Pod lab/a: …").
    remarks: Sequence[tuple[str, str]] = ()


class Format(NamedTuple):
    """One output format; the table of all is `webhook.preview.formats.FORMATS`."""

    name: str  #: of `-o NAME` and `?output=NAME`
    summary: str  #: for --help
    write: Callable[[Sequence[Document], Report, Display], Shown]
    #: The first is sent over HTTP, the others also ask for it; without any, it is not served there.
    media_types: tuple[str, ...] = ()
