"""The prompts of a terminal, with the commands that were typed behind them.

root@gpu-01:~# ibstat                       [user@gpu-01 ~]$ ibstat
gpu-01:~ # ibstat                           gpu-01$ ibstat
$ ibstat                                    sh-5.1# ibstat
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import Line
from webhook.diagnose.tools.transcripts.commands import is_command, where
from webhook.diagnose.tools.transcripts.segments import HOST, Sign

#: Characters of a line that may be a prompt; a command in it is shorter.
_LONGEST = 4000
_REST = r"(?:\s+(?P<command>.*))?"
_PATH = r"(?:~|/(?!/))[^#$%>]{0,200}?"
_NAMED = tuple(
    re.compile(rf"\s{{0,8}}(?:\([\w.-]{{1,60}}\) )?{prompt}{_REST}", re.ASCII)
    for prompt in (
        rf"[\w.+-]{{1,64}}@(?P<node>{HOST})(?:[: ]{_PATH}|:)?\s?[#$%>]",
        rf"\[(?:[\w.+-]{{1,64}}@)?(?P<node>(?!\d+\]){HOST})(?: [^\]]{{1,200}})?\] ?[#$%]",
        rf"(?P<node>{HOST}):{_PATH}\s?[#$]",
        rf"(?P<node>{HOST})\$",
        # Not "Port#", the head of a column.
        rf"(?P<node>(?=\w{{0,80}}[\d.-]){HOST})#",
    )
)
#: These name no machine.
_BARE = re.compile(
    rf"\s{{0,8}}(?:(?:ba|da|z|k)?sh-\d{{1,3}}\.\d{{1,3}}\w{{0,20}}[#$]|{_PATH} [#$]|\$){_REST}",
    re.ASCII,
)
#: The prompt of root, or a comment.
_ROOT = re.compile(r"# (?P<command>.+)")


class Prompts:
    """The prompts of a text, one after another."""

    def __init__(self) -> None:
        #: The machine whose shell was opened, for prompts that name none.
        self._shell: str | None = None

    def find(self, lines: Sequence[Line], at: int) -> Sign | None:
        """Find a prompt; a command may go on in the next lines."""
        text = lines[at].text
        prompt = _prompt(text) if len(text) <= _LONGEST else None
        if prompt is None:
            return None
        named = prompt.groupdict().get("node")
        command, behind = (prompt["command"] or "").strip(), at + 1
        while command.endswith("\\") and behind < len(lines) and len(command) <= _LONGEST:
            command = f"{command[:-1].strip()} {lines[behind].text.strip().removeprefix('> ')}"
            behind += 1
        # A prompt that looks otherwise than the last one, and names no machine, may be any's.
        shell = None if named else self._shell
        output, self._shell = where(command, named or shell, shell)
        return Sign((output,), behind, command or None)


def _prompt(text: str) -> re.Match[str] | None:
    if not any(sign in text for sign in "#$%>"):
        return None
    root = _ROOT.fullmatch(text)
    if root is not None:
        return root if is_command(root["command"]) else None
    return next(filter(None, (one.fullmatch(text) for one in (_BARE, *_NAMED))), None)
