"""JSON values from the nodes of a YAML text, or from a strict JSON text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import NamedTuple, NoReturn

from webhook.model.json import Json, JsonObject
from webhook.text.yaml.hints import explain_misread_key
from webhook.text.yaml.tree import TAG, OverLimitError, TextLimits, UnreadableTextError, YamlNode

# The values of nodes, as kubectl makes them.

_TYPED: dict[str, tuple[type, ...]] = {
    f"{TAG}int": (int,),
    f"{TAG}float": (int, float),
    f"{TAG}bool": (bool,),
    f"{TAG}null": (type(None),),
}
_NAMES = {"mapping": "mapping", "sequence": "list"}


class LocatedKey(NamedTuple):
    """A noteworthy key, such as a repeated one."""

    offset: int
    key: str


class Values:
    """The JSON values of nodes; an anchor and its aliases share one value."""

    def __init__(self) -> None:
        self.duplicates: list[LocatedKey] = []  #: repeated keys in the order of the text
        self.suspicious_keys: list[LocatedKey] = []  #: keys that people write by mistake
        self._anchored: dict[YamlNode, Json] = {}

    def of(self, node: YamlNode) -> Json:
        """Return the value of a node; raise UnreadableTextError if JSON cannot express it."""
        if node.kind == "alias":
            node = node.children[0]
        if node in self._anchored:
            return self._anchored[node]
        value: Json
        if node.kind == "scalar":
            value = _scalar(node)
        elif node.kind == "mapping":
            value = self._mapping(node)
        else:
            value = [self.of(child) for child in node.children]
        if node.anchor is not None:
            self._anchored[node] = value
        return value

    def _mapping(self, node: YamlNode) -> JsonObject:
        mapping: JsonObject = {}
        merged: list[tuple[YamlNode, Json]] = []
        for key_node, value_node in node.pairs:
            if key_node.merges:
                merged.append((value_node, self.of(value_node)))
                continue
            key = mapping_key(key_node)
            if not key.isascii() or key[:1] == "-":
                self._check(key_node.start, key)
            if key in mapping:
                self.duplicates.append(LocatedKey(key_node.start, key))
            mapping[key] = self.of(value_node)
        for value_node, value in merged:
            _merge(value_node, value, mapping)
        return mapping

    def _check(self, offset: int, key: str) -> None:
        if explain_misread_key(key):
            self.suspicious_keys.append(LocatedKey(offset, key))


def _merge(node: YamlNode, value: Json, mapping: JsonObject) -> None:
    """Add the keys of `<<` that the mapping lacks; the first source wins."""
    for source in value if isinstance(value, list) else [value]:
        if not isinstance(source, dict):
            raise UnreadableTextError(node.start, "`<<` merges mappings, but this is not one")
        for key, inner in source.items():
            mapping.setdefault(key, inner)


def mapping_key(node: YamlNode) -> str:
    """Return the key of a node as a string, like kubectl: 1 is "1".

    Raises UnreadableTextError for null and for collections, such as an unrendered `{{ name }}`.
    """
    node = node.children[0] if node.kind == "alias" else node
    if node.kind != "scalar":
        message = f"a key must be a string, but is a {_NAMES[node.kind]}"
        raise UnreadableTextError(node.start, message)
    key = _scalar(node)
    if key is None:
        raise UnreadableTextError(node.start, "a key must be a string, but is null")
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def same_json(left: Json, right: Json) -> bool:
    """Return whether two JSON values are equal; `true`, `1` and `1.0` are three values.

    An object that both share, such as a part that a patch leaves alone, is not compared further.
    """
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same_json(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return repr(left) == repr(right) if isinstance(left, float) else bool(left == right)


def _scalar(node: YamlNode) -> str | float | bool | None:
    """Return a scalar's value; a tag that is not a JSON type leaves the text unchanged."""
    if node.tag is None and not node.plain:
        return node.text
    types = _TYPED.get(node.tag or "")
    if node.tag is not None and types is None:
        return node.text
    try:
        value = kubectl_value(node.text)
    except ValueError as error:
        raise UnreadableTextError(node.start, str(error)) from None
    if types and type(value) not in types:  # a bool is an int to isinstance
        short = (node.tag or "").removeprefix(TAG)
        raise UnreadableTextError(node.start, f"{node.text!r:.60} is not a !!{short}")
    return value


# Read one JSON text strictly: without NaN, within limits, and with its duplicate keys.

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]')
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def read_json(text: str, limits: TextLimits) -> tuple[Json, list[LocatedKey]]:
    """Return the value of a JSON text, and the keys that its objects repeat.

    Raises json.JSONDecodeError for a text that is not JSON, and UnreadableTextError for a text
    that only Python accepts as JSON (NaN, 1e999, half a surrogate pair) or that exceeds the limits.
    """
    repeats = False

    def mapping(pairs: list[tuple[str, Json]]) -> JsonObject:
        nonlocal repeats
        members = dict(pairs)
        repeats = repeats or len(members) < len(pairs)
        return members

    try:
        value = json.loads(
            text, object_pairs_hook=mapping, parse_constant=_constant, parse_float=_finite
        )
    except RecursionError:
        raise OverLimitError(0, limits, "depth") from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # an integer of more than 4300 digits
        raise UnreadableTextError(0, f"a number cannot be read: {error}") from None
    _check_size(value, limits)
    _check_surrogates(text, value)
    return value, _duplicates(text) if repeats else []


def _constant(constant: str) -> NoReturn:
    raise UnreadableTextError(0, f"{constant} is not a number in JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if abs(value) == math.inf:
        raise UnreadableTextError(0, f"{digits:.30} is too large")
    return value


def _check_size(value: Json, limits: TextLimits) -> None:
    level, count = [value], 0
    for _ in range(limits.depth + 1):
        count += len(level)
        if count > limits.values:
            raise UnreadableTextError(0, f"more than the maximum of {limits.values:,} values")
        level = [inner for outer in level for inner in _inner(outer)]
        if not level:
            return
    raise OverLimitError(0, limits, "depth")


def _inner(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _check_surrogates(text: str, value: Json) -> None:
    r"""Reject `"\ud800"`: UTF-8 cannot encode it, so an answer that contains it cannot be sent."""
    if "\\ud" not in text and "\\uD" not in text:
        return
    if _HALF_PAIR.search(json.dumps(value, ensure_ascii=False)):
        offset = min(index for index in (text.find("\\ud"), text.find("\\uD")) if index >= 0)
        raise UnreadableTextError(offset, "unpaired surrogate in a string")


def _duplicates(text: str) -> list[LocatedKey]:
    """Return the repeated keys in a valid JSON text."""
    duplicates: list[LocatedKey] = []
    open_keys: list[set[str] | None] = []  # keys of the objects around; None for an array
    key_next = False
    for match in _TOKEN.finditer(text):
        part = match[0]
        if part[0] == '"':
            keys = open_keys[-1] if open_keys else None
            if key_next and keys is not None:
                key = json.loads(part)
                if key in keys:
                    duplicates.append(LocatedKey(match.start(), key))
                keys.add(key)
        elif part in "{[":
            open_keys.append(set() if part == "{" else None)
        elif part in "}]":
            open_keys.pop()
        key_next = part in "{,"
    return duplicates


# The value of a plain scalar: a word without quotes, tag or block.
#
# There are two rules for two kinds of text, and they must differ:
#
# - `kubectl_value`, for documents. A preview decides on the values that kubectl would send. kubectl
#   reads YAML with sigs.k8s.io/yaml, a fork of go-yaml v2 (`goyaml.v2/resolve.go`), unlike
#   PyYAML: `yes`, `on` and `y` are booleans, `010` is 8 and `1e9` a number, while dates and `1:30`
#   stay strings. (Compared with the output of `kubectl label --local -o json` v1.32; only
#   `!!binary`, which kubectl decodes, stays unconverted.)
# - `literal_value`, for the fabrics file and the facts file. A device may be called `on`, and a
#   partition key is written `0x8001`: only text that can be restored from its value is
#   converted. docs/configuration.md promises it.

_NULLS = dict.fromkeys(("", "~", "null", "Null", "NULL"))
#: The words that go-yaml v2 reads as null, true or false.
NULL_AND_BOOLEAN_WORDS: dict[str, bool | None] = {
    **_NULLS,
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NOT_FINITE = frozenset(
    sign + constant
    for sign in ("", "+", "-")
    for constant in (".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN")
)
_NUMERIC = frozenset("+-.0123456789")
_INTEGER = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BITS = 64
_MIN_WITH_EXPONENT = 1e21  # Go writes a float below this without an exponent: 1e3 arrives as 1000


_LITERAL_WORDS = {**_NULLS, "true": True, "false": False}
#: Integers of up to 18 digits: these turn back into the same text, and fit 64 bits.
_LITERAL_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def literal_value(text: str) -> str | int | bool | None:
    """Return null, true, false or a decimal integer; any other word is a string."""
    if text in _LITERAL_WORDS:
        return _LITERAL_WORDS[text]
    return int(text) if _LITERAL_INTEGER.fullmatch(text) else text


def kubectl_value(text: str) -> str | float | bool | None:  # to mypy, an int is a float
    """Return kubectl's value of a plain scalar without a tag.

    Raises ValueError for an infinity or NaN, which JSON does not have.
    """
    if text in NULL_AND_BOOLEAN_WORDS:
        return NULL_AND_BOOLEAN_WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    if text in _NOT_FINITE:
        raise ValueError(f"{text} is not a number in JSON")
    return _number(text)


def _number(text: str) -> str | float:
    digits = text if text[0] == "." else text.replace("_", "")
    match = _INTEGER.fullmatch(digits)
    if match and len(digits) <= _BITS + 3:  # a sign and the longest prefix, 0b
        value = _integer(match[1], match[2])
        if -(1 << _BITS - 1) <= value < 1 << _BITS:
            return value
    if not _FLOAT.fullmatch(digits):
        return text
    real = float(digits)
    if abs(real) == math.inf:
        return text
    return int(real) if real.is_integer() and abs(real) < _MIN_WITH_EXPONENT else real


def _integer(sign: str, digits: str) -> int:
    octal = len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567"
    return int(sign + digits, 8 if octal else 0)
