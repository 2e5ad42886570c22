"""Read one JSON text strictly: no NaN, no half surrogate pairs, bounded, duplicate keys told."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from webhook.yamltext.tree import DEEPEST, MOST_NODES, UnreadableError
from webhook.yamltext.values import Duplicate

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]')
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_INFINITE = float("inf")


def read_json(text: str) -> tuple[Any, list[Duplicate]]:
    """Return the value of a JSON text, and the keys that its objects repeat.

    Raises json.JSONDecodeError where the text is no JSON, and UnreadableError where it is
    JSON to Python alone (NaN, 1e999, half a surrogate pair) or is over the limits.
    """
    repeated: list[str] = []

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            repeated.append("")
        return made

    try:
        value = json.loads(
            text, object_pairs_hook=mapping, parse_constant=_constant, parse_float=_finite
        )
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # an integer of more than 4300 digits
        raise UnreadableError(0, f"a number that cannot be read: {error}") from None
    _check_size(value)
    _check_surrogates(text, value)
    return value, _duplicates(text) if repeated else []


def _constant(word: str) -> NoReturn:
    raise UnreadableError(0, f"{word} is no number that JSON has")


def _finite(digits: str) -> float:
    value = float(digits)
    if abs(value) == _INFINITE:
        raise UnreadableError(0, f"{digits:.30} is too large a number")
    return value


def _check_size(value: Any) -> None:
    level, count = [value], 0
    for _ in range(DEEPEST + 1):
        count += len(level)
        if count > MOST_NODES:
            raise UnreadableError(0, f"more than {MOST_NODES} values are not read")
        level = [inner for outer in level for inner in _inner(outer)]
        if not level:
            return
    raise _too_deep()


def _inner(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _too_deep() -> UnreadableError:
    return UnreadableError(0, f"nested deeper than {DEEPEST} levels")


def _check_surrogates(text: str, value: Any) -> None:
    r"""Refuse `"\ud800"`: no UTF-8 can say it, so an answer that holds it cannot be sent."""
    if "\\ud" not in text and "\\uD" not in text:
        return
    if _HALF_PAIR.search(json.dumps(value, ensure_ascii=False)):
        offset = min(index for index in (text.find("\\ud"), text.find("\\uD")) if index >= 0)
        raise UnreadableError(offset, "half a surrogate pair in a string")


def _duplicates(text: str) -> list[Duplicate]:
    """Find the repeated keys of a text that is known to be JSON."""
    found: list[Duplicate] = []
    seen: list[set[str] | None] = []  # of the objects around; None for an array
    key_next = False
    for match in _TOKEN.finditer(text):
        part = match[0]
        if part[0] == '"':
            keys = seen[-1] if seen else None
            if key_next and keys is not None:
                key = json.loads(part)
                if key in keys:
                    found.append(Duplicate(match.start(), key))
                keys.add(key)
        elif part in "{[":
            seen.append(set() if part == "{" else None)
        elif part in "}]":
            seen.pop()
        key_next = part in "{,"
    return found
