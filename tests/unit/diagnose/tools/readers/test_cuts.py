"""Readers name the device within which an output ends; test_cut_outputs has all tools."""

from __future__ import annotations

import pytest

from webhook.diagnose.tools.observations import Cut, Line
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
