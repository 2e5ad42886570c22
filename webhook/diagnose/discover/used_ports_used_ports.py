"""The ports of its nodes that a fabric uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeVar

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.port_selection import NodeChoice
from webhook.diagnose.discover.site import FoundPort

_Counted = TypeVar("_Counted", int, str)


def used_ports(plan: FabricPlan) -> Iterator[tuple[NodeChoice, FoundPort]]:
    """Yield the ports of a fabric that its pods use, node by node."""
    used = _devices(plan)
    for choice in plan.group.choices:
        for port in choice.ports:
            if port.device in used:
                yield choice, port


def used_devices(choice: NodeChoice, plan: FabricPlan) -> set[str]:
    """Return the devices of a node that its fabric uses."""
    return set(choice.devices) & _devices(plan)


def _devices(plan: FabricPlan) -> set[str]:
    return {name.partition(":")[0] for name in plan.devices.used}


def most_common(values: Iterable[_Counted]) -> _Counted:
    """Return the value that occurs most; of several such the greatest."""
    counted = Counter(values)
    return max(counted, key=lambda value: (counted[value], str(value)))
