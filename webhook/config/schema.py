"""The JSON Schema of the fabrics file, for editors: types, choices, and what a field means."""

from __future__ import annotations

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from webhook.config.model import FabricConfiguration


class _Generator(GenerateJsonSchema):
    """A generator without field titles, which would repeat the names in an editor's hover."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's hook
        return False


def json_schema() -> dict[str, Any]:
    """Return the schema, draft 2020-12."""
    schema = FabricConfiguration.model_json_schema(schema_generator=_Generator)
    return {"$schema": _Generator.schema_dialect, **_on_one_line(schema)}


def schema_text() -> str:
    """Return the schema as the text of fabrics.schema.json."""
    return json.dumps(json_schema(), indent=2) + "\n"


def _on_one_line(node: Any) -> Any:
    """Join the lines of descriptions, which are wrapped in the source."""
    if isinstance(node, dict):
        return {
            key: " ".join(value.split())
            if key == "description" and isinstance(value, str)
            else _on_one_line(value)
            for key, value in node.items()
        }
    return [_on_one_line(item) for item in node] if isinstance(node, list) else node
