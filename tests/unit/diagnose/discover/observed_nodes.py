"""Observations of made-up nodes in the form of the readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from webhook.config.load import parse_fabrics
from webhook.diagnose.discover.discovery import Discovery, discover_site
from webhook.diagnose.discover.plugin.files import plugin_files
from webhook.diagnose.discover.site import DiscoverOptions, KubeNode, SourcedObservation
from webhook.diagnose.tools.observations import (
    DistanceObservation,
    GpuObservation,
    InterfaceObservation,
    NodeProperty,
    Observation,
    Origin,
    PortObservation,
    PropertyObservation,
)

IBSTAT = Origin("ibstat", 1)


def port(device: str, **fields: Any) -> PortObservation:
    """Return an InfiniBand port of a ConnectX-6 at 200 Gb/s, with other fields if given."""
    usual: dict[str, Any] = {
        "origin": IBSTAT,
        "port": 1,
        "state": "Active",
        "link_layer": "InfiniBand",
        "rate_gbps": 200.0,
        "vendor_id": 0x15B3,
        "device_id": 0x101B,
    }
    return PortObservation(device=device, **{**usual, **fields})


def down(device: str, **fields: Any) -> PortObservation:
    """Return a port that is down, with the meaningless rate that ibstat then prints."""
    return port(device, **{"state": "Down", "rate_gbps": 10.0, **fields})


def ethernet(device: str, **fields: Any) -> PortObservation:
    """Return a RoCE port of a ConnectX-6 Dx at 100 Gb/s."""
    return port(
        device,
        **{"link_layer": "Ethernet", "rate_gbps": 100.0, "device_id": 0x101D, **fields},
    )


def ionic(device: str, **fields: Any) -> PortObservation:
    """Return a RoCE port of AMD's Pollara."""
    return ethernet(device, **{"vendor_id": 0x1DD8, "device_id": 0x1002, **fields})


def gpus(product: str = "NVIDIA A100-SXM4-40GB", number: int = 8) -> list[GpuObservation]:
    """Return the GPUs that nvidia-smi -L lists."""
    origin = Origin("nvidia-smi -L", 1)
    return [
        GpuObservation(origin, number=at, product=product, uuid=f"GPU-{at}") for at in range(number)
    ]


def near(gpu: str, nic: str, distance: str = "PIX") -> DistanceObservation:
    """Return a cell of nvidia-smi topo -m."""
    return DistanceObservation(Origin("nvidia-smi topo -m", 1), gpu, nic, distance)


def interface(netdev: str, address: str = "10.0.0.4/24", state: str = "UP") -> InterfaceObservation:
    """Return a line of ip -br a."""
    return InterfaceObservation(Origin("ip -br a", 1), netdev, state, (address,))


def node_property(name: NodeProperty, value: str) -> PropertyObservation:
    """Return a property of the node."""
    return PropertyObservation(Origin("sysfs", 0), name, value)


def observed(
    *groups: Observation | Iterable[Observation], file: str = "node.txt"
) -> list[SourcedObservation]:
    """Return observations with their file; lists of observations are flattened."""
    sourced: list[SourcedObservation] = []
    for group in groups:
        observations = [group] if hasattr(group, "origin") else group
        sourced += (SourcedObservation(file, observation) for observation in observations)  # type: ignore[arg-type]
    return sourced


def discovered(
    nodes: Mapping[str, list[SourcedObservation]],
    cluster_nodes: Mapping[str, KubeNode] | None = None,
    **options: Any,
) -> Discovery:
    """Discover a site."""
    return discover_site(nodes, cluster_nodes or {}, DiscoverOptions(**options))


def only_entry(discovery: Discovery) -> dict[str, Any]:
    """Return the only fabric; check-config has no finding about the file."""
    assert parse_fabrics(discovery.text, "fabrics").findings == ()
    (entry,) = discovery.entries
    return dict(entry)


def plugin_objects(discovery: Discovery, **options: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the objects in each file for device plugins; there must be no notes."""
    plugin = plugin_files(discovery.accepted_fabrics, DiscoverOptions(**options))
    assert plugin.notes == ()
    return {file.name: list(yaml.safe_load_all(file.text)) for file in plugin.files}
