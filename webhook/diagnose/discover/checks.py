"""All that is wrong with nodes or differs between those of a fabric, the most severe first.

The checks of ports are in `port_checks`; those of nodes are here, with the list of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from webhook.diagnose.discover.groups import Group
from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.port_checks import (
    bad_cables,
    bad_counters,
    devices_missing,
    different_firmware,
    missing_gids,
    ports_down,
    ports_never_up,
    slow_ports,
    slow_slots,
    unknown_states,
)
from webhook.diagnose.discover.port_selection import PortSelection
from webhook.diagnose.discover.site import FindingLevel, SiteFinding, SiteNode, gbps, listed_nodes
from webhook.diagnose.discover.used_ports import most_common

# Find nodes that are in no fabric, or in a slower one than nodes with the same cards.


def outside_fabrics(choice: PortSelection) -> Iterator[SiteFinding]:
    """Yield what keeps a node out of every fabric, and what is odd about its other devices."""
    node = choice.node
    if not any(port.device for port in node.ports):
        yield SiteFinding(
            "error",
            (node.name,),
            "no tool shows an RDMA device",
            "Check that a network card is there (lspci -nn) and that its RDMA driver is loaded "
            "(mlx5_ib for NVIDIA), or collect again with all tools: rdma-webhook discover script.",
        )
    elif choice.card is None:
        yield SiteFinding(
            "error",
            (node.name,),
            "no tool says the link layer of any port, so the node is in no fabric",
            "Add the output of ibstat, ibstatus or ibv_devinfo, or collect again: rdma-webhook "
            "discover script.",
        )
    for port in node.ports:
        if port.device is None and any(other.device for other in node.ports):
            yield SiteFinding(
                "warning",
                (node.name,),
                f"{port.model or 'a card'} at {port.pci} has no RDMA device",
                "Load its RDMA driver (mlx5_ib for NVIDIA), or leave it to other traffic.",
            )


def slower_nodes(groups: Iterable[Group]) -> Iterator[SiteFinding]:
    """Yield nodes with the same GPUs and cards as others whose ports run slower."""
    best: dict[tuple[object, ...], Group] = {}
    ordered = sorted(groups, key=lambda group: -(group.rate or 0))
    for group in ordered:
        fastest = best.setdefault((group.product, group.card), group)
        if group.rate is not None and fastest.rate is not None and group.rate < fastest.rate:
            yield SiteFinding(
                "warning",
                group.nodes,
                f"all ports run at {gbps(group.rate)}, where the same cards of "
                f"{listed_nodes(fastest.nodes)} run at {gbps(fastest.rate)}",
                "Compare cables and switches; a job over both runs at the slower rate.",
            )


# Find settings and drivers of nodes that keep containers from RDMA.


def exclusive_devices(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield nodes on which containers cannot share RDMA devices."""
    for choice in plan.group.choices:
        if plan.mode == "shared-device" and choice.node.settings.get("netns") == "exclusive":
            yield SiteFinding(
                "error",
                (choice.node.name,),
                "RDMA devices belong to one network namespace (netns exclusive): the RDMA shared "
                "device plugin offers none",
                "Run rdma system set netns shared, and write options ib_core netns_mode=1 into "
                "/etc/modprobe.d.",
            )


def limited_memlock(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield nodes on which containerd limits what containers may lock."""
    for choice in plan.group.choices:
        memlock = choice.node.settings.get("memlock")
        if memlock is not None and memlock != "infinity":
            yield SiteFinding(
                "note",
                (choice.node.name,),
                f"containerd limits locked memory to {memlock} bytes, which stops RDMA in "
                "containers that do not run as root, since IPC_LOCK does nothing there",
                "Write LimitMEMLOCK=infinity into a drop-in of containerd.service and restart it; "
                "then set defaults.memlock: unlimited.",
            )


def missing_peer_memory(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield nodes with GPUs on which the module for GPUDirect RDMA is not loaded."""
    for choice in plan.group.choices:
        if choice.node.gpus and choice.node.settings.get("peermem") == "no":
            yield SiteFinding(
                "note",
                (choice.node.name,),
                "nvidia_peermem is not loaded: GPUDirect RDMA then needs DMA-BUF",
                "Load nvidia_peermem (modprobe nvidia_peermem), or check that NCCL says GDRDMA.",
            )


def different_drivers(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield nodes whose RDMA driver is not that of most nodes."""
    shown = Counter(
        driver
        for choice in plan.group.choices
        if (driver := choice.node.settings.get("driver")) is not None
    )
    if len(shown) < 2:  # noqa: PLR2004
        return
    usual = most_common(shown.elements())
    for choice in plan.group.choices:
        driver = choice.node.settings.get("driver", usual)
        if driver != usual:
            yield SiteFinding(
                "warning",
                (choice.node.name,),
                f"the RDMA driver is {driver}, where most nodes have {usual}",
                "Install one driver on all nodes of the fabric.",
            )


# All checks in their order, and what they find at a site.

_RANK = {"error": 0, "warning": 1, "note": 2}
#: In the order in which findings of one severity are shown.
_CHECKS: tuple[Callable[[FabricPlan], Iterable[SiteFinding]], ...] = (
    ports_down,
    devices_missing,
    slow_ports,
    slow_slots,
    missing_gids,
    exclusive_devices,
    ports_never_up,
    unknown_states,
    different_firmware,
    different_drivers,
    bad_cables,
    bad_counters,
    limited_memlock,
    missing_peer_memory,
)


def site_findings(
    nodes: Iterable[SiteNode],
    choices: Iterable[PortSelection],
    plans: Sequence[FabricPlan],
    others: Iterable[SiteFinding] = (),
) -> list[SiteFinding]:
    """Return all findings, the most severe first; alike ones of several nodes as one."""
    found: list[SiteFinding] = [*others]
    for node in nodes:
        found += node.findings
    for choice in choices:
        found += outside_fabrics(choice)
    for plan in plans:
        for check in _CHECKS:
            found += check(plan)
    found += slower_nodes([plan.group for plan in plans])
    return _together(found)


def _together(found: Iterable[SiteFinding]) -> list[SiteFinding]:
    nodes: dict[tuple[FindingLevel, str, str], dict[str, None]] = {}
    for one in found:
        key = (one.severity, one.message, one.remedy)
        nodes.setdefault(key, {}).update(dict.fromkeys(one.nodes))
    merged = [
        SiteFinding(severity, tuple(of), message, remedy)
        for (severity, message, remedy), of in nodes.items()
    ]
    return sorted(merged, key=lambda one: _RANK[one.severity])
