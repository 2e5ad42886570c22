"""Turn a fabrics file of the first version into the object that a cluster takes.

The first version had the configuration at the top level, where the object has it below `spec`.
Comments and layout stay: lines are moved and indented, and written anew only if the file is JSON or
has its top level in braces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

from webhook.config.findings import InvalidConfiguration
from webhook.config.object_form import NAME, OF_OBJECTS, is_flat, object_form
from webhook.config.yaml_file import parse_yaml
from webhook.yamltext.edit.write import Style, json_lines, mapping_lines
from webhook.yamltext.positions import LineIndex
from webhook.yamltext.tree import TextLimits, roots_of

_INDENT = "  "
_NAMED = ["metadata:\n", f"{_INDENT}name: {NAME}\n"]


def converted(text: str, limits: TextLimits) -> str:
    """Return a fabrics file with its configuration below `spec`, and with a name.

    `text` is YAML with one document, a mapping of our kind. A file that has this form already is
    returned as it is.
    """
    data = _data(text, limits)
    if not is_flat(data):
        return text
    wanted = _object(data)
    if text.lstrip().startswith("{"):
        return "\n".join(json_lines(wanted, 2)) + "\n"
    moved = _moved(text, limits)
    if _means(moved, wanted, limits):
        return moved
    return "\n".join(mapping_lines(wanted, 0, Style())) + "\n"


def _data(text: str, limits: TextLimits) -> Any:
    documents = [one.data for one in parse_yaml(text, "", limits) if one.data is not None]
    return documents[0] if len(documents) == 1 else None


def _means(text: str, wanted: Any, limits: TextLimits) -> bool:
    """Return whether a text has the wanted data; a line that is not part of a key may break it."""
    try:
        return bool(_data(text, limits) == wanted)
    except InvalidConfiguration:
        return False


def _object(data: dict[str, Any]) -> dict[str, Any]:
    head = {key: data[key] for key in ("apiVersion", "kind")}
    metadata = data.get("metadata") or {"name": NAME}
    return {**head, "metadata": metadata, "spec": object_form(data).spec}


class _Part(NamedTuple):
    """A key of the top level with its value, and with the comment above it."""

    key: str
    lines: list[str]


def _moved(text: str, limits: TextLimits) -> str:
    """Move the lines of the configuration below `spec`, to the end, and indent them."""
    lines = [f"{line}\n" for line in text.removesuffix("\n").split("\n")]
    above, parts = _parts(text, lines, limits)
    head = [line for part in parts if part.key in OF_OBJECTS for line in part.lines]
    below = [line for part in parts if part.key not in OF_OBJECTS for line in part.lines]
    named = [] if any(part.key == "metadata" for part in parts) else _NAMED
    loose = _trailing(head)
    head = head[: len(head) - len(loose)]
    return "".join([*above, *head, *named, *loose, "spec:\n", *_indented(below)])


def _parts(text: str, lines: list[str], limits: TextLimits) -> tuple[list[str], list[_Part]]:
    """Split a text into what is above its first key, and one part for each key."""
    (root,) = (one.node for one in roots_of(text, limits) if one.node.kind == "mapping")
    index = LineIndex(text)
    keys = [(key.text, index.line(key.start) - 1) for key, _ in root.pairs]
    first = keys[0][1]
    starts = [first, *(_with_comment(lines, line) for _, line in keys[1:]), len(lines)]
    spans = zip(keys, pairwise(starts), strict=True)
    return lines[:first], [_Part(key, lines[start:end]) for (key, _), (start, end) in spans]


def _with_comment(lines: list[str], place: int) -> int:
    """Return where the comment begins that stands directly above a line."""
    above = takewhile(lambda line: line.startswith("#"), reversed(lines[:place]))
    return place - sum(1 for _ in above)


def _trailing(lines: list[str]) -> list[str]:
    """Return the empty lines and comments at the end."""
    loose = takewhile(lambda line: not line.strip() or line.startswith("#"), reversed(lines))
    return [*loose][::-1]


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"{_INDENT}{line}" if line.strip("\r\n") else line for line in lines)
