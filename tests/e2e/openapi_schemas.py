"""Turn a running API server's OpenAPI into kubeconform's input: one JSON Schema per kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

#: kubeconform looks up a kind's file by this pattern: deployment-apps-v1.json, pod-v1.json.
LOCATION = "{{.ResourceKind}}{{.KindSuffix}}.json"
_REFERENCES = "#/components/schemas/"


def write_schemas(
    raw: Callable[[str], str], documents: Sequence[dict[str, Any]], folder: Path
) -> bool:
    """Write the schemas of all kinds in these documents' apiVersions; `raw` fetches a path.

    Return whether every document has one: the API server publishes those of a new kind after a
    moment.
    """
    index = json.loads(raw("/openapi/v3"))["paths"]
    for version in {document["apiVersion"] for document in documents}:
        path = f"apis/{version}" if "/" in version else f"api/{version}"
        if path not in index:
            return False
        schemas = json.loads(raw(index[path]["serverRelativeURL"]))["components"]["schemas"]
        definitions = {name: _closed(schema) for name, schema in schemas.items()}
        for name, schema in schemas.items():
            for kind in schema.get("x-kubernetes-group-version-kind", ()):
                kind_schema = {"$ref": f"#/definitions/{name}", "definitions": definitions}
                _file(folder, kind).write_text(json.dumps(kind_schema), encoding="utf-8")
    return all(_file(folder, _kind_of(document)).exists() for document in documents)


def _kind_of(document: dict[str, Any]) -> dict[str, str]:
    group, _, version = document["apiVersion"].rpartition("/")
    return {"group": group, "version": version, "kind": document["kind"]}


def _file(folder: Path, kind: dict[str, str]) -> Path:
    """Return the file that LOCATION names."""
    group = kind["group"].partition(".")[0]
    parts = [kind["kind"], *([group] if group else []), kind["version"]]
    return folder / f"{'-'.join(parts).lower()}.json"


def _closed(schema: Any) -> Any:
    """Rewrite references, and reject unknown fields of objects, as `-strict` requires."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if isinstance(schema.get("$ref"), str):
        closed["$ref"] = schema["$ref"].replace(_REFERENCES, "#/definitions/")
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        open_ = schema.get("x-kubernetes-preserve-unknown-fields", False)
        closed.setdefault("additionalProperties", open_)
    return closed
