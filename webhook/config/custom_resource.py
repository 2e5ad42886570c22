"""The Kubernetes object around the configuration: its fields and their form.

It comes from a file or, as JSON, from the API server, whose rules are stricter than a file's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from webhook.config.findings import (
    CONFIGURATION_TOO_LARGE,
    INVALID_VALUE,
    MISSING_FIELD,
    NOT_A_CONFIGURATION,
    UNKNOWN_FIELD,
    invalid_configuration,
)
from webhook.config.messages import instead_of, show_value
from webhook.config.model import API_VERSION, KIND, FabricConfigurationSpec
from webhook.config.schema import Schema, json_schema, structural
from webhook.model.finding import Code
from webhook.model.nearest import suggestion
from webhook.model.pod import Path
from webhook.text.yaml.tree import TextLimits

# The document around the configuration, which is in `spec`.

#: Fields of every Kubernetes object, besides `spec`.
_OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "status")
_FIELDS_HERE = "; the fields here are apiVersion, kind, metadata and spec"
#: The only name that the webhook reads.
CONFIGURATION_NAME = "default"
#: The number of specs in `status.kept`. The policy rdma-webhook-guard-status has the same limit.
MAX_KEPT = 2
#: Fields of the configuration.
FIELDS = tuple(field.alias or name for name, field in FabricConfigurationSpec.model_fields.items())
#: The name of the object for kubectl.
CONFIGURATION_TITLE = f"fabricconfigurations.rdma.lab/{CONFIGURATION_NAME}"


class ObjectError(NamedTuple):
    """An error in the document around the configuration."""

    path: Path
    code: Code
    message: str


def kind_errors(data: Mapping[str, object]) -> Iterator[ObjectError]:
    """Report a document of another kind or version; its other fields are then not checked."""
    for key, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        actual = data.get(key)
        if actual == expected:
            continue
        if actual:
            message = f"{key} must be {expected}, not {show_value(actual)}"
        else:
            message = f"{key} is missing; write {key}: {expected}{instead_of(key, data)}"
        yield ObjectError((key,), NOT_A_CONFIGURATION, message)


def object_errors(data: Mapping[str, object]) -> Iterator[ObjectError]:
    """Report the errors outside `spec`, and a `spec` that is not a mapping."""
    yield from _metadata_errors(data)
    unexpected = [key for key in data if key not in (*_OBJECT_FIELDS, "spec")]
    spec = data.get("spec")
    if spec is not None and not isinstance(spec, dict):
        yield ObjectError(
            ("spec",),
            INVALID_VALUE,
            f"spec must be a mapping of its fields, not {show_value(spec)}",
        )
    elif spec is None and not any(key in FIELDS for key in unexpected):
        message = (
            f"spec is missing; write spec{instead_of('spec', unexpected)}, with fabrics below it"
        )
        yield ObjectError(("spec",), MISSING_FIELD, message)
    yield from _outside_spec(unexpected)


def _outside_spec(keys: Iterable[str]) -> Iterator[ObjectError]:
    for key in keys:
        if key in FIELDS:
            yield ObjectError(
                (key,), UNKNOWN_FIELD, f"{key} is a field of spec; put it below `spec:`, indented"
            )
        else:
            near = suggestion(key, (*_OBJECT_FIELDS, "spec")) or _FIELDS_HERE
            yield ObjectError((key,), UNKNOWN_FIELD, f"unknown field{near}")


def _metadata_errors(data: Mapping[str, object]) -> Iterator[ObjectError]:
    """Report a name that the webhook would not read; a file may leave it out."""
    metadata = data.get("metadata")
    if metadata is None:
        return
    if not isinstance(metadata, dict):
        yield ObjectError(
            ("metadata",),
            INVALID_VALUE,
            f"metadata must be a mapping of its fields, not {show_value(metadata)}",
        )
    elif (name := metadata.get("name", CONFIGURATION_NAME)) != CONFIGURATION_NAME:
        message = (
            f"name must be {CONFIGURATION_NAME}, not {show_value(name)}, since the webhook reads "
            f"only the object named {CONFIGURATION_NAME}"
        )
        yield ObjectError(("metadata", "name"), INVALID_VALUE, message)


# An object as sent by the API server, within the limits of a fabrics file.


class JsonData:
    """The object as JSON, checked for size and depth; it has no line numbers."""

    def __init__(self, data: dict[str, object], name: str, limits: TextLimits) -> None:
        """Raise InvalidConfiguration if the data has too many values or is nested too deep."""
        self.data = data
        _check_shape(data, name, limits)
        self.text = json.dumps(data, ensure_ascii=False)

    def line(self, path: Path) -> None:
        """Return None: an object has no lines."""


def _check_shape(data: dict[str, object], name: str, limits: TextLimits) -> None:
    """Count values level by level, so that no depth can exhaust the stack."""
    level: list[object] = [data]
    values = 0
    for _ in range(limits.depth):
        values += len(level)
        if values > limits.values:
            raise invalid_configuration(
                CONFIGURATION_TOO_LARGE,
                name,
                f"contains more than the maximum of {limits.values:,} values",
            )
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return
    raise invalid_configuration(
        CONFIGURATION_TOO_LARGE, name, f"is nested deeper than {limits.depth} levels"
    )


def _children(node: object) -> list[object]:
    if isinstance(node, dict):
        return [*node, *node.values()]  # a key counts, as it does in YAML
    return node if isinstance(node, list) else []


# Values of another type: the API server would reject them in an otherwise correct file.
#
# A file may have `env: {NCCL_CROSS_NIC: 1}`, or a word in place of a list with one item. In a
# cluster each field has one type, given by the structural schema, and kubectl reads YAML 1.1, in
# which more words are booleans and numbers.

_ANY: Schema = {}
_SCALARS = (str, int, float, bool)


class Rejected(NamedTuple):
    """A value that the API server would reject, with a remedy."""

    path: Path  #: below `spec`
    message: str


def type_errors(spec: object) -> Iterator[Rejected]:
    """Yield the values of a spec sent by kubectl whose type differs from the object's schema.

    Only values that a file may have are reported: the model reports all other errors.
    """
    return _rejected_values(spec, _spec_schema(), ())


@cache  # making it takes longer than all the rest of reading a configuration
def _spec_schema() -> Schema:
    """Return the schema of `spec`, which nobody may change."""
    schema = json_schema()
    return structural(schema["properties"]["spec"], schema["$defs"])


def _rejected_values(value: object, schema: Schema, path: Path) -> Iterator[Rejected]:
    kind = schema.get("type")
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _rejected_values(inner, _field(schema, key), (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _rejected_values(inner, schema.get("items", _ANY), (*path, index))
    elif kind == "string" and isinstance(value, _SCALARS) and not isinstance(value, str):
        kind_sent = "boolean" if isinstance(value, bool) else "number"
        message = (
            f"kubectl sends the {kind_sent} {show_value(value)}, but the API server requires a "
            "string; put the value in quotes"
        )
        yield Rejected(path, message)
    elif kind == "array" and isinstance(value, _SCALARS):
        message = (
            f"the API server requires a list, not {show_value(value)}; write `[{_item(value)}]`"
        )
        yield Rejected(path, message)


def _field(schema: Schema, key: str) -> Schema:
    """Return the schema of a field; for an unknown field, a schema that allows anything."""
    named = schema.get("properties", _ANY).get(key)
    field: Schema = named or schema.get("additionalProperties", _ANY)
    return field


def _item(value: object) -> str:
    """Format a value as an item of a list; all lists that may be a single value have strings."""
    return f'"{value if isinstance(value, str) else show_value(value)}"'
