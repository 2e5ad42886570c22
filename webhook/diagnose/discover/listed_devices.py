"""RDMA devices that only lists of other things name: tables of GIDs, and distances from GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from webhook.diagnose.discover.site import SourcedObservation
from webhook.diagnose.tools.observations import (
    DistanceObservation,
    GidObservation,
    PortObservation,
)
from webhook.model.names import natural_key

#: The name of a column of nvidia-smi topo -m, if its legend does not name the device.
_COLUMN = re.compile(r"NIC\d{1,3}", re.ASCII)


def listed_devices(observations: Sequence[SourcedObservation]) -> Iterator[SourcedObservation]:
    """Yield a port for each device that no tool shows as such, but GIDs or distances name.

    RoCE v2, and an interface next to a GID, are of Ethernet; on InfiniBand, there is neither.
    """
    named = {
        observation.device
        for _, observation in observations
        if isinstance(observation, PortObservation)
    }
    gids: dict[tuple[str, str, str, int], list[GidObservation]] = {}
    for file, observation in observations:
        if isinstance(observation, GidObservation) and observation.device not in named:
            key = (file, observation.origin.tool, observation.device, observation.port)
            gids.setdefault(key, []).append(observation)
        elif isinstance(observation, DistanceObservation) and not (
            observation.nic in named or _COLUMN.fullmatch(observation.nic)
        ):
            yield SourcedObservation(file, PortObservation(observation.origin, observation.nic))
    for (file, *_), table in gids.items():
        yield SourcedObservation(file, _port_of_table(table))


def _port_of_table(table: Sequence[GidObservation]) -> PortObservation:
    """Return the port with these GIDs; a VLAN on its interface is another interface."""
    netdevs = tuple(sorted({gid.netdev for gid in table if gid.netdev}, key=natural_key))
    is_ethernet = bool(netdevs) or any(gid.version == "v2" for gid in table)
    first = min(table, key=lambda gid: gid.origin)
    return PortObservation(
        first.origin,
        first.device,
        first.port,
        netdevs=netdevs or None,
        link_layer="Ethernet" if is_ethernet else None,
    )
