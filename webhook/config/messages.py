"""Explain pydantic's errors in our own words: the value, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from itertools import islice
from typing import NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from webhook.config.model import FabricConfigurationSpec
from webhook.text.yaml.emit import flow
from webhook.text.yaml.hints import misread_key
from webhook.text.yaml.values import literal_value

#: Longer words are truncated in messages, and not compared with others.
_LONGEST_WORD = 80
#: The most known words that an unknown word is compared with.
_MOST_WORDS = 200
#: The most pairs of a list, and characters, that are written out as the mapping that was meant.
_MOST_PAIRS, _LONGEST_REMEDY = 4, 300
#: What people call the link layers; the file's words are those of `ibstat`.
_SYNONYMS = {"ib": "InfiniBand", "roce": "Ethernet", "rocev2": "Ethernet", "eth": "Ethernet"}


def validation_message(error: ErrorDetails) -> str:
    """Say what is wrong with a value, and what would be right."""
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        said = _unknown(error["loc"])
    elif kind == "missing":
        key = str(error["loc"][-1])
        other = instead_of(key, value)
        said = f"is missing: {f'write {key}{other}' if other else _description(error['loc'])}"
    elif kind == "literal_error":
        said = _choice(value, re.findall(r"'([^']*)'", context["expected"]))
    elif kind == "value_error":
        said = str(context["error"])
    elif "ge" in context:
        said = f"{show_value(value)} is too small: the minimum is {context['ge']}"
    elif "le" in context:
        said = f"{show_value(value)} is too large: the maximum is {context['le']}"
    else:
        said = _wrong_type(kind, value)
    return said


def show_value(value: object) -> str:
    """Show a value briefly; name only the kind of mappings and lists."""
    match value:
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case _:
            return f"{value!r:.80}"


def quoted(word: str) -> str:
    """Quote a word, or only its beginning if it is long."""
    return f"{word[:_LONGEST_WORD]!r:.80}"


def brief(words: str, most: int = _LONGEST_WORD) -> str:
    """Truncate a text that is longer than `most` characters."""
    return words if len(words) <= most else f"{words[: most - 3]}..."


def listed(words: Sequence[str], most: int = 20) -> str:
    """List words with commas; after the first `most`, only say how many more there are."""
    more = f" and {len(words) - most:,} more" if len(words) > most else ""
    return ", ".join(map(brief, words[:most])) + more


def suggestion(word: object, known: Iterable[str]) -> str:
    """Suggest the closest known word, ignoring case; return "" if none is close.

    The search is quadratic in the length of the words and compares with each known word, so both
    are limited.
    """
    likely = _meant(str(word), known)
    return f" (did you mean {likely}?)" if likely else ""


def _meant(word: str, known: Iterable[str]) -> str:
    lower = word.lower()
    if len(lower) > _LONGEST_WORD:
        return ""
    by_lower = {name.lower(): name for name in known if len(name) <= _LONGEST_WORD}
    close = [lower] if lower in by_lower else _closest(lower, by_lower)
    return by_lower[close[0]] if close else ""


def _closest(word: str, known: Iterable[str]) -> list[str]:
    return get_close_matches(word, list(islice(known, _MOST_WORDS)), n=1)


def instead_of(key: str, given: Iterable[str]) -> str:
    """Say which of the given keys probably is a missing one, misspelled; "" if none is."""
    likely = _meant(key, (word for word in given if word != key))
    return f" instead of {quoted(likely)}" if likely else ""


def intended_field(place: tuple[int | str, ...]) -> str:
    """Return the name of the known field that an unknown one probably is; "" if none is.

    It may be a field of another mapping.
    """
    word, home = str(place[-1]), _home(place[:-1])
    if any(row.name == word for row in rows()):
        return word
    return _meant(word, [row.name for row in rows() if _parent(row) == home])


def _wrong_type(kind: str, value: object) -> str:
    if kind == "string_type" and value is None:
        return 'has no value: write "" for an empty string'
    if kind == "dict_type" and isinstance(value, list) and (written := _as_mapping(value)):
        return f"must be a mapping, not a list: write {written}"
    if kind == "list_type" and isinstance(value, str):
        items = ", ".join(item.strip() for item in value.split(",") if item.strip())
        return f"{show_value(value)} must be a list: write {brief(f'[{items}]', _LONGEST_REMEDY)}"
    if kind == "model_type" and isinstance(value, list):
        return "must be a mapping of its fields, not a list: leave out the dash"
    if kind == "int_type" and isinstance(value, str) and literal_value(value).__class__ is int:
        return f"{show_value(value)} must be a whole number, without quotes"
    wanted = {
        "string_type": "a string",
        "bool_type": "true or false",
        "int_type": "a whole number",
        "list_type": "a list, each item on a line that begins with `- `, or as [a, b]",
        "dict_type": "a mapping of names to values",
        "model_type": "a mapping of its fields",
    }[kind]
    return f"{show_value(value)} must be {wanted}"


def _as_mapping(items: list[object]) -> str:
    """Write the mapping that a list was meant as; "" if that is not clear.

    People write environment variables as in a container (`- name: A` and `value: b`), as `- A: b`,
    and as `- A=b`.
    """
    found: dict[str, str] = {}
    for item in items[:_MOST_PAIRS]:
        pair = _pair(item)
        if pair is None:
            return ""
        found[pair[0]] = pair[1]
    more = len(items) > _MOST_PAIRS
    written = flow(found)
    return brief(written.removesuffix("}") + ", ...}" if more else written, _LONGEST_REMEDY)


def _pair(item: object) -> tuple[str, str] | None:
    match item:
        case {"name": name, "value": value}:
            pair = (name, value)
        case {**fields} if len(fields) == 1:
            pair = next(iter(fields.items()))
        case str():
            pair = item.partition("=")[::2]
        case _:
            return None
    name, value = pair
    if not isinstance(name, str) or not name or isinstance(value, (dict, list)):
        return None
    return name, show_value(value) if isinstance(value, bool) else "" if value is None else str(
        value
    )


def _choice(value: object, choices: list[str]) -> str:
    two = len(choices) <= 2  # noqa: PLR2004 -- "or" joins at most two
    one_of = " or ".join(choices) if two else "one of " + ", ".join(choices)
    synonym = _SYNONYMS.get(str(value).lower())
    hint = f" (did you mean {synonym}?)" if synonym in choices else suggestion(value, choices)
    return f"{show_value(value)} must be {one_of}{hint}"


class Row(NamedTuple):
    """One field of the file, as the reference documents it."""

    path: str  #: `fabrics[].match.gpuResources`
    name: str
    description: str


def _unknown(place: tuple[int | str, ...]) -> str:
    word, home = str(place[-1]), _home(place[:-1])
    known = [row.name for row in rows() if _parent(row) == home]
    elsewhere = [row for row in rows() if row.name == word]
    if written := misread_key(word):
        return f"unknown field: {written}"
    if elsewhere:
        return f"unknown field here: it belongs in {_parent(elsewhere[0]) or 'spec'}"
    return f"unknown field{suggestion(word, known) or ': the fields here are ' + ', '.join(known)}"


def _description(place: tuple[int | str, ...]) -> str:
    found = {row.path: row.description for row in rows()}
    return found[".".join(part for part in (_home(place[:-1]), str(place[-1])) if part)]


def _home(place: tuple[int | str, ...]) -> str:
    """Return a place in the form of `Row.path`: `fabrics[].match`."""
    return "".join("[]" if isinstance(step, int) else f".{step}" for step in place).lstrip(".")


def _parent(row: Row) -> str:
    return row.path.removesuffix(row.name).removesuffix(".")


@cache
def rows() -> tuple[Row, ...]:
    """Return all fields of the file in the order of the models, each before the fields below it."""
    return tuple(_rows("", FabricConfigurationSpec))


def _rows(home: str, model: type[BaseModel]) -> Iterator[Row]:
    for name, field in model.model_fields.items():
        alias = field.alias or name
        path = f"{home}.{alias}" if home else alias
        yield Row(path, alias, " ".join((field.description or "").split()))
        below = f"{path}[]" if get_origin(field.annotation) is list else path
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _rows(below, kind)
