"""The inventory of fabrics in its output formats, on the command line and over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from webhook.model.inventory import FabricCapacity, FabricInventory
from webhook.model.json import JsonObject
from webhook.preview.formats import JSON_TYPES, TEXT_TYPES, OutputFormat
from webhook.text.escape import visible_json

# The formats.
#
# As in `webhook.preview.formats`, the first format is the default over HTTP. The module that
# writes tables is imported only when needed, since the server rarely does.

FABRICS_FORMATS = (
    OutputFormat("json", "everything, for programs", JSON_TYPES),
    OutputFormat("text", "a table", TEXT_TYPES),
    OutputFormat("wide", "a table with the names of all nodes"),
)


class FabricsReader(NamedTuple):
    """The reader of an inventory."""

    #: Columns of a line of text.
    width: int = 100
    #: Whether to use ANSI colors.
    colour: bool = False
    #: Whether the reader is unknown, and so gets no node names: `wide` is then like `text`.
    anonymous: bool = False


def fabrics_output(inventory: FabricInventory, name: str, reader: FabricsReader) -> str:
    """Write an inventory in a format of FABRICS_FORMATS."""
    if name == "json":
        form = anonymous_form(inventory) if reader.anonymous else fabrics_form(inventory)
        return visible_json(json.dumps(form, indent=2, ensure_ascii=False)) + "\n"
    from webhook.preview.fabrics.text import anonymous_text, fabrics_text  # noqa: PLC0415 -- rich

    if reader.anonymous:
        return anonymous_text(inventory, width=reader.width)
    wide = name == "wide"
    return fabrics_text(inventory, width=reader.width, colour=reader.colour, wide=wide)


# The inventory of fabrics for programs: stable, and described by `fabrics-output.schema.json`.
#
# Keys may be added, but are never renamed; so is every code.

_SCHEMA = Path(__file__).with_name("fabrics-output.schema.json")


def fabrics_form(inventory: FabricInventory) -> JsonObject:
    """Return an inventory as plain JSON values."""
    return {
        "well": inventory.well,
        "fabrics": [_fabric(fabric) for fabric in inventory.fabrics],
        "misfits": [
            {
                "nodes": list(group.nodes),
                "fabrics": list(group.fits),
                "nearest": group.nearest or None,
                "why": group.why,
            }
            for group in inventory.unassigned_nodes
        ],
        "nodes": inventory.nodes,
        "otherNodes": inventory.others,
    }


def anonymous_form(inventory: FabricInventory) -> JsonObject:
    """Return the amounts of each fabric, without node names, for unknown readers."""
    return {
        "fabrics": [
            {
                "name": fabric.name,
                "nodes": len(fabric.nodes),
                "gpus": dict(fabric.gpus),
                "resources": dict(fabric.resources),
                "problems": [
                    {"code": problem.code, "text": problem.anonymous} for problem in fabric.problems
                ],
            }
            for fabric in inventory.fabrics
        ]
    }


def fabrics_output_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of the form."""
    return _SCHEMA.read_text(encoding="utf-8")


def _fabric(fabric: FabricCapacity) -> JsonObject:
    return {
        "name": fabric.name,
        "nodes": list(fabric.nodes),
        "gpus": dict(fabric.gpus),
        "resources": dict(fabric.resources),
        "free": None if fabric.free is None else dict(fabric.free),
        "problems": [
            {"code": problem.code, "text": problem.text, "nodes": list(problem.nodes)}
            for problem in fabric.problems
        ],
    }
