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
# The order is as in `webhook.preview.formats`: over HTTP, the first one is the default. What
# writes tables is imported only where one is written, since the server needs it rarely.

FABRICS_FORMATS = (
    OutputFormat("json", "everything, for programs", JSON_TYPES),
    OutputFormat("text", "a table", TEXT_TYPES),
    OutputFormat("wide", "a table with the names of all nodes"),
)


class FabricsReader(NamedTuple):
    """Who reads the inventory."""

    #: Columns of a line of text.
    width: int = 100
    #: Whether to use ANSI colors.
    colour: bool = False
    #: Whether it may be anybody, who learns no names of nodes: `wide` is then as `text`.
    anonymous: bool = False


def fabrics_output(found: FabricInventory, name: str, reader: FabricsReader) -> str:
    """Write an inventory in a format of FABRICS_FORMATS."""
    if name == "json":
        form = anonymous_form(found) if reader.anonymous else fabrics_form(found)
        return visible_json(json.dumps(form, indent=2, ensure_ascii=False)) + "\n"
    from webhook.preview.fabrics.text import anonymous_text, fabrics_text  # noqa: PLC0415 -- rich

    if reader.anonymous:
        return anonymous_text(found, width=reader.width)
    wide = name == "wide"
    return fabrics_text(found, width=reader.width, colour=reader.colour, wide=wide)


# The inventory of fabrics for programs: stable, and described by `fabrics-output.schema.json`.
#
# Keys may be added, but are never renamed; so is every code.

_SCHEMA = Path(__file__).with_name("fabrics-output.schema.json")


def fabrics_form(found: FabricInventory) -> JsonObject:
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
            for one in found.unassigned_nodes
        ],
        "nodes": found.nodes,
        "otherNodes": found.others,
    }


def anonymous_form(found: FabricInventory) -> JsonObject:
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


def _fabric(one: FabricCapacity) -> JsonObject:
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
