"""The schemas of the fabrics file: for editors, and for a CustomResourceDefinition."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from webhook.config.model import FabricConfiguration
from webhook.model.json import Json, JsonObject
from webhook.text.schema import SchemaGenerator, unwrap_descriptions

#: A JSON Schema, or a part of one.
Schema: TypeAlias = JsonObject

# For editors: types, choices, and the meaning of a field.


def json_schema() -> Schema:
    """Return the schema, draft 2020-12."""
    schema = FabricConfiguration.model_json_schema(schema_generator=SchemaGenerator)
    return {"$schema": SchemaGenerator.schema_dialect, **unwrap_descriptions(schema)}


def schema_text() -> str:
    """Return the schema as the text of fabrics.schema.json."""
    return json.dumps(json_schema(), indent=2) + "\n"


# A JSON Schema in the form for a CustomResourceDefinition: a structural schema.
#
# It has no references, and each field has one type. A field that is not required may be null,
# which is the same as an unset field. Choices are not nullable: the API server never accepts a
# null as one of `enum`. It drops such a null, except in a server-side apply, which it rejects.
# Unknown fields are preserved in every object, since the API server would silently drop a
# misspelled one, and the webhook could not suggest the right one. Nothing has a `default`, so that
# an object contains only its author's values; the descriptions name the defaults.
#
# Source: Kubernetes' documentation, "Extend the Kubernetes API with CustomResourceDefinitions",
# "Specifying a structural schema".

#: An object whose unknown fields are preserved.
PRESERVED: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_INT_OR_STRING: Schema = {"x-kubernetes-int-or-string": True}
#: The keywords that are copied unchanged.
_COPIED = ("type", "minimum", "maximum", "minItems")
#: The word of a choice that is a boolean in YAML 1.1, which kubectl reads.
_OFF = "off"


def structural(node: Schema, defined: Mapping[str, Schema]) -> Schema:
    """Return a part of a JSON Schema as a structural schema; `defined`: the schema's `$defs`."""
    if "$ref" in node:
        node = {**defined[node["$ref"].rpartition("/")[2]], **node}
    options = _options(node)
    only = options[0] if len(options) == 1 else None
    schema = _INT_OR_STRING if only is None else _structural_type(only, defined)
    described = " ".join(_description_parts(node, only or {}))
    return {"description": described, **schema} if described else dict(schema)


def _options(node: Schema) -> list[Schema]:
    """Return a schema for each type of a field, without null.

    A list of types means that a file may contain a shorter form of the value; an object has the
    long form.
    """
    if "anyOf" in node:
        return [option for choice in node["anyOf"] for option in _options(choice)]
    kind = node.get("type", "string")  # a constant has no type
    if isinstance(kind, list):
        kind = "array" if "array" in kind else "string"
    return [] if kind == "null" else [{**node, "type": kind}]


def _structural_type(node: Schema, defined: Mapping[str, Schema]) -> Schema:
    schema = {key: node[key] for key in _COPIED if key in node}
    if "enum" in node:
        return _choice(node["enum"])
    if "properties" in node:
        schema |= PRESERVED
        required = node.get("required", [])
        schema |= {"required": required} if required else {}
        schema["properties"] = {
            key: structural(field, defined)
            if key in required
            else _nullable(structural(field, defined))
            for key, field in node["properties"].items()
        }
    elif node["type"] == "object":
        schema["additionalProperties"] = _nullable(
            structural(node["additionalProperties"], defined)
        )
    elif node["type"] == "array":
        schema["items"] = _without_description(structural(node["items"], defined))
    return schema


def _nullable(field: Schema) -> Schema:
    return field if "enum" in field else {**field, "nullable": True}


def _without_description(item: Schema) -> Schema:
    """Return the schema of a list's items; `kubectl explain` would describe the list twice."""
    return {key: value for key, value in item.items() if key != "description"}


def _choice(words: list[str]) -> Schema:
    """Return the schema of a choice; if it includes `off`, an unquoted `off` is allowed, too."""
    if _OFF not in words:
        return {"type": "string", "enum": words}
    return {"x-kubernetes-preserve-unknown-fields": True, "enum": [*words, False]}


def _description_parts(node: Schema, only: Schema) -> Iterator[str]:
    """Yield the description, and the range and default, which `kubectl explain` would not show."""
    if "description" in node:
        yield node["description"]
    if "maximum" in only:
        yield f"From {only['minimum']} to {only['maximum']}."
    if _OFF in only.get("enum", ()):
        yield f"`false` means `{_OFF}`: kubectl reads an unquoted `{_OFF}` as false."
    if (default := _default_text(node.get("default"))) and "description" in node:
        yield f"Defaults to `{default}`."


def _default_text(default: Json) -> str:
    """Format a default as YAML; "" without a default, or for an empty one."""
    match default:
        case bool():
            return "true" if default else "false"
        case [_, *_]:
            return f"[{', '.join(default)}]"
        case str() | int():
            return str(default)
        case _:
            return ""
