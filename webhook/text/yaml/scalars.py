"""What a plain scalar means: a word without quotes, tag or block.

There are two rules, since two readers look at such words, and they must differ:

- `kubectl_value`, for documents. A preview has to decide on what kubectl would send. kubectl reads
  YAML with sigs.k8s.io/yaml, a fork of go-yaml v2 (`goyaml.v2/resolve.go`), which differs from
  PyYAML: `yes`, `on` and `y` are booleans, `010` is 8 and `1e9` a number, while dates and `1:30`
  stay the strings that they are. (Compared with what `kubectl label --local -o json` v1.32 prints;
  only `!!binary`, which kubectl decodes, stays as it is.)
- `literal_value`, for the fabrics file and the facts file. A device may be called `on`, and a
  partition key is written `0x8001`: nothing is converted that could not be turned back into the
  text that was written. docs/configuration.md promises it.
"""

from __future__ import annotations

import math
import re

_NULLS = dict.fromkeys(("", "~", "null", "Null", "NULL"))
#: What go-yaml v2 takes for null, true or false.
KUBECTL_WORDS: dict[str, bool | None] = {
    **_NULLS,
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


_LITERAL_WORDS = {**_NULLS, "true": True, "false": False}
#: Up to 18 digits: these turn back into the same text, and fit 64 bits.
_LITERAL_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def literal_value(text: str) -> str | int | bool | None:
    """Return null, true, false or a decimal integer; any other word is a string."""
    if text in _LITERAL_WORDS:
        return _LITERAL_WORDS[text]
    return int(text) if _LITERAL_INTEGER.fullmatch(text) else text


def kubectl_value(text: str) -> str | float | bool | None:  # to mypy, an int is a float
    """Return what kubectl makes of a plain scalar without a tag.

    Raises ValueError for an infinity or NaN, which JSON does not have.
    """
    if text in KUBECTL_WORDS:
        return KUBECTL_WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    if text in _NOT_FINITE:
        raise ValueError(f"{text} is not a number in JSON")
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
    if abs(real) == math.inf:
        return text
    return int(real) if real.is_integer() and abs(real) < _EXACT else real


def _integer(sign: str, digits: str) -> int:
    octal = len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567"
    return int(sign + digits, 8 if octal else 0)
