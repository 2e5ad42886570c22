"""Write JSON values as YAML in the style of Kubernetes manifests: lines, flow and scalars."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from webhook.model.json import Json, JsonObject
from webhook.text.yaml.values import NULL_AND_BOOLEAN_WORDS

# Lines, and values inside `{}` and `[]`.


class Style(NamedTuple):
    """The indentation of a document."""

    step: int = 2  #: the columns of a level
    indented_lists: bool = False  #: whether `- ` is deeper than the key above it


class WrittenValue(NamedTuple):
    """A value as text: the head, on the line of its key or dash, and the lines below."""

    head: str
    lines: list[str]


def under_key(value: Json, column: int, style: Style) -> WrittenValue:
    """Write a value that follows `key:`, with the key at `column`."""
    if isinstance(value, dict) and value:
        return WrittenValue("", mapping_lines(value, column + style.step, style))
    if isinstance(value, list) and value:
        deeper = style.step if style.indented_lists else 0
        return WrittenValue("", sequence_lines(value, column + deeper, style))
    return _write_scalar(value, column + style.step)


def under_dash(value: Json, column: int, style: Style) -> WrittenValue:
    """Write a value that follows `- `, with the dash at `column`."""
    lines: list[str] = []
    if isinstance(value, dict) and value:
        lines = mapping_lines(value, column + 2, style)
    elif isinstance(value, list) and value:
        lines = sequence_lines(value, column + 2, style)
    return (
        WrittenValue(lines[0].lstrip(" "), lines[1:]) if lines else _write_scalar(value, column + 2)
    )


def mapping_lines(value: JsonObject, column: int, style: Style) -> list[str]:
    """Write the entries of a mapping as lines, its keys at `column`."""
    lines: list[str] = []
    for key, inner in value.items():
        head, below = under_key(inner, column, style)
        lines.append(f"{' ' * column}{inline(key)}:{' ' if head else ''}{head}")
        lines.extend(below)
    return lines


def sequence_lines(values: list[Json], column: int, style: Style) -> list[str]:
    """Write the items of a list as lines, their dashes at `column`."""
    lines: list[str] = []
    for value in values:
        head, below = under_dash(value, column, style)
        lines.append(f"{' ' * column}- {head}")
        lines.extend(below)
    return lines


def _write_scalar(value: Json, column: int) -> WrittenValue:
    if isinstance(value, (dict, list)):
        return WrittenValue("{}" if isinstance(value, dict) else "[]", [])
    header = literal_header(value) if isinstance(value, str) else None
    if header is None:
        return WrittenValue(inline(value), [])
    return WrittenValue(header, literal_lines(value, " " * column))


def flow(value: Json, *, as_json: bool = False) -> str:
    """Write a value on one line for a flow collection, as JSON or with few quotes."""
    if as_json:
        return escape_json(json.dumps(value, ensure_ascii=False))
    if isinstance(value, dict):
        entries = (f"{inline(key, flow=True)}: {flow(inner)}" for key, inner in value.items())
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return inline(value, flow=True)


def json_lines(value: Json, indent: int | str) -> list[str]:
    """Write a value as indented JSON."""
    return escape_json(json.dumps(value, ensure_ascii=False, indent=indent)).split("\n")


# Write scalars as YAML so that kubectl, and any other reader, reads the same value.

# Only words that all readers of YAML read as strings match: no number, no date, no `=`.
_PLAIN = re.compile(r"-{0,2}[A-Za-z_/][A-Za-z0-9_./=~-]*|[0-9]+(?:[KMGTPE]i|m)")
_PLAIN_IN_BLOCK = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*(?::[A-Za-z0-9_./-]+)+")
# Characters that neither YAML nor a terminal shows. YAML reads the escapes of JSON.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_INVISIBLE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_NO_LITERAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def inline(value: str | float | bool | None, *, flow: bool = False) -> str:
    """Write a scalar on one line so that it reads as the same value.

    It is plain if no reader of YAML can mistake it, in single quotes if it contains double ones
    (JSON), else in double quotes. In a flow collection, a string with `:` is quoted too.
    """
    if not isinstance(value, str):
        return json.dumps(value)
    if _is_plain(value, flow=flow):
        return value
    if ('"' in value or "\\" in value) and not _INVISIBLE.search(value):
        return "'" + value.replace("'", "''") + "'"
    return double_quote(value)


def _is_plain(value: str, *, flow: bool) -> bool:
    if value in NULL_AND_BOOLEAN_WORDS:
        return False
    return bool(_PLAIN.fullmatch(value) or (not flow and _PLAIN_IN_BLOCK.fullmatch(value)))


def double_quote(value: str) -> str:
    """Write a string in double quotes, as both JSON and YAML read it."""
    return escape_json(json.dumps(value, ensure_ascii=False))


def escape_json(text: str) -> str:
    """Escape the characters of a JSON text that are forbidden, or line breaks, in YAML."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def literal_header(value: str) -> str | None:
    """Return `|` or `|-` if a string can be written as a literal block, else None."""
    content = value.removesuffix("\n")
    if "\n" not in value or not content or content.endswith("\n"):
        return None
    first = content.lstrip("\n")
    if first[0] in " \t" or _NO_LITERAL.search(value):
        return None
    return "|" if value.endswith("\n") else "|-"


def literal_lines(value: str, indent: str) -> list[str]:
    """Return the lines below the header of a literal block."""
    content = value.removesuffix("\n")
    return [indent + line if line else "" for line in content.split("\n")]
