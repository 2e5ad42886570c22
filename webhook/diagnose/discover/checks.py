"""Faults of nodes and differences between the nodes of a fabric, the most severe first.

Checks of ports are in `port_checks`; checks of nodes are here, with the list of all.
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
from webhook.diagnose.discover.site import FindingLevel, SiteFinding, SiteNode, gbps
from webhook.diagnose.discover.used_ports import most_common
from webhook.model.names import shortened_list

# Find nodes that are in no fabric, or in a slower one than nodes with the same cards.


def outside_fabrics(choice: PortSelection) -> Iterator[SiteFinding]:
    """Yield why a node is in no fabric, and its cards without an RDMA device."""
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
    """Yield nodes whose ports run slower than the ports of nodes with the same GPUs and cards."""
    fastest_by_card: dict[tuple[object, ...], Group] = {}
    ordered = sorted(groups, key=lambda group: -(group.rate or 0))
    for group in ordered:
        fastest = fastest_by_card.setdefault((group.product, group.card), group)
        if group.rate is not None and fastest.rate is not None and group.rate < fastest.rate:
            yield SiteFinding(
                "warning",
                group.nodes,
                f"all ports run at {gbps(group.rate)}, where the same cards of "
                f"{shortened_list(fastest.nodes)} run at {gbps(fastest.rate)}",
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
    """Yield nodes on which containerd limits the memory that containers may lock."""
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
    """Yield nodes with an RDMA driver other than the most common one."""
    drivers = Counter(
        driver
        for choice in plan.group.choices
        if (driver := choice.node.settings.get("driver")) is not None
    )
    if len(drivers) < 2:  # noqa: PLR2004
        return
    usual = most_common(drivers.elements())
    for choice in plan.group.choices:
        driver = choice.node.settings.get("driver", usual)
        if driver != usual:
            yield SiteFinding(
                "warning",
                (choice.node.name,),
                f"the RDMA driver is {driver}, where most nodes have {usual}",
                "Install one driver on all nodes of the fabric.",
            )


# All checks, and the findings of a site.

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
    earlier: Iterable[SiteFinding] = (),
) -> list[SiteFinding]:
    """Return all findings, the most severe first, with equal findings of several nodes merged."""
    findings: list[SiteFinding] = [*earlier]
    for node in nodes:
        findings += node.findings
    for choice in choices:
        findings += outside_fabrics(choice)
    for plan in plans:
        for check in _CHECKS:
            findings += check(plan)
    findings += slower_nodes([plan.group for plan in plans])
    return _together(findings)


def _together(findings: Iterable[SiteFinding]) -> list[SiteFinding]:
    nodes: dict[tuple[FindingLevel, str, str], dict[str, None]] = {}
    for finding in findings:
        key = (finding.severity, finding.message, finding.remedy)
        nodes.setdefault(key, {}).update(dict.fromkeys(finding.nodes))
    merged = [
        SiteFinding(severity, tuple(node_names), message, remedy)
        for (severity, message, remedy), node_names in nodes.items()
    ]
    return sorted(merged, key=lambda finding: _RANK[finding.severity])
