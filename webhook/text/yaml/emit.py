"""Write JSON values as YAML lines in the style of Kubernetes manifests, or inside `{}` and `[]`."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from webhook.text.yaml.scalar_text import escaped, inline, literal_header, literal_lines


class Style(NamedTuple):
    """How a document indents."""

    step: int = 2  #: columns a level
    indented_lists: bool = False  #: whether `- ` stands deeper than the key above it


class Written(NamedTuple):
    """A value as text: what stands on the line of its key or dash, and the lines below."""

    head: str
    lines: list[str]


def under_key(value: Any, column: int, style: Style) -> Written:
    """Write a value that follows `key:`, the key standing at `column`."""
    if isinstance(value, dict) and value:
        return Written("", mapping_lines(value, column + style.step, style))
    if isinstance(value, list) and value:
        deeper = style.step if style.indented_lists else 0
        return Written("", sequence_lines(value, column + deeper, style))
    return _leaf(value, column + style.step)


def under_dash(value: Any, column: int, style: Style) -> Written:
    """Write a value that follows `- `, the dash standing at `column`."""
    lines: list[str] = []
    if isinstance(value, dict) and value:
        lines = mapping_lines(value, column + 2, style)
    elif isinstance(value, list) and value:
        lines = sequence_lines(value, column + 2, style)
    return Written(lines[0].lstrip(" "), lines[1:]) if lines else _leaf(value, column + 2)


def mapping_lines(value: dict[str, Any], column: int, style: Style) -> list[str]:
    """Write the entries of a mapping as lines, its keys at `column`."""
    lines: list[str] = []
    for key, inner in value.items():
        head, below = under_key(inner, column, style)
        lines.append(f"{' ' * column}{inline(key)}:{' ' if head else ''}{head}")
        lines.extend(below)
    return lines


def sequence_lines(values: list[Any], column: int, style: Style) -> list[str]:
    """Write the items of a list as lines, their dashes at `column`."""
    lines: list[str] = []
    for value in values:
        head, below = under_dash(value, column, style)
        lines.append(f"{' ' * column}- {head}")
        lines.extend(below)
    return lines


def _leaf(value: Any, column: int) -> Written:
    if isinstance(value, (dict, list)):
        return Written("{}" if isinstance(value, dict) else "[]", [])
    header = literal_header(value) if isinstance(value, str) else None
    if header is None:
        return Written(inline(value), [])
    return Written(header, literal_lines(value, " " * column))


def flow(value: Any, *, as_json: bool = False) -> str:
    """Write a value on one line for a flow collection, as JSON or with few quotes."""
    if as_json:
        return escaped(json.dumps(value, ensure_ascii=False))
    if isinstance(value, dict):
        entries = (f"{inline(key, flow=True)}: {flow(one)}" for key, one in value.items())
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return inline(value, flow=True)


def json_lines(value: Any, indent: int | str) -> list[str]:
    """Write a value as indented JSON."""
    return escaped(json.dumps(value, ensure_ascii=False, indent=indent)).split("\n")
