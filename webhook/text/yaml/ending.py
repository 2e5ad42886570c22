"""Add lines below a text that has no final line break, without a change of what it means.

A literal or folded block at the end of such a text means a string without a line break at its end.
A line break behind it would become a part of the string, unless its header says `-`.
"""

from __future__ import annotations

import re

from webhook.text.yaml.documents import DOCUMENT_LIMITS
from webhook.text.yaml.tree import UnreadableTextError, YamlNode, roots_of

_HEADER = re.compile(r"([|>])([1-9]?)([+-]?)([1-9]?)(?=\s)")


def unended_block(text: str, root: YamlNode) -> tuple[int, int, str] | None:
    """Return the edit of the last block's header that keeps its string as it is.

    Return None if the text has a final line break, ends with something else than a block, or the
    header says `-` already.
    """
    node = root
    while node.children and not node.flow and node.kind != "alias":
        node = node.children[-1]
    header = _HEADER.search(text, node.start, node.end) if node.style in ("|", ">") else None
    if text.endswith("\n") or header is None or header[3] == "-":
        return None
    return header.start(), header.end(), f"{header[1]}{header[2] or header[4]}-"


def with_line_break(text: str) -> str:
    """Return the text of one document with a line break at its end, and the same meaning."""
    if not text or text.endswith("\n"):
        return text
    try:
        edit = next(
            (unended_block(text, root.node) for root in roots_of(text, DOCUMENT_LIMITS)), None
        )
    except UnreadableTextError:  # JSON that is not YAML
        edit = None
    start, end, header = edit or (len(text), len(text), "")
    return f"{text[:start]}{header}{text[end:]}\n"
