"""JSON Schemas of the JSON that commands print, generated from its typed forms by pydantic."""

from __future__ import annotations

import json

from pydantic import ConfigDict, TypeAdapter, with_config
from pydantic.json_schema import GenerateJsonSchema

from webhook.model.json import Json

#: No unknown keys; the docstring below a key is its description. Nested forms inherit this.
_FORM = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class SchemaGenerator(GenerateJsonSchema):
    """A generator without field titles, which would repeat the names in an editor's hover."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - pydantic's hook
        """Return False for every field."""
        return False


def form_schema(form: type, title: str) -> str:
    """Return the JSON Schema (draft 2020-12) of a TypedDict as text."""
    schema = TypeAdapter(with_config(_FORM)(form)).json_schema(schema_generator=SchemaGenerator)
    return (
        json.dumps(
            {
                "$schema": SchemaGenerator.schema_dialect,
                **unwrap_descriptions(schema),
                "title": title,
            },
            indent=2,
        )
        + "\n"
    )


def unwrap_descriptions(node: Json) -> Json:
    """Join the lines of descriptions, which are wrapped in the source."""
    if isinstance(node, dict):
        return {
            key: " ".join(value.split())
            if key == "description" and isinstance(value, str)
            else unwrap_descriptions(value)
            for key, value in node.items()
        }
    return [unwrap_descriptions(child) for child in node] if isinstance(node, list) else node
