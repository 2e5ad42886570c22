"""The lines of an output, without what terminals and launchers add to them."""

from __future__ import annotations

import re

from webhook.diagnose.tools.observations import Line

#: Colours and movements of the cursor (ECMA-48).
_ESCAPE = re.compile(r"\x1b\[[0-9;?]{0,16}[A-Za-z]")
#: mpirun --tag-output, and kubectl logs --prefix.
_OUTPUT_PREFIX = re.compile(
    r"\s{0,8}(?:\[\d{1,6},\d{1,6}\]<std(?:out|err)>:|\[pod/[^\]\s]{1,200}\]\s)"
)
#: Characters of a line that are read.
_LONGEST = 4000


def plain_text(text: str) -> str:
    """Return a text without colours, and with each line ended by a line feed alone."""
    return _ESCAPE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")


def output_lines(text: str) -> list[Line]:
    """Split a plain text, without prefixes and blanks around; lines are counted from 1."""
    return [
        Line(number, _OUTPUT_PREFIX.sub("", line[:_LONGEST], count=1).strip())
        for number, line in enumerate(text.split("\n"), 1)
    ]
