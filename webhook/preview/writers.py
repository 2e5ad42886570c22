"""What a format is told of its reader, and what it returns; `Write` is what each one defines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from webhook.preview.report.json import LONGEST
from webhook.preview.report.record import Report
from webhook.preview.report.ways import OPTIONS, Ways
from webhook.text.yaml.documents import Document


class Display(NamedTuple):
    """What the output depends on besides the report: its reader, and where it is shown."""

    #: Columns of a line of text.
    width: int = 100
    #: Whether to use ANSI colors.
    colour: bool = False
    #: Whether a terminal shows it: characters in the documents could then act as commands to it.
    terminal: bool = False
    #: How readers request another report.
    ways: Ways = OPTIONS
    #: The largest number of characters, beyond which `write` raises DocumentError; None: no limit.
    most: int | None = LONGEST


class Shown(NamedTuple):
    """A report in one format, and remarks that the format cannot hold."""

    text: str
    #: Labels and visible sentences: ("denied", "Pod lab/a: …").
    remarks: Sequence[tuple[str, str]] = ()


#: The function `write` in each file of a format.
Write = Callable[[Sequence[Document], Report, Display], Shown]
