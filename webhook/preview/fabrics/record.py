"""The output formats of the inventory of fabrics, on the command line and over HTTP.

The order is as in `webhook.preview.formats`: over HTTP, the first one is the default. What
writes tables is imported only where one is written, since the server needs it rarely.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from webhook.model.inventory import FabricInventory
from webhook.preview.fabrics.fabrics_json import anonymous_form, fabrics_form
from webhook.preview.output_format import JSON_TYPES, TEXT_TYPES, OutputFormat
from webhook.text.escape import visible_json

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
