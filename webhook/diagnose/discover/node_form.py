"""A node, its GPUs and its ports as JSON for programs.

Keys may be added, but are never renamed. A value that no tool shows, or that tools show
differently, is null.
"""

from __future__ import annotations

from typing_extensions import TypedDict

from webhook.diagnose.discover.site import MergedNode, MergedPort
from webhook.diagnose.tools.observations import LinkLayer, PortState
from webhook.text.findings import FindingForm, finding_form


class GpusForm(TypedDict):
    """The GPUs of one product in a node."""

    product: str | None
    """As GPU feature discovery writes it in the label nvidia.com/gpu.product; of AMD, such as
    AMD-Instinct-MI300X."""
    count: int | None
    """The number of these GPUs."""


class GidForm(TypedDict):
    """A row of a port's GID table."""

    index: int
    """The number for NCCL_IB_GID_INDEX and for perftest's -x."""
    gid: str
    version: str | None
    """RoCE v1 or v2: "v1", "v2"; null on InfiniBand."""
    netdev: str | None


class PortForm(TypedDict):
    """A port of an RDMA device, or a card without one."""

    device: str | None
    """The RDMA device, such as mlx5_0; null for a card without one."""
    port: int | None
    """The number of the port, from 1."""
    netdev: str | None
    """The network interface; a bond before its members."""
    state: PortState | None
    """The state of the RDMA port, not of its network interface."""
    physicalState: str | None
    """The state of the link below it, such as LinkUp, Polling or Disabled."""
    linkLayer: LinkLayer | None
    rateGbps: float | None
    """In Gb/s; null unless the port is Active, since the rate of other ports has no meaning."""
    pci: str | None
    """The PCI address, with the domain if a tool shows it."""
    model: str | None
    """The model of the card."""
    firmware: str | None
    """The version of the firmware."""
    psid: str | None
    """The board's ID for firmware (PSID), such as MT_0000000838."""
    mtu: int | None
    """The MTU that RDMA uses on the port now, in bytes; 1024 costs RoCE about 5 % of the rate."""
    gids: list[GidForm]
    """The rows of the port's GID table that tools show."""
    numa: int | None
    """The NUMA node of the card."""
    virtual: bool | None
    """Whether it is a virtual function."""
    sources: list[str]
    """The tools that show the port."""


class NodeForm(TypedDict):
    """A node, as all tools together describe it."""

    name: str
    machineType: str | None
    """A known type of machine, such as DGX H100."""
    gpus: list[GpusForm]
    ports: list[PortForm]
    findings: list[FindingForm]
    """Contradictions between tools; the findings of the discovery have them, too."""


def node_form(node: MergedNode) -> NodeForm:
    """Return a node as plain JSON values."""
    return NodeForm(
        name=node.name,
        machineType=node.machine_type,
        gpus=[GpusForm(product=gpu.product, count=gpu.number) for gpu in node.gpus],
        ports=[_port_form(port, node) for port in node.ports],
        findings=[finding_form(finding) for finding in node.findings],
    )


def _gid_forms(port: MergedPort, node: MergedNode) -> list[GidForm]:
    """Return each row once: several tools may show it, with more or less of it."""
    rows: dict[tuple[int, str], GidForm] = {}
    for gid in node.gids:
        if gid.device == port.device and gid.port == (port.port or 1):
            key = (gid.gid_index, gid.gid)
            form = rows.setdefault(
                key, GidForm(index=key[0], gid=key[1], version=None, netdev=None)
            )
            form["version"] = form["version"] or gid.version
            form["netdev"] = form["netdev"] or gid.netdev
    return [rows[key] for key in sorted(rows)]


def _port_form(port: MergedPort, node: MergedNode) -> PortForm:
    return PortForm(
        device=port.device,
        port=port.port,
        netdev=port.netdevs[0] if port.netdevs else None,
        state=port.state,
        physicalState=port.physical_state,
        linkLayer=port.link_layer,
        rateGbps=port.rate_gbps,
        pci=port.pci,
        model=port.model,
        firmware=port.firmware,
        psid=port.board_id,
        mtu=port.mtu,
        gids=_gid_forms(port, node),
        numa=port.numa,
        virtual=port.virtual,
        sources=list(port.sources),
    )
