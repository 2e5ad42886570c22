"""Sightings of made-up nodes, as readers would make them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.diagnose.discover.discovery import Discovery, discover_site
from webhook.diagnose.discover.site import KubeNode, Sighted, Wishes
from webhook.diagnose.tools.observations import (
    DistanceSighting,
    GpuSighting,
    InterfaceSighting,
    Origin,
    PortSighting,
    Setting,
    SettingSighting,
    Sighting,
)

IBSTAT = Origin("ibstat", 1)


def port(device: str, **fields: Any) -> PortSighting:
    """Return an InfiniBand port of a ConnectX-6 at 200 Gb/s, with other fields where given."""
    usual: dict[str, Any] = {
        "origin": IBSTAT,
        "port": 1,
        "state": "Active",
        "link_layer": "InfiniBand",
        "rate_gbps": 200.0,
        "vendor_id": 0x15B3,
        "device_id": 0x101B,
    }
    return PortSighting(device=device, **{**usual, **fields})


def down(device: str, **fields: Any) -> PortSighting:
    """Return a port that is down, with the meaningless rate that ibstat then prints."""
    return port(device, **{"state": "Down", "rate_gbps": 10.0, **fields})


def ethernet(device: str, **fields: Any) -> PortSighting:
    """Return a RoCE port of a ConnectX-6 Dx at 100 Gb/s."""
    return port(
        device,
        **{"link_layer": "Ethernet", "rate_gbps": 100.0, "device_id": 0x101D, **fields},
    )


def gpus(product: str = "NVIDIA A100-SXM4-40GB", number: int = 8) -> list[GpuSighting]:
    """Return what nvidia-smi -L lists."""
    origin = Origin("nvidia-smi -L", 1)
    return [
        GpuSighting(origin, number=at, product=product, uuid=f"GPU-{at}") for at in range(number)
    ]


def near(gpu: str, nic: str, distance: str = "PIX") -> DistanceSighting:
    """Return a cell of nvidia-smi topo -m."""
    return DistanceSighting(Origin("nvidia-smi topo -m", 1), gpu, nic, distance)


def interface(netdev: str, address: str = "10.0.0.4/24", state: str = "UP") -> InterfaceSighting:
    """Return a line of ip -br a."""
    return InterfaceSighting(Origin("ip -br a", 1), netdev, state, (address,))


def setting(name: Setting, value: str) -> SettingSighting:
    """Return a setting of the machine."""
    return SettingSighting(Origin("sysfs", 0), name, value)


def seen(*of: Sighting | Iterable[Sighting], file: str = "node.txt") -> list[Sighted]:
    """Return sightings with their file; lists of sightings are taken apart."""
    found: list[Sighted] = []
    for one in of:
        many = [one] if hasattr(one, "origin") else one
        found += (Sighted(file, each) for each in many)  # type: ignore[arg-type]
    return found


def discovered(
    nodes: Mapping[str, list[Sighted]],
    kube: Mapping[str, KubeNode] | None = None,
    **wishes: Any,
) -> Discovery:
    """Discover a site."""
    return discover_site(nodes, kube or {}, Wishes(**wishes))
