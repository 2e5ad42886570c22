"""All that is wrong with nodes or differs between those of a fabric, the most severe first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from webhook.diagnose.discover.apart_nodes import outside_fabrics, slower_nodes
from webhook.diagnose.discover.node_settings import (
    different_drivers,
    exclusive_devices,
    limited_memlock,
    missing_peer_memory,
)
from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.port_checks import (
    bad_cables,
    bad_counters,
    different_firmware,
    slow_slots,
)
from webhook.diagnose.discover.port_selection import NodeChoice
from webhook.diagnose.discover.port_states import (
    devices_missing,
    missing_gids,
    ports_down,
    ports_never_up,
    slow_ports,
    unknown_states,
)
from webhook.diagnose.discover.site import FindingLevel, FoundNode, SiteFinding

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
    nodes: Iterable[FoundNode],
    choices: Iterable[NodeChoice],
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
