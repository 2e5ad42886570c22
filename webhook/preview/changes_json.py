"""The comparison of two configurations for programs: stable, and described by a JSON Schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from webhook.preview.comparison import Comparison, PodChange, Side

_SCHEMA = Path(__file__).with_name("changes.schema.json")


def changes_form(found: Comparison) -> dict[str, Any]:
    """Return a comparison as plain JSON values."""
    return {
        "compared": found.compared,
        "changes": [_change(one) for one in found.changes],
        "notes": list(found.notes),
    }


def _change(change: PodChange) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "namespace": change.namespace,
        "name": change.name,
        "path": change.path,
        "role": change.role,
        "before": _side_form(change.before),
        "after": _side_form(change.after),
        "leaves": [
            {"place": leaf.place, "before": leaf.before, "after": leaf.after}
            for leaf in change.leaves
        ],
    }


def _side_form(side: Side) -> dict[str, Any]:
    return {
        "allowed": side.allowed,
        "rdma": side.rdma,
        "because": side.because,
        "message": side.message,
        "fabric": side.fabric,
    }


def changes_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of the form."""
    return _SCHEMA.read_text(encoding="utf-8")
