"""Read one JSON text strictly: without NaN, within limits, and with its duplicate keys."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from webhook.text.yaml.tree import OverLimitError, TextLimits, UnreadableTextError
from webhook.text.yaml.values import KeyFound

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]')
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def read_json(text: str, limits: TextLimits) -> tuple[Any, list[KeyFound]]:
    """Return the value of a JSON text, and the keys that its objects repeat.

    Raises json.JSONDecodeError for a text that is not JSON, and UnreadableTextError for one that
    only Python takes for JSON (NaN, 1e999, half a surrogate pair) or that is over the limits.
    """
    repeats = False

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeats
        made = dict(pairs)
        repeats = repeats or len(made) < len(pairs)
        return made

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


def _constant(word: str) -> NoReturn:
    raise UnreadableTextError(0, f"{word} is not a number in JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if abs(value) == math.inf:
        raise UnreadableTextError(0, f"{digits:.30} is too large for a number")
    return value


def _check_size(value: Any, limits: TextLimits) -> None:
    level, count = [value], 0
    for _ in range(limits.depth + 1):
        count += len(level)
        if count > limits.nodes:
            raise UnreadableTextError(0, f"more than {limits.nodes:,} values, the maximum")
        level = [inner for outer in level for inner in _inner(outer)]
        if not level:
            return
    raise OverLimitError(0, limits, "depth")


def _inner(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _check_surrogates(text: str, value: Any) -> None:
    r"""Reject `"\ud800"`: UTF-8 cannot encode it, so an answer that holds it cannot be sent."""
    if "\\ud" not in text and "\\uD" not in text:
        return
    if _HALF_PAIR.search(json.dumps(value, ensure_ascii=False)):
        offset = min(index for index in (text.find("\\ud"), text.find("\\uD")) if index >= 0)
        raise UnreadableTextError(offset, "half of a surrogate pair in a string")


def _duplicates(text: str) -> list[KeyFound]:
    """Find the repeated keys in a text that is known to be JSON."""
    found: list[KeyFound] = []
    seen: list[set[str] | None] = []  # keys of the objects around; None for an array
    key_next = False
    for match in _TOKEN.finditer(text):
        part = match[0]
        if part[0] == '"':
            keys = seen[-1] if seen else None
            if key_next and keys is not None:
                key = json.loads(part)
                if key in keys:
                    found.append(KeyFound(match.start(), key))
                keys.add(key)
        elif part in "{[":
            seen.append(set() if part == "{" else None)
        elif part in "}]":
            seen.pop()
        key_next = part in "{,"
    return found
