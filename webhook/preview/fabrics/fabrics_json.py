"""The inventory of fabrics for programs: stable, and described by `fabrics-output.schema.json`.

Keys may be added, but are never renamed; so is every code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from webhook.model.inventory import FabricHoldings, FabricInventory

_SCHEMA = Path(__file__).with_name("fabrics-output.schema.json")


def fabrics_form(found: FabricInventory) -> dict[str, Any]:
    """Return an inventory as plain JSON values."""
    return {
        "well": found.well,
        "fabrics": [_fabric(one) for one in found.fabrics],
        "misfits": [
            {
                "nodes": list(one.nodes),
                "fabrics": list(one.fits),
                "nearest": one.nearest or None,
                "why": one.why,
            }
            for one in found.misfits
        ],
        "nodes": found.nodes,
        "otherNodes": found.others,
    }


def anonymous_form(found: FabricInventory) -> dict[str, Any]:
    """Return what those may know who may not know the nodes: amounts of each fabric."""
    return {
        "fabrics": [
            {
                "name": one.name,
                "nodes": len(one.nodes),
                "gpus": dict(one.gpus),
                "resources": dict(one.resources),
                "problems": [
                    {"code": problem.code, "text": problem.anonymous} for problem in one.problems
                ],
            }
            for one in found.fabrics
        ]
    }


def fabrics_output_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of the form."""
    return _SCHEMA.read_text(encoding="utf-8")


def _fabric(one: FabricHoldings) -> dict[str, Any]:
    return {
        "name": one.name,
        "nodes": list(one.nodes),
        "gpus": dict(one.gpus),
        "resources": dict(one.resources),
        "free": None if one.free is None else dict(one.free),
        "problems": [
            {"code": problem.code, "text": problem.text, "nodes": list(problem.nodes)}
            for problem in one.problems
        ],
    }
