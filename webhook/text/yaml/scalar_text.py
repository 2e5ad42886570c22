"""Write scalars as YAML so that kubectl, and any other reader, takes them for the same value."""

from __future__ import annotations

import json
import re

from webhook.text.yaml.scalars import KUBECTL_WORDS

# No word that some reader of YAML takes for something else matches: no number, no date, no `=`.
_PLAIN = re.compile(r"-{0,2}[A-Za-z_/][A-Za-z0-9_./=~-]*|[0-9]+(?:[KMGTPE]i|m)")
_PLAIN_IN_BLOCK = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*(?::[A-Za-z0-9_./-]+)+")
# What neither YAML nor a terminal shows as it is. YAML reads the escapes of JSON.
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
    return double_quoted(value)


def _is_plain(value: str, *, flow: bool) -> bool:
    if value in KUBECTL_WORDS:
        return False
    return bool(_PLAIN.fullmatch(value) or (not flow and _PLAIN_IN_BLOCK.fullmatch(value)))


def double_quoted(value: str) -> str:
    """Write a string in double quotes, as both JSON and YAML read it."""
    return escaped(json.dumps(value, ensure_ascii=False))


def escaped(text: str) -> str:
    """Escape in a JSON text what is legal there but forbidden, or a line break, in YAML."""
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
