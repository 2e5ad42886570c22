"""Laws of discover, on made-up sites: nothing is invented, and the file always loads."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from webhook.config.load import parse_fabrics
from webhook.diagnose.discover.discovery import discover_site
from webhook.diagnose.discover.drift import drift_findings
from webhook.diagnose.discover.earlier_output import earlier_nodes
from webhook.diagnose.discover.output import discover_form, discover_schema, discover_text
from webhook.diagnose.discover.site import DiscoverOptions, KubeNode, MergedPort, SourcedObservation
from webhook.diagnose.tools.hardware import vendor_of_driver
from webhook.diagnose.tools.observations import (
    CardObservation,
    DistanceObservation,
    GidObservation,
    GpuObservation,
    InterfaceObservation,
    Origin,
    PortObservation,
)

_DEVICES = st.sampled_from(
    ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_10", "mlx5_bond_0", "ibp12s0", "rocep1s0", "eth0", "rxe0",
     "MLX5_0", "mlx5", "a b", "mlx5_0:1", "#x", "[x", "- x"]
)  # fmt: skip
_PCI = st.sampled_from(["0000:3b:00.0", "3b:00.0", "0002:3b:00.0", "5e:00.1"])
_NETDEVS = st.lists(st.sampled_from(["ib0", "ib1", "bond0", "ens1"]), max_size=2).map(tuple)
_ORIGINS = st.builds(Origin, st.sampled_from(["ibstat", "mst status -v"]), st.integers(0, 9))
_PORTS = st.builds(
    PortObservation,
    origin=_ORIGINS,
    device=st.none() | _DEVICES,
    port=st.none() | st.sampled_from([1, 2]),
    netdevs=st.none() | _NETDEVS,
    state=st.none() | st.sampled_from(["Down", "Active", "Active", "Initializing"]),
    link_layer=st.none() | st.sampled_from(["InfiniBand", "Ethernet"]),
    rate_gbps=st.none() | st.sampled_from([2.5, 10.0, 56.0, 100.0, 200.0, 400.0]),
    pci=st.none() | _PCI,
    vendor_id=st.none() | st.sampled_from([0x15B3, 0x15B3, 0x1D0F, 0x1DD8, 0x14E4]),
    device_id=st.none() | st.sampled_from([0x101B, 0x101C, 0x1021, 0x1015]),
    firmware=st.none() | st.sampled_from(["20.31.1014", "28.39.1002"]),
    numa=st.none() | st.sampled_from([-1, 0, 1]),
    mtu=st.none() | st.sampled_from([1024, 4096]),
    max_mtu=st.none() | st.just(4096),
)
_CARDS = st.builds(
    CardObservation, _ORIGINS, _PCI, st.just(0x0207), st.just(0x15B3), st.sampled_from([0x1021])
)
_GPUS = st.builds(
    GpuObservation,
    _ORIGINS,
    st.integers(0, 7),
    st.sampled_from(
        ["NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-32GB", "NVIDIA H100 96GB HBM3", "#"]
    ),
    vendor_id=st.none() | st.sampled_from([0x1002, 0x10DE]),
)
_NEAR = st.builds(
    DistanceObservation,
    _ORIGINS,
    st.sampled_from(["GPU0", "GPU1"]),
    _DEVICES,
    st.sampled_from(["PIX", "PXB", "SYS"]),
)
_GIDS = st.builds(
    GidObservation,
    _ORIGINS,
    _DEVICES,
    st.sampled_from([1, 2]),
    st.integers(0, 3),
    st.sampled_from(
        ["fe80:0000:0000:0000:a088:c203:0012:3456", "0000:0000:0000:0000:0000:ffff:0a00:0004"]
    ),
    st.none() | st.sampled_from(["v1", "v2"]),
    st.none() | st.sampled_from(["ib0", "ens1"]),
)
_INTERFACES = st.builds(
    InterfaceObservation,
    _ORIGINS,
    st.sampled_from(["eno1", "bond0", "lo"]),
    st.none() | st.just("UP"),
    st.just(("10.0.0.1/24",)),
    st.none() | st.sampled_from([1500, 9000]),
)
_NODE = st.lists(st.one_of(_PORTS, _PORTS, _CARDS, _GPUS, _NEAR, _GIDS, _INTERFACES), max_size=8)
_SITES = st.dictionaries(
    st.sampled_from(["n1", "n2", "n3", "N 4", "n5.example"]), _NODE, min_size=1, max_size=4
)
_KUBE = st.dictionaries(
    st.sampled_from(["n1", "n2"]),
    st.sampled_from(
        [
            ({}, {}),
            ({"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, {"nvidia.com/gpu": 8}),
            ({"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB-SHARED"}, {"nvidia.com/v100": 4}),
            ({}, {"rdma/rdma_v100": 63, "rdma/ib-x": 1}),
            ({"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, {"amd.com/gpu": 8}),
        ]
    ),
)
_WISHES = st.builds(
    DiscoverOptions,
    st.none() | st.sampled_from(["shared-device", "host-network", "sr-iov", "host-device"]),
    st.sampled_from([(), ("a",), ("a", "b", "c", "ns/d")]),
)
#: Observations of other things that name devices.
_LISTS = (DistanceObservation, GidObservation)
_VALIDATOR = Draft202012Validator(json.loads(discover_schema()))


def _sighted(site: dict[str, list[Any]]) -> dict[str, list[SourcedObservation]]:
    return {
        name: [SourcedObservation(f"{name}.txt", observation) for observation in observations]
        for name, observations in site.items()
    }


def _kube(nodes: dict[str, Any]) -> dict[str, KubeNode]:
    return {name: KubeNode(name, *given) for name, given in nodes.items()}


@settings(deadline=None)
@given(_SITES, _KUBE, _WISHES)
def test_the_file_always_loads(
    site: dict[str, list[Any]], nodes: Any, options: DiscoverOptions
) -> None:
    """check-config --strict has no finding about a file that discover wrote."""
    discovery = discover_site(_sighted(site), _kube(nodes), options)
    loaded = parse_fabrics(discovery.text, "fabrics.yaml")
    assert loaded.findings == ()
    assert list(loaded.compiled.fabrics) == [fabric["name"] for fabric in discovery.entries]
    assert not any(_VALIDATOR.iter_errors(json.loads(json.dumps(discover_form(discovery)))))
    assert discover_text(discovery, width=80, color=False).isprintable() is False  # it has lines


@settings(deadline=None)
@given(_SITES, _KUBE, st.randoms(use_true_random=False))
def test_order_has_no_influence(
    site: dict[str, list[Any]], nodes: Any, shuffler: random.Random
) -> None:
    """The order of tools and nodes does not change the result."""
    names = list(site)
    shuffler.shuffle(names)
    mixed = {name: shuffler.sample(site[name], len(site[name])) for name in names}
    original = discover_site(_sighted(site), _kube(nodes), DiscoverOptions())
    shuffled = discover_site(_sighted(mixed), _kube(nodes), DiscoverOptions())
    assert discover_form(original) == discover_form(shuffled)
    assert original.text == shuffled.text


@settings(deadline=None)
@given(_SITES, _KUBE)
def test_nothing_changed_since_the_same_output(site: dict[str, list[Any]], nodes: Any) -> None:
    """The JSON of each site can be read as an earlier output, and does not differ from itself."""
    form = discover_form(discover_site(_sighted(site), _kube(nodes), DiscoverOptions()))
    earlier = earlier_nodes(json.dumps(form), "yesterday.json")
    assert earlier == form["nodes"]
    assert list(drift_findings(earlier, form["nodes"])) == []


def _listed(observations: list[Any], field: str) -> set[Any]:
    """Return the values of a field of GIDs and distances, whose lists name devices, too."""
    lists = (observation for observation in observations if isinstance(observation, _LISTS))
    return {getattr(observation, field, None) for observation in lists}


def _has_ethernet_gid(observations: list[Any], port: MergedPort) -> bool:
    """Return whether a GID of the port is of RoCE v2, or is listed with a network interface."""
    return any(
        (gid.device, gid.port) == (port.device, port.port) and (gid.version == "v2" or gid.netdev)
        for gid in observations
        if isinstance(gid, GidObservation)
    )


_FIELDS = ("device", "port", "state", "link_layer", "rate_gbps", "pci", "firmware", "numa",
           "device_id", "vendor_id", "mtu",
           "max_mtu")  # fmt: skip


_LAYERS = {0x0207: "InfiniBand", 0x0200: "Ethernet"}


def _shown(observations: list[Any], port: MergedPort, field: str) -> set[Any]:
    """Return the values of a field that a node's observations show, for a port of any device."""
    values = {
        getattr(observation, field, None)
        for observation in observations
        if isinstance(observation, (PortObservation, CardObservation))
    }
    if field == "device":  # also by the lists of GIDs and of distances
        values |= _listed(observations, "device") | _listed(observations, "nic")
    if field == "port":
        values |= _listed(observations, "port")
    if field == "link_layer" and _has_ethernet_gid(observations, port):
        values.add("Ethernet")
    if field == "link_layer":  # also by the class of a card
        cards = (card for card in observations if isinstance(card, CardObservation))
        values |= {_LAYERS.get(card.pci_class or 0) for card in cards}
    if field == "vendor_id":  # also by the driver, which the kernel's name shows
        values.add(vendor_of_driver(port.device or ""))
    if field == "vendor_id" and port.device_id is not None:
        values.add(0x15B3)  # NVIDIA's tools alone show a device without its vendor
    return values


def _netdevs(observations: list[Any]) -> set[str]:
    """Return the network interfaces that ports and GIDs have."""
    ports = (getattr(observation, "netdevs", None) or () for observation in observations)
    return {netdev for netdevs in ports for netdev in netdevs} | _listed(observations, "netdev")


@settings(deadline=None)
@given(_SITES)
def test_nothing_is_invented(site: dict[str, list[Any]]) -> None:
    """Every value of a port is in an observation of that node; only an Active port has a rate."""
    discovery = discover_site(_sighted(site), {}, DiscoverOptions())
    for node in discovery.nodes:
        observations = site[node.name]
        for port in node.ports:
            for field in _FIELDS:
                value = getattr(port, field)
                assert value is None or value in _shown(observations, port, field)
            assert {*port.netdevs} <= _netdevs(observations)
            assert port.rate_gbps is None or port.state in ("Active", None)
