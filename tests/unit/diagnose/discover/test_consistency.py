"""MTUs and tables of GIDs that differ between the same ports of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.unit.diagnose.discover.observed_nodes import (
    discovered,
    down,
    ethernet,
    gpus,
    observed,
    port,
)
from webhook.diagnose.discover.marks import findings_by_node, marked_nodes
from webhook.diagnose.discover.site import SourcedObservation
from webhook.diagnose.tools.observations import GidObservation, InterfaceObservation, Origin
from webhook.model.finding import Location

LINK_LOCAL = "fe80:0000:0000:0000:a088:c2ff:fe12:3456"
GLOBAL = "2001:0db8:0000:0000:a088:c2ff:fe12:3456"
MAPPED = "0000:0000:0000:0000:0000:ffff:0a00:0004"
ZERO = "0000:0000:0000:0000:0000:0000:0000:0000"

Site = Mapping[str, list[SourcedObservation]]


def warnings_of(site: Site, **options: Any) -> list[tuple[str, str, Location]]:
    """Return the code, the text and the location of each finding of a site; all are warnings."""
    findings = discovered(site, **options).findings
    assert {finding.level for finding in findings} <= {"warning"}
    return [(finding.code, finding.text, finding.location) for finding in findings]


def mtus(*values: int | None, **fields: Any) -> list[SourcedObservation]:
    """Return a node with a port for each MTU."""
    ports = [port(f"mlx5_{at}", mtu=mtu, **fields) for at, mtu in enumerate(values)]
    return observed(ports, gpus())


def table(*rows: tuple[int, str, str | None], device: str = "mlx5_0") -> list[GidObservation]:
    """Return the rows of the GID table of a device: index, GID, version."""
    return [GidObservation(Origin("show_gids", row[0]), device, 1, *row) for row in rows]


def roce(*rows: tuple[int, str, str | None], **fields: Any) -> list[SourcedObservation]:
    """Return a node with a RoCE port that has these GIDs."""
    return observed(ethernet("mlx5_0", **fields), table(*rows), gpus())


#: The usual table: RoCE v1 and v2 for each address.
USUAL = ((0, LINK_LOCAL, "v1"), (1, LINK_LOCAL, "v2"), (2, MAPPED, "v1"), (3, MAPPED, "v2"))


def test_the_port_with_another_mtu_is_named() -> None:
    """The minority is wrong, and its only port is the finding's."""
    site = {"a": mtus(4096, 4096), "b": mtus(4096, 1024), "c": mtus(4096, 4096)}
    text = "the MTU of mlx5_1 is 1024, elsewhere 4096"
    assert warnings_of(site) == [("MtuDiffers", text, Location(nodes=("b",), device="mlx5_1"))]


@pytest.mark.parametrize("layer", ["InfiniBand", "Ethernet"])
def test_of_two_nodes_the_smaller_mtu_is_odd(layer: str) -> None:
    """The larger one is what somebody wanted, on both link layers, also of other lengths."""
    for small, large in ((1024, 4096), (512, 4096), (256, 1024)):
        site = {"a": mtus(small, link_layer=layer), "b": mtus(large, link_layer=layer)}
        text = f"the MTU of mlx5_0 is {small}, elsewhere {large}"
        assert warnings_of(site) == [("MtuDiffers", text, Location(nodes=("a",), device="mlx5_0"))]


def test_several_ports_and_nodes_are_one_finding() -> None:
    """Nodes that differ alike are one group; the finding has all nodes, and no single device."""
    odd = {"b": mtus(1024, 1024, 2048), "c": mtus(1024, 1024, 2048)}
    usual = {name: mtus(4096, 4096, 4096) for name in ("a", "d", "e")}
    ((code, text, location),) = warnings_of({**odd, **usual})
    assert (code, location) == ("MtuDiffers", Location(nodes=("b", "c")))
    assert text == (
        "the MTU of mlx5_0, mlx5_1 is 1024, elsewhere 4096, "
        "the MTU of mlx5_2 is 2048, elsewhere 4096"
    )


def test_nodes_that_differ_otherwise_are_named_in_the_text() -> None:
    """Three groups of nodes are enough to see the pattern."""
    odd = {"b": mtus(1024, 4096), "c": mtus(4096, 1024)}
    usual = {f"u{at}": mtus(4096, 4096) for at in range(9)}
    ((_, text, location),) = warnings_of({**odd, **usual})
    assert location == Location(nodes=("b", "c"))
    assert text == (
        "on b, the MTU of mlx5_0 is 1024, elsewhere 4096; "
        "on c, the MTU of mlx5_1 is 1024, elsewhere 4096"
    )
    third = {**odd, "d": mtus(512, 4096)}
    ((_, text, _),) = warnings_of({**third, **usual})
    assert text.endswith("; on d, the MTU of mlx5_0 is 512, elsewhere 4096")
    ((_, text, location),) = warnings_of(
        {**third, "e": mtus(256, 512), "f": mtus(256, 256), **usual}
    )
    assert text.endswith("is 512, elsewhere 4096; and 2 other differences")
    assert location.nodes == ("b", "c", "d", "e", "f")


@pytest.mark.parametrize(
    "site",
    [
        {"a": mtus(4096, 1024), "b": mtus(4096, 1024)},
        {"a": mtus(4096), "b": mtus(None)},
        {"a": mtus(4096), "b": mtus(2048, state=None)},
        {"a": observed(port("mlx5_0", mtu=4096), port("mlx5_1", mtu=4096), gpus()),
         "b": observed(port("mlx5_0", mtu=4096), down("mlx5_1", mtu=256), gpus())},
        {"a": mtus(4096), "b": mtus(1024, rate_gbps=100.0)},
    ],
    ids=["rails", "unknown", "state unknown", "down", "another fabric"],
)  # fmt: skip
def test_nothing_else_is_another_mtu(site: Site) -> None:
    """Rails may differ, as may fabrics; a port that is not Active may show anything."""
    codes = {finding.code for finding in discovered(site).findings}
    assert "MtuDiffers" not in codes


def test_the_mtu_is_that_of_the_port() -> None:
    """A device with two ports has two MTUs."""
    large, small = (
        observed(port("mlx5_0", mtu=4096), port("mlx5_0", port=2, mtu=mtu), gpus())
        for mtu in (4096, 2048)
    )
    site = {"a": large, "b": small, "c": large}
    ((_, text, location),) = warnings_of(site)
    assert text == "the MTU of mlx5_0 port 2 is 2048, elsewhere 4096"
    assert location == Location(nodes=("b",), device="mlx5_0")


# The MTU of the network interface.


def jumbo(
    interface_mtu: int | None, device: str = "mlx5_0", netdev: str = "ens1", **fields: Any
) -> list[Any]:
    """Return a RoCE port with the MTU 1024, and its network interface."""
    usual = {"mtu": 1024, "max_mtu": 4096, "netdevs": (netdev,)}
    interface = InterfaceObservation(Origin("sysfs", 0), netdev, mtu=interface_mtu)
    return [ethernet(device, **{**usual, **fields}), interface]


def test_an_mtu_below_that_of_the_interface() -> None:
    """9000 bytes hold packets of 4096, with all headers of RoCE."""
    text = "the MTU of mlx5_0 is 1024, but the network interface's 9000 allows 4096"
    expected = ("MtuBelowInterface", text, Location(nodes=("a",), device="mlx5_0"))
    assert warnings_of({"a": observed(jumbo(9000), gpus())}) == [expected]
    rails = observed(jumbo(9000), jumbo(9000, "mlx5_1", "ens2"), gpus())
    ((_, text, location),) = warnings_of({"a": rails, "b": rails})
    assert text.startswith("the MTU of mlx5_0, mlx5_1 is 1024, but")
    assert location.nodes == ("a", "b")


@pytest.mark.parametrize(
    ("interface_mtu", "fields"),
    [
        (1500, {}),
        (9000, {"mtu": 4096}),
        (9000, {"mtu": None}),
        (9000, {"max_mtu": None}),
        (9000, {"max_mtu": 1024}),
        (9000, {"netdevs": None}),
        (9000, {"netdevs": ("bond0", "ens1")}),
        (9000, {"netdevs": ("ens2",)}),
        (9000, {"state": "Down"}),
        (9000, {"link_layer": "InfiniBand"}),
        (None, {}),
    ],
)
def test_nothing_follows_without_all_three(interface_mtu: int | None, fields: Any) -> None:
    """Without the MTU in use, the card's largest, and the MTU of each interface of the port."""
    findings = discovered({"a": observed(jumbo(interface_mtu, **fields), gpus())}).findings
    assert {finding.code for finding in findings} <= {"PortIsDown", "PortsNeverUp"}


def test_two_tools_that_show_two_mtus_of_an_interface() -> None:
    """The one may be from before a change, so neither counts."""
    node = [*observed(jumbo(9000), gpus()), *observed(jumbo(8000)[1:], file="later.txt")]
    assert warnings_of({"a": node}) == []


def test_an_interface_of_which_only_the_mtu_is_known_is_not_listed() -> None:
    """The interface for TCP needs a state and addresses, so the advice stays: ip -br a."""
    (plan,) = discovered({"a": observed(jumbo(1500), gpus())}).fabrics
    assert "add the output of ip -br a" in str(plan.reason_by_field)
    assert plan.group.ports_of_nodes[0].node.interfaces == ()


# GIDs.


def test_another_index_is_named() -> None:
    """A fixed NCCL_IB_GID_INDEX would be wrong there."""
    moved = (*USUAL[:2], (4, MAPPED, "v1"), (5, MAPPED, "v2"))
    site = {"a": roce(*USUAL), "b": roce(*moved), "c": roce(*USUAL)}
    text = "the RoCE v2 GID over IPv4 of mlx5_0 has index 5, elsewhere 3"
    location = Location(nodes=("b",), device="mlx5_0")
    assert warnings_of(site) == [("GidIndexDiffers", text, location)]
    assert warnings_of({"a": roce(*moved), "b": roce(*USUAL)}) == [
        ("GidIndexDiffers", text, Location(nodes=("a",), device="mlx5_0"))
    ]


def test_the_index_of_most_nodes_is_usual() -> None:
    """Also if it is the larger one."""
    moved = roce(*USUAL[:2], (5, MAPPED, "v2"))
    ((_, text, location),) = warnings_of({"a": roce(*USUAL), "b": moved, "c": moved})
    assert text.endswith("has index 3, elsewhere 5")
    assert location.nodes == ("a",)


def test_several_addresses_may_have_the_index() -> None:
    """A VLAN adds GIDs; what counts is that each node has one at the common index."""
    vlan = (*USUAL, (7, MAPPED, "v2"), (12, MAPPED, "v2"))
    assert warnings_of({"a": roce(*USUAL), "b": roce(*vlan), "c": roce(*USUAL)}) == []
    without = (*USUAL[:2], (7, MAPPED, "v2"), (12, MAPPED, "v2"))
    ((code, text, _),) = warnings_of({"a": roce(*USUAL), "b": roce(*without)})
    assert code == "GidIndexDiffers"
    assert text == "the RoCE v2 GID over IPv4 of mlx5_0 has index 7 and 12, elsewhere 3"


def test_a_missing_ipv4_address_is_named() -> None:
    """Where other nodes have one; NCCL prefers it, and a node without it does not connect."""
    only_ipv6 = (*USUAL[:2], (3, GLOBAL, "v2"))
    text = "no RoCE v2 GID of mlx5_0 is of an IPv4 address, elsewhere one is"
    location = Location(nodes=("b",), device="mlx5_0")
    assert warnings_of({"a": roce(*USUAL), "b": roce(*only_ipv6)}) == [
        ("RoceGidNotIpv4", text, location)
    ]
    assert warnings_of({"a": roce(*only_ipv6), "b": roce(*only_ipv6)}) == []
    most = {"a": roce(*USUAL), "b": roce(*only_ipv6), "c": roce(*only_ipv6)}
    assert warnings_of(most) == []


@pytest.mark.parametrize("prefix", ["fe80", "fe90", "feaf", "febf"])
def test_only_link_local_gids(prefix: str) -> None:
    """They reach no further than the switches that bridge; one finding for all nodes."""
    alone = (USUAL[0], (1, prefix + LINK_LOCAL[4:], "v2"), USUAL[2])
    text = "all RoCE v2 GIDs of mlx5_0 are link-local"
    expected = ("RoceGidLinkLocal", text, Location(nodes=("b",), device="mlx5_0"))
    assert warnings_of({"a": roce(*USUAL), "b": roce(*alone)}) == [expected]
    ((*_, location),) = warnings_of({"a": roce(*alone), "b": roce(*alone)})
    assert location.nodes == ("a", "b")


def test_pods_with_their_own_addresses_need_none_of_the_host() -> None:
    """With Multus or virtual functions, only a difference between the nodes is odd."""
    options = {"mode": "sr-iov"}
    assert warnings_of({"a": roce(*USUAL[:2]), "b": roce(*USUAL[:2])}, **options) == []
    ((code, _, location),) = warnings_of({"a": roce(*USUAL), "b": roce(*USUAL[:2])}, **options)
    assert (code, location.nodes) == ("RoceGidNotIpv4", ("b",))


@pytest.mark.parametrize(
    "rows",
    [
        (),
        ((0, LINK_LOCAL, None), (3, MAPPED, None)),
        ((0, LINK_LOCAL, "v1"), (3, MAPPED, None)),
        ((0, ZERO, "v2"),),
    ],
    ids=["no table", "without versions", "a version", "an empty entry"],
)
def test_nothing_follows_from_a_table_that_no_tool_shows(rows: Any) -> None:
    """Ibstatus shows one GID without a version; a table without v2 is a fault of its own."""
    site = {"a": roce(*USUAL), "b": roce(*rows), "c": roce(*USUAL)}
    codes = {finding.code for finding in discovered(site).findings}
    assert codes <= {"RoceGidMissing"}


def test_the_table_is_that_of_the_port() -> None:
    """Rows of another port or device, and of a port that is down, mean nothing."""
    node = roce(*USUAL)
    far = [*table((9, MAPPED, "v2"), device="mlx5_7"), *table((9, MAPPED, "v2"))]
    second = observed(far[0], far[1]._replace(port=2))
    numberless = observed(ethernet("mlx5_0", port=None), table((5, MAPPED, "v2")), gpus())
    assert warnings_of({"a": node, "b": [*node, *second], "c": node}) == []
    ((*_, location),) = warnings_of({"a": node, "b": node, "c": numberless})
    assert location.nodes == ("c",)
    elsewhere = observed(far[1]._replace(port=2, gid_index=3))
    moved = [*roce(*USUAL[:2], (5, MAPPED, "v2")), *elsewhere]
    ((*_, location),) = warnings_of({"a": node, "b": node, "d": moved})
    assert location.nodes == ("d",)
    ports = [ethernet("mlx5_1"), down("mlx5_0", link_layer="Ethernet", device_id=0x101D)]
    off = observed(ports, table((1, LINK_LOCAL, "v2")), gpus())
    on = observed(ethernet("mlx5_0"), ethernet("mlx5_1"), table(*USUAL), gpus())
    codes = [code.code for code in discovered({"a": off, "b": on}).findings]
    assert codes == ["PortIsDown"]


def test_infiniband_has_no_such_gids() -> None:
    """The tables of InfiniBand have one GID, which is link-local."""
    node = observed(port("mlx5_0"), table((0, LINK_LOCAL, None)), gpus())
    assert warnings_of({"a": node, "b": node}) == []


def words(site: Site) -> Iterable[str]:
    """Return the words in the picture next to the ports of a fabric."""
    discovery = discovered(site)
    for nodes in marked_nodes(discovery.fabrics[0], findings_by_node(discovery.findings)):
        for marks in nodes.marks_by_device.values():
            yield from (mark.words for mark in marks)


def test_the_picture_has_words_for_the_port() -> None:
    """In place of the code."""
    moved, ipv6 = (*USUAL[:2], (5, MAPPED, "v2")), (*USUAL[:2], (3, GLOBAL, "v2"))
    assert list(words({"a": mtus(4096), "b": mtus(1024)})) == ["odd MTU"]
    assert list(words({"a": observed(jumbo(9000), gpus())})) == ["small MTU"]
    assert list(words({"a": roce(*USUAL), "b": roce(*moved)})) == ["odd GID index"]
    assert list(words({"a": roce(*USUAL), "b": roce(*ipv6)})) == ["no GID over IPv4"]
    assert list(words({"a": roce(*USUAL), "b": roce(*USUAL[:2])})) == ["only link-local GIDs"]
