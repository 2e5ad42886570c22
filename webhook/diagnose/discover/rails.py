"""The rails of a fabric: which device is near which GPUs (nvidia-smi topo -m)."""

from __future__ import annotations

from typing import NamedTuple

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.port_selection import DISTANCES
from webhook.diagnose.discover.site import FoundNode, natural


class Rail(NamedTuple):
    """A device at the same place of all nodes of a fabric."""

    number: int
    device: str
    #: The GPUs that are nearest to it, on all nodes that show it; () if no tool says.
    gpus: tuple[str, ...]
    #: PIX, PXB, ...; "" if no tool says.
    distance: str

    @property
    def words(self) -> str:
        """The rail for a comment: "rail 0: mlx5_0, near GPU0 (PIX)"."""
        near = f", near {', '.join(self.gpus)} ({self.distance})" if self.gpus else ""
        return f"rail {self.number}: {self.device}{near}"


def rails_of(plan: FabricPlan) -> list[Rail]:
    """Return a rail for each device, where a topology is known and is the same on all nodes."""
    found: list[Rail] = []
    for number, name in enumerate(plan.devices.used):
        device = name.partition(":")[0]
        seen = {
            near
            for choice in plan.group.choices
            if (near := nearest_gpus(choice.node, device)) is not None
        }
        if len(seen) != 1:
            return []
        gpus, distance = seen.pop()
        found.append(Rail(number, name, gpus, distance))
    return found


def nearest_gpus(node: FoundNode, device: str) -> tuple[tuple[str, ...], str] | None:
    """Return the GPUs nearest to a device, and how near; None if no topology shows it."""
    rows = [one for one in node.distances if one.nic == device and one.distance in DISTANCES]
    if not rows:
        return None
    best = min((one.distance for one in rows), key=DISTANCES.index)
    gpus = sorted({one.gpu for one in rows if one.distance == best}, key=natural)
    return tuple(gpus), best
