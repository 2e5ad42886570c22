"""Readers name the device within which an output ends; test_cut_outputs has all tools."""

from __future__ import annotations

import pytest

from webhook.diagnose.tools.observations import Cut, Line, Origin, PortObservation
from webhook.diagnose.tools.readers import read
from webhook.diagnose.tools.transcripts import split_by_node

DEVICE = """CA 'mlx5_7'
	CA type: MT4129
	Number of ports: 1
	Firmware version: 28.39.1002
	Hardware version: 0
	Node GUID: 0xa088c20300123456
	System image GUID: 0xa088c20300123456
	Port 1:
		State: Active
		Physical state: LinkUp
		Port GUID: 0xa088c20300123456
		Link layer: InfiniBand
"""


def cuts_of(text: str) -> tuple[Cut, ...]:
    """Return the cuts in a text."""
    return read([Line(number, line) for number, line in enumerate(text.splitlines(), 1)]).cuts


@pytest.mark.parametrize(
    ("end", "line"),
    [("\tNode", 5), ("\t\tPort G", 10), ("D: 0xa088c20300123456\n\tPort 1", 7), (" layer", 12)],
    ids=["the device", "its port", "a key", "the last key"],
)
def test_a_device_that_ends_too_early_is_named(end: str, line: int) -> None:
    """By what is missing of it, or by a line that is only the beginning of one."""
    assert cuts_of(DEVICE.partition(end)[0]) == (Cut("ibstat", line, "mlx5_7"),)


ROW = (
    "0000:3b:00.0 mlx5_5 (MT4129 - MCX75310AAS-NEAT) NVIDIA ConnectX-7 fw 28.39.1002 port 1 "
    "(ACTIVE) ==> ibs5 (Up)"
)


@pytest.mark.parametrize("end", ["MCX", " fw", ".1002", "CTIVE", "==>"])
def test_a_row_of_ibdev2netdev_that_ends_too_early_is_named(end: str) -> None:
    """With -v, the device comes before the port; the address and the name are complete."""
    text = ROW.partition(end)[0]
    assert cuts_of(text) == (Cut("ibdev2netdev", 1, "mlx5_5"),)
    (device,) = read([Line(1, text)]).observations
    origin = Origin("ibdev2netdev", 1)
    assert device == PortObservation(origin, "mlx5_5", pci="0000:3b:00.0")


@pytest.mark.parametrize("text", [ROW, ROW.partition("(MT4")[0], ROW.replace(" (ACTIVE)", "")])
def test_other_rows_of_ibdev2netdev_are_not_cut(text: str) -> None:
    """A whole row, one that may be another tool's, and one without a word in its middle."""
    assert cuts_of(text) == ()


def test_a_whole_device_is_not_cut() -> None:
    """It has all of its keys."""
    assert cuts_of(DEVICE) == ()


@pytest.mark.parametrize(
    ("text", "is_cut"),
    [
        ("### rdma-webhook discover: 2\n### ran: true (exit 0)\n", True),
        ("### rdma-webhook discover: 2\n### ran: true (exit 0)\n### end\n", False),
        ("### rdma-webhook discover: 1\n### ran: true (exit 0)\n", False),
    ],
)
def test_the_scripts_output_shows_its_end(text: str, is_cut: bool) -> None:
    """Only version 1 had no last line."""
    assert [output.is_cut for output in split_by_node(text)] == [is_cut]


def test_a_device_without_ports_may_be_the_short_form_of_ibstat() -> None:
    """Only the command shows whether it is; a device without any port has none to show."""
    head = DEVICE.partition("\tPort 1")[0]
    assert cuts_of(head) == (Cut("ibstat", 7, "mlx5_7", may_be_short_form=True),)
    assert cuts_of(head.replace("ports: 1", "ports: 0")) == ()
    assert cuts_of(head * 2) == ()
    assert cuts_of("CA 'mlx5_7'\n\tNumber of ports: 1\n") == ()


VERBOSE = """hca_id:	mlx5_7
		port:	1
			port_lmc:	0x00
			link_layer:	Ethernet
			max_msg_sz:	0x40000000
			bad_pkey_cntr:	0x0
			active_speed:	25.0 Gbps (32)
			GID[  0]:	fe80:0000:0000:0000:a088:c2ff:fe12:3456, RoCE v1
			GID[  1]:	fe80::a088:c2ff:fe12:3456, RoCE v2
			GID[  2]:	0000:0000:0000:0000:0000:ffff:0a00:0004, RoCE v1
			GID[  3]:	::ffff:10.0.0.4, RoCE v2
"""


@pytest.mark.parametrize(
    ("end", "line"),
    [
        ("\t\t\tactive_speed", 6),
        ("ID[  0]", 8),
        ("80::a088", 9),
        (", RoCE v1\n\t\t\tGID[  3]", 10),
        ("\t\t\tGID[  3]", 10),
        ("0.4, RoCE", 11),
        ("2\n\t\t\tGID[  2]", 9),
    ],
)
def test_a_port_of_ibv_devinfo_that_ends_too_early_is_named(end: str, line: int) -> None:
    """Within its lines of -v, or within a GID, or between two GIDs of one address."""
    assert cuts_of(VERBOSE.partition(end)[0]) == (Cut("ibv_devinfo", line, "mlx5_7"),)


@pytest.mark.parametrize("end", ["\t\t\tmax_msg_sz", "\t\t\tGID[  0]", "\t\t\tGID[  2]", "end"])
def test_a_port_of_ibv_devinfo_is_not_cut_where_it_may_end(end: str) -> None:
    """Without -v, without GIDs, or without an address."""
    assert cuts_of(VERBOSE.partition(end)[0]) == ()


def test_a_line_after_the_last_gid_shows_that_it_is_not_the_end() -> None:
    """It is from the same port."""
    half = VERBOSE.partition("\t\t\tGID[  3]")[0]
    assert cuts_of(f"{half}\t\t\tgid_tbl_len:\t255\n") == ()
