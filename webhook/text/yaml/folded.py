"""Insert words into a string that is written over several lines, and keep its line breaks."""

from __future__ import annotations

from webhook.text.yaml.edits import Edits
from webhook.text.yaml.tree import YamlNode

_SPACE = " \t\r\n"


def insert_words(edits: Edits, node: YamlNode, old: str, new: str) -> bool:
    """Edit a folded (`>`) or plain string of several lines; return whether that was done.

    Folding changes white space only, so the place is found by counting the other characters
    before it. A wrong guess shows when the text is read back.
    """
    source = edits.text[node.start : node.end]
    if "\n" not in source.rstrip() or node.style not in ("", ">"):
        return False
    at = len(_common_start(old, new))
    inserted = new[at : at + len(new) - len(old)]
    if not inserted or "\n" in inserted or old != new[:at] + new[at + len(inserted) :]:
        return False
    start = edits.next_line(node.start) if node.style == ">" else node.start
    offset = _behind(edits.text, start, sum(not char.isspace() for char in old[:at]))
    if at and old[at - 1].isspace():
        offset = edits.skip(offset, _SPACE)
    edits.replace(offset, offset, inserted)
    return True


def _common_start(one: str, other: str) -> str:
    for index, (char, another) in enumerate(zip(one, other, strict=False)):
        if char != another:
            return one[:index]
    return min(one, other, key=len)


def _behind(text: str, offset: int, count: int) -> int:
    """Return the offset after `count` characters other than white space."""
    while count and offset < len(text):
        count -= not text[offset].isspace()
        offset += 1
    return offset
