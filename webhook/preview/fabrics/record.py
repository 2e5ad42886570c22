"""The inventory of fabrics in its output formats, on the command line and over HTTP."""

from __future__ import annotations

import json
from typing import NamedTuple

from typing_extensions import TypedDict

from webhook.model.fabric import CompiledConfiguration
from webhook.model.fabric_findings import without_nodes
from webhook.model.inventory import FabricCapacity, FabricInventory
from webhook.preview.formats import JSON_TYPES, TEXT_TYPES, OutputFormat
from webhook.text.escape import visible_json
from webhook.text.findings import FindingForm, finding_form

# The formats.
#
# As in `webhook.preview.formats`, the first format is the default over HTTP. The module that
# writes tables is imported only to write one, which the server rarely does.

FABRICS_FORMATS = (
    OutputFormat("json", "everything, for programs", JSON_TYPES),
    OutputFormat("text", "a table", TEXT_TYPES),
    OutputFormat("wide", "a table with the names of all nodes"),
)


class FabricsDisplay(NamedTuple):
    """How, and for whom, an inventory is displayed."""

    #: Columns of a line of text.
    width: int = 100
    #: Whether to use ANSI colors.
    color: bool = False
    #: Whether the audience is unknown, and so gets no node names: `wide` is then like `text`.
    anonymous: bool = False


def fabrics_output(inventory: FabricInventory, name: str, display: FabricsDisplay) -> str:
    """Write an inventory in a format of FABRICS_FORMATS."""
    if name == "json":
        form: AnonymousForm | FabricsForm = (
            anonymous_form(inventory) if display.anonymous else fabrics_form(inventory)
        )
        return visible_json(json.dumps(form, indent=2, ensure_ascii=False)) + "\n"
    from webhook.preview.fabrics.text import anonymous_text, fabrics_text  # noqa: PLC0415 -- rich

    if display.anonymous:
        return anonymous_text(inventory, width=display.width)
    wide = name == "wide"
    return fabrics_text(inventory, width=display.width, color=display.color, wide=wide)


def fabrics_without_nodes(configuration: CompiledConfiguration, display: FabricsDisplay) -> str:
    """Write the fabrics of a configuration as text, where no nodes are known."""
    from webhook.preview.fabrics.text import text_without_nodes  # noqa: PLC0415 -- rich

    return text_without_nodes(configuration, width=display.width)


# The inventory of fabrics for programs. Keys and codes may be added, but are never renamed.


class AmountsForm(TypedDict):
    """As FabricForm, with counts instead of node names, and with problems only."""

    name: str
    nodes: int
    """The number of its nodes that take pods."""
    unavailableNodes: int
    """The number of its nodes that take no pods."""
    gpus: dict[str, int]
    """GPU resource: the allocatable amount."""
    resources: dict[str, int]
    """RDMA resource of the fabric: the allocatable amount."""
    findings: list[FindingForm]


class AnonymousForm(TypedDict):
    """The amounts of each fabric, without node names."""

    fabrics: list[AmountsForm]


class FabricForm(TypedDict):
    """The nodes of a fabric that take pods, and what they offer."""

    name: str
    nodes: list[str]
    """The names of its nodes that take pods, in natural order: node-2 before node-10."""
    unavailableNodes: list[str]
    """The names of its nodes that take no pods; the findings have the reasons."""
    gpus: dict[str, int]
    """GPU resource: the allocatable amount."""
    resources: dict[str, int]
    """RDMA resource of the fabric: the allocatable amount."""
    free: dict[str, int] | None
    """GPUs and RDMA resources that no pod has reserved; null if the pods were not read."""
    findings: list[FindingForm]
    """What keeps pods from using the fabric; at level info, taints that pods must tolerate."""


class FabricsForm(TypedDict):
    """What the nodes of each fabric offer, and what is wrong with them."""

    well: bool
    """Whether there are no findings, except at level info."""
    fabrics: list[FabricForm]
    """In the order of the configuration."""
    findings: list[FindingForm]
    """Nodes that belong to no fabric, or to several."""
    nodes: int
    """The number of all nodes."""
    otherNodes: int
    """The number of nodes without a GPU, an RDMA resource and a label of a fabric."""
    unlistedDevices: dict[str, int]
    """Accelerator or NIC that no fabric lists: the number of these nodes that offer it."""


def fabrics_form(inventory: FabricInventory) -> FabricsForm:
    """Return an inventory as plain JSON values."""
    return FabricsForm(
        well=inventory.is_healthy,
        fabrics=[_fabric(fabric) for fabric in inventory.fabrics],
        findings=[finding_form(finding) for finding in inventory.findings],
        nodes=inventory.nodes,
        otherNodes=inventory.unrelated_nodes,
        unlistedDevices=dict(inventory.unlisted_devices),
    )


def _fabric(fabric: FabricCapacity) -> FabricForm:
    return FabricForm(
        name=fabric.name,
        nodes=list(fabric.nodes),
        unavailableNodes=list(fabric.unavailable_nodes),
        gpus=dict(fabric.gpus),
        resources=dict(fabric.resources),
        free=None if fabric.free is None else dict(fabric.free),
        findings=[finding_form(finding) for finding in fabric.findings],
    )


def anonymous_form(inventory: FabricInventory) -> AnonymousForm:
    """Return the amounts of each fabric, without nodes and taints, for an unknown audience."""
    return AnonymousForm(fabrics=[_amounts(fabric) for fabric in inventory.fabrics])


def _amounts(fabric: FabricCapacity) -> AmountsForm:
    return AmountsForm(
        name=fabric.name,
        nodes=len(fabric.nodes),
        unavailableNodes=len(fabric.unavailable_nodes),
        gpus=dict(fabric.gpus),
        resources=dict(fabric.resources),
        findings=[finding_form(without_nodes(finding)) for finding in fabric.problems],
    )


def fabrics_schema() -> str:
    """Return the JSON Schema of the output of `fabrics -o json`."""
    from webhook.text.schema import form_schema  # noqa: PLC0415 -- only for this output

    return form_schema(FabricsForm, "The output of rdma-webhook fabrics -o json")
