"""The schemas of the fabrics file: for editors, and for a CustomResourceDefinition."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pydantic.json_schema import GenerateJsonSchema

from webhook.config.model import FabricConfiguration
from webhook.model.json import Json, JsonObject

#: A JSON Schema, or a part of one.
Schema: TypeAlias = JsonObject

# For editors: types, choices, and what a field means.


class _Generator(GenerateJsonSchema):
    """A generator without field titles, which would repeat the names in an editor's hover."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - pydantic's hook
        return False


def json_schema() -> Schema:
    """Return the schema, draft 2020-12."""
    schema = FabricConfiguration.model_json_schema(schema_generator=_Generator)
    return {"$schema": _Generator.schema_dialect, **_on_one_line(schema)}


def schema_text() -> str:
    """Return the schema as the text of fabrics.schema.json."""
    return json.dumps(json_schema(), indent=2) + "\n"


def _on_one_line(node: Json) -> Json:
    """Join the lines of descriptions, which are wrapped in the source."""
    if isinstance(node, dict):
        return {
            key: " ".join(value.split())
            if key == "description" and isinstance(value, str)
            else _on_one_line(value)
            for key, value in node.items()
        }
    return [_on_one_line(item) for item in node] if isinstance(node, list) else node


# A JSON Schema as a CustomResourceDefinition may have it: a structural schema.
#
# It has no references, and each field has one type. A field that is not required may be null,
# which means the same as an unset one. Choices are not nullable: the API server never takes a
# null for one of `enum`. It drops such a null, except in a server-side apply, which it rejects.
# Unknown fields are preserved in every object, since the API server would drop a misspelled one
# without a word, and the webhook could not name the right one. Nothing has a `default`, so that
# an object says what its author wrote; the descriptions name the defaults.
#
# Source: Kubernetes' documentation, "Extend the Kubernetes API with CustomResourceDefinitions",
# "Specifying a structural schema".

#: An object whose unknown fields are preserved.
PRESERVED: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_INT_OR_STRING: Schema = {"x-kubernetes-int-or-string": True}
#: What is taken over as it is.
_KEPT = ("type", "minimum", "maximum", "minItems")
#: The word of a choice that YAML 1.1 takes for a boolean; kubectl reads YAML 1.1.
_OFF = "off"


def structural(node: Schema, defined: Mapping[str, Schema]) -> Schema:
    """Return a part of a JSON Schema as a structural schema; `defined` are the whole's `$defs`."""
    if "$ref" in node:
        node = {**defined[node["$ref"].rpartition("/")[2]], **node}
    options = _options(node)
    only = options[0] if len(options) == 1 else None
    made = _INT_OR_STRING if only is None else _typed(only, defined)
    described = " ".join(_described(node, only or {}))
    return {"description": described, **made} if described else dict(made)


def _options(node: Schema) -> list[Schema]:
    """Return a schema for each type of a field, without null.

    A list of types means that a file may write the value in a shorter way; an object has the long
    one.
    """
    if "anyOf" in node:
        return [found for one in node["anyOf"] for found in _options(one)]
    kind = node.get("type", "string")  # a constant has no type
    if isinstance(kind, list):
        kind = "array" if "array" in kind else "string"
    return [] if kind == "null" else [{**node, "type": kind}]


def _typed(node: Schema, defined: Mapping[str, Schema]) -> Schema:
    made = {key: node[key] for key in _KEPT if key in node}
    if "enum" in node:
        return _choice(node["enum"])
    if "properties" in node:
        made |= PRESERVED
        required = node.get("required", [])
        made |= {"required": required} if required else {}
        made["properties"] = {
            key: structural(one, defined)
            if key in required
            else _nullable(structural(one, defined))
            for key, one in node["properties"].items()
        }
    elif node["type"] == "object":
        made["additionalProperties"] = _nullable(structural(node["additionalProperties"], defined))
    elif node["type"] == "array":
        made["items"] = _undescribed(structural(node["items"], defined))
    return made


def _nullable(field: Schema) -> Schema:
    return field if "enum" in field else {**field, "nullable": True}


def _undescribed(item: Schema) -> Schema:
    """Return the schema of a list's items; `kubectl explain` would describe the list twice."""
    return {key: value for key, value in item.items() if key != "description"}


def _choice(words: list[str]) -> Schema:
    """Return the schema of a choice: where `off` is one, an unquoted `off` is as good."""
    if _OFF not in words:
        return {"type": "string", "enum": words}
    return {"x-kubernetes-preserve-unknown-fields": True, "enum": [*words, False]}


def _described(node: Schema, only: Schema) -> Iterator[str]:
    """Yield the description, and what `kubectl explain` would not show: range and default."""
    if "description" in node:
        yield node["description"]
    if "maximum" in only:
        yield f"From {only['minimum']} to {only['maximum']}."
    if _OFF in only.get("enum", ()):
        yield f"`false` means `{_OFF}`: kubectl reads an unquoted `{_OFF}` as false."
    if (default := _shown(node.get("default"))) and "description" in node:
        yield f"Defaults to `{default}`."


def _shown(default: Json) -> str:
    """Show a default as YAML; "" if there is none, or an empty one."""
    match default:
        case bool():
            return "true" if default else "false"
        case [_, *_]:
            return f"[{', '.join(default)}]"
        case str() | int():
            return str(default)
        case _:
            return ""
