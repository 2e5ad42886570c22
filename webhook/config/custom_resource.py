"""The Kubernetes object around the configuration: what it may hold, and in what form.

It comes from a file or, as JSON, from the API server, whose rules are stricter than a file's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from webhook.config.findings import invalid_configuration
from webhook.config.messages import instead_of, show_value, suggestion
from webhook.config.model import API_VERSION, KIND, FabricConfigurationSpec
from webhook.config.schema import Schema, json_schema, structural
from webhook.model.pod import Path
from webhook.text.yaml.tree import TextLimits

# The document around the configuration, which is in `spec`.

#: Fields of every Kubernetes object, besides `spec`.
_OF_OBJECTS = ("apiVersion", "kind", "metadata", "status")
_FIELDS_HERE = ": the fields here are apiVersion, kind, metadata and spec"
#: The only name that the webhook reads.
NAME = "default"
#: Fields of the configuration.
FIELDS = tuple(field.alias or name for name, field in FabricConfigurationSpec.model_fields.items())
#: The object, as kubectl names it.
OBJECT = f"fabricconfigurations.rdma.lab/{NAME}"


class Misplaced(NamedTuple):
    """What is wrong with the document around the configuration."""

    path: Path
    message: str


def foreign(data: Mapping[str, object]) -> Iterator[Misplaced]:
    """Report a document of another kind or version; its other fields are then not checked."""
    for key, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        actual = data.get(key)
        if actual == expected:
            continue
        if actual:
            message = (
                f"must be {expected}, not {show_value(actual)}{suggestion(actual, (expected,))}"
            )
        else:
            message = f"is missing: write {key}: {expected}{instead_of(key, data)}"
        yield Misplaced((key,), message)


def object_errors(data: Mapping[str, object]) -> Iterator[Misplaced]:
    """Report what is wrong outside `spec`; a document whose `spec` is no mapping has an error."""
    yield from _of_metadata(data)
    others = [key for key in data if key not in (*_OF_OBJECTS, "spec")]
    spec = data.get("spec")
    if spec is not None and not isinstance(spec, dict):
        yield Misplaced(("spec",), f"{show_value(spec)} must be a mapping of its fields")
    elif spec is None and not any(key in FIELDS for key in others):
        message = f"is missing: write spec{instead_of('spec', others)}, with fabrics below it"
        yield Misplaced(("spec",), message)
    yield from _beside_spec(others)


def _beside_spec(keys: Iterable[str]) -> Iterator[Misplaced]:
    for key in keys:
        if key in FIELDS:
            yield Misplaced((key,), "is a field of spec: put it below `spec:`, indented")
        else:
            near = suggestion(key, (*_OF_OBJECTS, "spec")) or _FIELDS_HERE
            yield Misplaced((key,), f"unknown field{near}")


def _of_metadata(data: Mapping[str, object]) -> Iterator[Misplaced]:
    """Report a name that the webhook would not read; a file may leave it out."""
    metadata = data.get("metadata")
    if metadata is None:
        return
    if not isinstance(metadata, dict):
        yield Misplaced(("metadata",), f"{show_value(metadata)} must be a mapping of its fields")
    elif (name := metadata.get("name", NAME)) != NAME:
        message = (
            f"must be {NAME}, not {show_value(name)}: the webhook reads only the object of"
            " that name"
        )
        yield Misplaced(("metadata", "name"), message)


# An object as the API server writes it, within the limits of a fabrics file.


class JsonData:
    """Data without lines, whose size has been checked."""

    def __init__(self, data: dict[str, object], name: str, limits: TextLimits) -> None:
        """Raise InvalidConfiguration if the data is over a limit."""
        self.data = data
        _check_shape(data, name, limits)
        #: The data as JSON.
        self.text = json.dumps(data, ensure_ascii=False)
        if len(self.text) > limits.octets:
            raise invalid_configuration(
                name, f"is larger than {limits.octets:,} characters, the maximum"
            )

    def line(self, path: Path) -> None:
        """Return None: an object has no lines."""


def _check_shape(data: dict[str, object], name: str, limits: TextLimits) -> None:
    """Count values level by level, so that no depth can exhaust the stack."""
    level: list[object] = [data]
    values = 0
    for _ in range(limits.depth):
        values += len(level)
        if values > limits.nodes:
            raise invalid_configuration(
                name, f"contains more than {limits.nodes:,} values, the maximum"
            )
        level = [child for one in level for child in _children(one)]
        if not level:
            return
    raise invalid_configuration(name, f"is nested deeper than {limits.depth} levels")


def _children(one: object) -> list[object]:
    if isinstance(one, dict):
        return [*one, *one.values()]  # a key counts, as it does in YAML
    return one if isinstance(one, list) else []


# What the API server would reject in a file that is right otherwise: values of another type.
#
# A file may write `env: {NCCL_CROSS_NIC: 1}` or a word in place of a list of one. In a cluster
# each field has one type, that of the structural schema, and kubectl reads YAML 1.1, where more
# words are booleans and numbers.

_ANY: Schema = {}
_SCALARS = (str, int, float, bool)


class Rejected(NamedTuple):
    """A value that the API server would reject, and what to write."""

    path: Path  #: below `spec`
    message: str


def type_errors(spec: object) -> Iterator[Rejected]:
    """Yield the values of a spec, as kubectl sends it, that have another type than the object's.

    Only those that a file may have: whatever is wrong in any case is left to the model.
    """
    return _rejected(spec, _of_spec(), ())


def _of_spec() -> Schema:
    whole = json_schema()
    return structural(whole["properties"]["spec"], whole["$defs"])


def _rejected(value: object, schema: Schema, path: Path) -> Iterator[Rejected]:
    kind = schema.get("type")
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _rejected(inner, _field(schema, key), (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _rejected(inner, schema.get("items", _ANY), (*path, place))
    elif kind == "string" and isinstance(value, _SCALARS) and not isinstance(value, str):
        message = (
            f"kubectl sends {show_value(value)}, which the API server rejects: put it in quotes"
        )
        yield Rejected(path, message)
    elif kind == "array" and isinstance(value, _SCALARS):
        message = (
            f"the API server rejects {show_value(value)} here: write a list of one,"
            f" [{_item(value)}]"
        )
        yield Rejected(path, message)


def _field(schema: Schema, key: str) -> Schema:
    """Return the schema of a field; one that allows anything if there is no such field."""
    named = schema.get("properties", _ANY).get(key)
    found: Schema = named or schema.get("additionalProperties", _ANY)
    return found


def _item(value: object) -> str:
    """Write a value as an item of a list; all lists that may be a single value have strings."""
    return f'"{value if isinstance(value, str) else show_value(value)}"'
