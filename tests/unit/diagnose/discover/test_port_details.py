"""Details of ports: in JSON, and in the words of a report about a single node."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.discover.observed_nodes import (
    IBSTAT,
    discovered,
    down,
    ethernet,
    gpus,
    observed,
    port,
)
from webhook.diagnose.discover.output import discover_form
from webhook.diagnose.tools.observations import GidObservation, Origin

LINK_LOCAL = "fe80:0000:0000:0000:a088:c2ff:fe12:3456"
MAPPED = "0000:0000:0000:0000:0000:ffff:0a00:0004"


def gid(index: int, address: str, *details: str | None, number: int = 1) -> GidObservation:
    """Return a row of the table of a port of mlx5_0."""
    return GidObservation(Origin("show_gids", index), "mlx5_0", number, index, address, *details)


def ports_of(*observations: Any) -> list[dict[str, Any]]:
    """Return the ports in JSON."""
    form = discover_form(discovered({"n1": observed(*observations)}))
    return [dict(port_form) for port_form in form["nodes"][0]["ports"]]


def test_the_form_has_the_details_of_a_port() -> None:
    """RoCE with an MTU of 1024 is slower, and the PSID decides which firmware fits."""
    details = {"mtu": 1024, "board_id": "MT_0000000838", "physical_state": "LinkUp"}
    (form,) = ports_of(ethernet("mlx5_0", **details))
    assert (form["mtu"], form["psid"], form["physicalState"]) == (1024, "MT_0000000838", "LinkUp")
    assert form["gids"] == []


def test_a_detail_that_no_tool_shows_is_null() -> None:
    """Nothing is assumed."""
    (form,) = ports_of(port("mlx5_0"))
    assert (form["mtu"], form["psid"], form["physicalState"]) == (None, None, None)


def test_the_form_has_the_gids_of_the_port() -> None:
    """Each row once, in the order of the table, with what all tools together show of it."""
    other_tool = gid(0, LINK_LOCAL)._replace(origin=IBSTAT)
    rows = [gid(3, MAPPED, "v2", "ens1"), gid(0, LINK_LOCAL, "v1", "ens1"), other_tool]
    forms = ports_of(ethernet("mlx5_0"), *rows, gid(1, MAPPED, "v2", "ens2", number=2))
    assert forms[0]["gids"] == [
        {"index": 0, "gid": LINK_LOCAL, "version": "v1", "netdev": "ens1"},
        {"index": 3, "gid": MAPPED, "version": "v2", "netdev": "ens1"},
    ]


def test_the_second_port_has_its_own_gids() -> None:
    """The tables belong to ports, not to devices."""
    two_ports = [ethernet("mlx5_0"), ethernet("mlx5_0", port=2)]
    forms = ports_of(*two_ports, gid(0, LINK_LOCAL, "v1"), gid(0, MAPPED, "v2", number=2))
    assert [[row["gid"] for row in form["gids"]] for form in forms] == [[LINK_LOCAL], [MAPPED]]


def test_tools_that_show_two_mtus_contradict_each_other() -> None:
    """The report has both values, and the form none."""
    (form,) = ports_of(port("mlx5_0", mtu=1024), port("mlx5_0", mtu=4096))
    assert form["mtu"] is None


@pytest.mark.parametrize(
    ("fields", "cards"),
    [({}, "ConnectX-6 cards"), ({"device_id": None}, "RDMA cards")],
)
def test_a_single_node_has_a_share_of_its_cards_up(fields: dict[str, Any], cards: str) -> None:
    """First users paste one node: the warning says how many of its cards the fabric has."""
    ports = [*(port(f"mlx5_{at}", **fields) for at in range(6)), down("mlx5_6", **fields)]
    discovery = discovered({"n1": observed(*ports, down("mlx5_7", **fields), gpus())})
    (finding,) = (finding for finding in discovery.findings if finding.code == "PortsNeverUp")
    assert finding.text == (
        f"6 of 8 {cards} are up: mlx5_6, mlx5_7 are Down, so the fabric does not use them"
    )


def test_several_nodes_have_no_share() -> None:
    """The sentence then has the share of nodes."""
    node = observed(port("mlx5_0"), down("mlx5_1"), gpus())
    discovery = discovered({"n1": node, "n2": node})
    (finding,) = (finding for finding in discovery.findings if finding.code == "PortsNeverUp")
    assert finding.text == "mlx5_1 is Down on all nodes, so the fabric does not use it"


@pytest.mark.parametrize(
    ("tool", "missing"),
    [("ibv_devinfo", "ibstat"), ("ibstat", "ibv_devinfo"), ("rdma link", "ibstat or ibv_devinfo")],
)
def test_nobody_is_asked_for_an_output_that_is_there(tool: str, missing: str) -> None:
    """The advice names tools whose output is missing."""
    unknown = port("mlx5_1", link_layer=None, origin=Origin(tool, 1))
    (node_ports,) = discovered({"n1": observed(port("mlx5_0"), unknown)}).ports_of_nodes
    (reason,) = node_ports.other_ports.values()
    assert reason == f"link layer unknown (add the output of {missing})"


def test_with_both_outputs_a_third_is_asked_for() -> None:
    """Neither shows the link layer."""
    unknown = [
        port("mlx5_1", link_layer=None, origin=Origin(tool, 1))
        for tool in ("ibstat", "ibv_devinfo")
    ]
    (node_ports,) = discovered({"n1": observed(port("mlx5_0"), unknown)}).ports_of_nodes
    (reason,) = node_ports.other_ports.values()
    assert reason == "link layer unknown (add the output of ibstatus)"
