"""Explain pydantic's errors in our own words: the value, and the correction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from webhook.config.model import FabricConfigurationSpec
from webhook.model.nearest import nearest, suggestion
from webhook.model.quoting import quoted
from webhook.text.yaml.emit import flow
from webhook.text.yaml.hints import explain_misread_key
from webhook.text.yaml.values import literal_value

_QUOTED = re.compile("'([^']*)'")
#: Longer words are truncated in messages.
_MAX_WORD = 80
#: The maximum number of pairs of a list, and of characters, in a proposed mapping.
_MAX_PAIRS, _MAX_REMEDY = 4, 300
#: Common names of the link layers; the file uses the words of `ibstat`.
_SYNONYMS = {"ib": "InfiniBand", "roce": "Ethernet", "rocev2": "Ethernet", "eth": "Ethernet"}


def validation_message(error: ErrorDetails) -> str:
    """Describe the error in a value, and the correction."""
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    field = _field(error["loc"])
    if kind == "extra_forbidden":
        message = _unknown_field(error["loc"])
    elif kind == "missing":
        key = str(error["loc"][-1])
        other = instead_of(key, value)
        hint = f"; write {key}{other}" if other else _description(error["loc"])
        message = f"{field} is missing{hint}"
    elif kind == "literal_error":
        message = f"{field} {_choice(value, _QUOTED.findall(context['expected']))}"
    elif kind == "value_error":
        message = error["msg"]
    elif "ge" in context:
        message = f"{show_value(value)} is too small; the minimum is {context['ge']}"
    elif "le" in context:
        message = f"{show_value(value)} is too large; the maximum is {context['le']}"
    else:
        message = f"{field} {_wrong_type(kind, value)}"
    return message


def _field(path: tuple[int | str, ...]) -> str:
    """Return the last step of a path, of an item with its list: `linkLayer`, `hcas[0]`."""
    *_, parent, last = ("", *path)
    return f"{parent}[{last}]" if isinstance(last, int) else last


def show_value(value: object) -> str:
    """Format a value briefly; name only the kind of mappings and lists."""
    match value:
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case _:
            return quoted(value)


def shortened(words: str, limit: int = _MAX_WORD) -> str:
    """Truncate a text that is longer than `limit` characters."""
    return words if len(words) <= limit else f"{words[: limit - 3]}..."


def instead_of(key: str, given: Iterable[str]) -> str:
    """Name the given key that is probably a misspelling of a missing key; "" without a match."""
    likely = nearest(key, (word for word in given if word != key))
    return f" instead of {quoted(likely[0])}" if likely else ""


def intended_field(path: tuple[int | str, ...]) -> str:
    """Return the known field that an unknown field was probably meant as; "" without a match.

    It may be a field of another mapping.
    """
    word, parent_pattern = str(path[-1]), _field_pattern(path[:-1])
    if any(field.name == word for field in known_fields()):
        return word
    return "".join(
        nearest(word, [field.name for field in known_fields() if _parent(field) == parent_pattern])
    )


def _wrong_type(kind: str, value: object) -> str:
    if kind == "string_type" and value is None:
        return 'has no value; write "" for an empty string'
    if kind == "dict_type" and isinstance(value, list) and (written := _as_mapping(value)):
        return f"must be a mapping, not a list; write `{written}`"
    if kind == "list_type" and isinstance(value, str):
        items = ", ".join(item.strip() for item in value.split(",") if item.strip())
        written = shortened(f"[{items}]", _MAX_REMEDY)
        return f"must be a list, not {show_value(value)}; write `{written}`"
    if kind == "model_type" and isinstance(value, list):
        has_fields = bool(value) and isinstance(value[0], dict)
        remedy = "leave out the dash" if has_fields else "write each field as NAME: VALUE"
        return f"must be a mapping of its fields, not a list; {remedy}"
    if kind == "int_type" and isinstance(value, str) and literal_value(value).__class__ is int:
        return f"must be a whole number, not {show_value(value)}; remove the quotes"
    expected = {
        "string_type": "a string",
        "bool_type": "true or false",
        "int_type": "a whole number",
        "list_type": "a list (each item on a line that begins with `- `, or as [a, b])",
        "dict_type": "a mapping of names to values",
        "model_type": "a mapping of its fields",
    }[kind]
    return f"must be {expected}, not {show_value(value)}"


def _as_mapping(items: list[object]) -> str:
    """Format the mapping that a list was meant as; "" if that is not clear.

    People write environment variables as in a container (`- name: A` and `value: b`), as `- A: b`,
    and as `- A=b`.
    """
    mapping: dict[str, str] = {}
    for item in items[:_MAX_PAIRS]:
        pair = _pair(item)
        if pair is None:
            return ""
        mapping[pair[0]] = pair[1]
    truncated = len(items) > _MAX_PAIRS
    written = flow(mapping)
    return shortened(written.removesuffix("}") + ", ...}" if truncated else written, _MAX_REMEDY)


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
    alternatives = " or ".join(choices) if two else "one of " + ", ".join(choices)
    synonym = _SYNONYMS.get(str(value).lower())
    hint = f" (did you mean {synonym}?)" if synonym in choices else suggestion(value, choices)
    return f"must be {alternatives}, not {show_value(value)}{hint}"


class KnownField(NamedTuple):
    """A field of the file, as documented in the reference."""

    path: str  #: `fabrics[].match.gpuResources`
    name: str
    description: str


def _unknown_field(path: tuple[int | str, ...]) -> str:
    word, parent_pattern = str(path[-1]), _field_pattern(path[:-1])
    fields = [field.name for field in known_fields() if _parent(field) == parent_pattern]
    if explanation := explain_misread_key(word):
        return f"unknown field ({explanation})"
    parents = [_parent(field) for field in known_fields() if field.name == word]
    # The name alone may be meant in another sense: only an adjacent place is likely.
    if len(parents) == 1 and (
        parents[0] == _above(parent_pattern) or _above(parents[0]) == parent_pattern
    ):
        return f"unknown field here; it belongs in {parents[0] or 'spec'}"
    return (
        f"unknown field{suggestion(word, fields) or '; the fields here are ' + ', '.join(fields)}"
    )


def _above(path: str) -> str:
    """Return the path of the mapping that contains another."""
    return path.rpartition(".")[0]


def _description(path: tuple[int | str, ...]) -> str:
    """Return what a field is, as a parenthesis."""
    descriptions = {field.path: field.description.removesuffix(".") for field in known_fields()}
    name = ".".join(part for part in (_field_pattern(path[:-1]), str(path[-1])) if part)
    return f" ({descriptions[name][:1].lower()}{descriptions[name][1:]})"


def _field_pattern(path: tuple[int | str, ...]) -> str:
    """Return a path in the form of `KnownField.path`: `fabrics[].match`."""
    return "".join("[]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def _parent(field: KnownField) -> str:
    return field.path.removesuffix(field.name).removesuffix(".")


@cache
def known_fields() -> tuple[KnownField, ...]:
    """Return all fields of the file in the order of the models, each before the fields below it."""
    return tuple(_known_fields("", FabricConfigurationSpec))


def _known_fields(parent_pattern: str, model: type[BaseModel]) -> Iterator[KnownField]:
    for name, field in model.model_fields.items():
        alias = field.alias or name
        path = f"{parent_pattern}.{alias}" if parent_pattern else alias
        yield KnownField(path, alias, " ".join((field.description or "").split()))
        below = f"{path}[]" if get_origin(field.annotation) is list else path
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _known_fields(below, kind)
