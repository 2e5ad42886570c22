"""What a plain YAML scalar means to kubectl, and how a value is written so that it means the same.

kubectl reads YAML with sigs.k8s.io/yaml, a fork of go-yaml v2 (`goyaml.v2/resolve.go`). It
differs from PyYAML, so its rules are written down here: `yes`, `on` and also `y` are booleans,
`1e9` is a number, while dates and `1:30` stay the strings that they are. (Compared with what
`kubectl label --local -o json` v1.32 prints; only `!!binary`, which it decodes, stays as it is.)
"""

from __future__ import annotations

import json
import re

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NOT_FINITE = frozenset(
    sign + word
    for sign in ("", "+", "-")
    for word in (".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN")
)
_NUMERIC = frozenset("+-.0123456789")
_INTEGER = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BITS = 64
_EXACT = 1e21  # Go writes a float below this without an exponent: 1e3 arrives as 1000
_INFINITE = float("inf")


def resolve(text: str) -> str | float | bool | None:  # an int is a float to a type checker
    """Return what kubectl makes of a plain scalar without a tag.

    ValueError for an infinity or NaN, which JSON has not.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    if text in _NOT_FINITE:
        raise ValueError(f"{text} is no number that JSON has")
    return _number(text)


def _number(text: str) -> str | float:
    bare = text if text[0] == "." else text.replace("_", "")
    match = _INTEGER.fullmatch(bare)
    if match and len(bare) <= _BITS + 3:  # a sign and the longest prefix, 0b
        value = _integer(match[1], match[2])
        if -(1 << _BITS - 1) <= value < 1 << _BITS:
            return value
    if not _FLOAT.fullmatch(bare):
        return text
    real = float(bare)
    if abs(real) == _INFINITE:
        return text
    return int(real) if real.is_integer() and abs(real) < _EXACT else real


def _integer(sign: str, digits: str) -> int:
    octal = len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567"
    return int(sign + digits, 8 if octal else 0)


# Words that this or another reader of YAML takes for something else stay out of _PLAIN's reach.
_PLAIN = re.compile(r"-{0,2}[A-Za-z_/][A-Za-z0-9_./=~-]*|[0-9]+(?:[KMGTPE]i|m)")
_PLAIN_IN_BLOCK = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*(?::[A-Za-z0-9_./-]+)+")
# What neither YAML nor a terminal shows as it is; JSON escapes them, and YAML reads JSON's escapes.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_INVISIBLE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_NO_LITERAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def inline(value: str | float | bool | None, *, flow: bool = False) -> str:
    """Write a scalar on one line so that it reads as the same value.

    Plain where no reader of YAML can mistake it, in single quotes where it holds
    double ones (JSON), else in double quotes. In a flow collection `:` is quoted too.
    """
    if not isinstance(value, str):
        return json.dumps(value)
    if _is_plain(value, flow=flow):
        return value
    if ('"' in value or "\\" in value) and not _INVISIBLE.search(value):
        return "'" + value.replace("'", "''") + "'"
    return quoted(value)


def _is_plain(value: str, *, flow: bool) -> bool:
    if value in _WORDS:
        return False
    return bool(_PLAIN.fullmatch(value) or (not flow and _PLAIN_IN_BLOCK.fullmatch(value)))


def quoted(value: str) -> str:
    """Write a string in double quotes, as both JSON and YAML read it."""
    return escaped(json.dumps(value, ensure_ascii=False))


def escaped(text: str) -> str:
    """Escape in a JSON text what YAML refuses, or takes for a line break, and JSON does not."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def literal_header(value: str) -> str | None:
    """Return `|` or `|-` where a string can be written as a literal block, else None."""
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
