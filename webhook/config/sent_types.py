"""What the API server would reject in a file that is right otherwise: values of another type.

A file may write `env: {NCCL_CROSS_NIC: 1}` or a word in place of a list of one. In a cluster each
field has one type, that of the structural schema, and kubectl reads YAML 1.1, where more words are
booleans and numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from webhook.config.messages import shown
from webhook.config.schema import json_schema
from webhook.config.structural import Schema, structural
from webhook.model.path import Path

_ANY: Schema = {}
_SCALARS = (str, int, float, bool)


class Rejected(NamedTuple):
    """A value that the API server would reject, and what to write."""

    path: Path  #: below `spec`
    message: str


def rejected(spec: Any) -> Iterator[Rejected]:
    """Yield the values of a spec, as kubectl sends it, that have another type than the object's.

    Only those that a file may have: whatever is wrong in any case is left to the model.
    """
    return _rejected(spec, _of_spec(), ())


def _of_spec() -> Schema:
    whole = json_schema()
    return structural(whole["properties"]["spec"], whole["$defs"])


def _rejected(value: Any, schema: Schema, path: Path) -> Iterator[Rejected]:
    kind = schema.get("type")
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _rejected(inner, _field(schema, key), (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _rejected(inner, schema.get("items", _ANY), (*path, place))
    elif kind == "string" and isinstance(value, _SCALARS) and not isinstance(value, str):
        message = f"kubectl sends {shown(value)}, which the API server rejects: put it in quotes"
        yield Rejected(path, message)
    elif kind == "array" and isinstance(value, _SCALARS):
        message = (
            f"the API server rejects {shown(value)} here: write a list of one, [{_item(value)}]"
        )
        yield Rejected(path, message)


def _field(schema: Mapping[str, Any], key: str) -> Schema:
    """Return the schema of a field; one that allows anything if there is no such field."""
    named = schema.get("properties", _ANY).get(key)
    found: Schema = named or schema.get("additionalProperties", _ANY)
    return found


def _item(value: Any) -> str:
    """Write a value as an item of a list; all lists that may be a single value have strings."""
    return f'"{value if isinstance(value, str) else shown(value)}"'
