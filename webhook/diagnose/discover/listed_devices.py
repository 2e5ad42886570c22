"""RDMA devices in lists of other things: tables of GIDs, and distances from GPUs.

Such a list names the device, and a table of GIDs also shows the link layer and the interface.
"""

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
    """Yield what GIDs and distances show of ports.

    RoCE v2, and an interface next to a GID, are of Ethernet; on InfiniBand, there is neither. The
    interfaces count only for a port without any from another tool, since a GID may be of a VLAN, or
    of another network namespace.
    """
    ports = [piece.observation for piece in observations]
    of_ports = [port for port in ports if isinstance(port, PortObservation)]
    named = {port.device for port in of_ports}
    with_netdevs = {(port.device, port.port) for port in of_ports if port.netdevs}
    gids: dict[tuple[str, str, str, int], list[GidObservation]] = {}
    for file, observation in observations:
        if isinstance(observation, GidObservation):
            key = (file, observation.origin.tool, observation.device, observation.port)
            gids.setdefault(key, []).append(observation)
        elif isinstance(observation, DistanceObservation) and not (
            observation.nic in named or _COLUMN.fullmatch(observation.nic)
        ):
            yield SourcedObservation(file, PortObservation(observation.origin, observation.nic))
    for (file, _, device, number), table in gids.items():
        port = _port_of_table(table)
        if with_netdevs & {(device, number), (device, None)}:
            port = port._replace(netdevs=None)
        if device not in named or port.link_layer:
            yield SourcedObservation(file, port)


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
