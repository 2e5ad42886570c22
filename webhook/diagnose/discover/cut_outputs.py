"""Outputs that end too early: a smaller fabric must not look whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from webhook.diagnose.tools.observations import Cut, Reading
from webhook.diagnose.tools.transcripts import NodeOutput
from webhook.model.finding import Code, Finding, Location

OUTPUT_CUT = Code(
    "OutputCut",
    "The output of a tool ends too early, for instance in the middle of a device or before the "
    "last row of a table.",
    "Collect the whole output on the node again, and check that nothing (such as the size of a "
    "terminal's history, a limit on lines, or a connection that ends) cuts it off.",
)


class CutOutput(NamedTuple):
    """An output that ends too early."""

    node: str
    #: As given on the command line.
    file: str
    #: What the finding says after the name of the file.
    text: str


def cut_texts(part: NodeOutput, reading: Reading, *, is_last: bool) -> Iterator[str]:
    """Describe what is cut in a part of a text; `is_last`: of the parts of its node.

    A device counts as cut at the end, or where a command failed; elsewhere, a person may have
    shortened the text.
    """
    is_end = is_last or part.exit_status not in (0, None)
    last_line = max((line.number for line in part.lines if line.text.strip()), default=0)
    cuts = [
        cut
        for cut in reading.cuts
        if cut.is_table or (is_end and cut.line >= last_line and not _may_be_whole(cut, part))
    ]
    yield from map(_text, cuts)
    if part.is_cut and not cuts:
        yield f"the text ends within the output of {part.command or 'the script'}"


def _may_be_whole(cut: Cut, part: NodeOutput) -> bool:
    """Return whether the part may be a short form: its command is unknown, or has an option."""
    plain = rf"(?:sudo )?(?:\S{{0,200}}/)?{re.escape(cut.tool)}(?: \w\S{{0,60}}){{0,2}}"
    return cut.may_be_short_form and not re.fullmatch(plain, part.command or "")


def _text(cut: Cut) -> str:
    if cut.is_table:
        return f"the table of {cut.tool} has {cut.within}"
    return f"the text ends within {cut.within} ({cut.tool})"


def cut_findings(cuts: Iterable[CutOutput]) -> Iterator[Finding]:
    """Yield an error for each output that ends too early."""
    for cut in cuts:
        location = Location(file=cut.file, nodes=(cut.node,))
        yield OUTPUT_CUT.finding("error", cut.text, location=location)
