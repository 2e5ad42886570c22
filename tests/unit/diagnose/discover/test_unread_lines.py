"""Lines from which discover reads nothing are counted, not passed over in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.diagnose.discover.test_discover_command import IBSTAT, Discover, discover

__all__ = ["discover"]


def unread(discover: Discover, *words: str, stdin: str = "") -> list[dict[str, Any]]:
    """Return the findings of a run that are about lines."""
    findings = json.loads(discover(*words, "-o", "json", stdin=stdin).out)["findings"]
    return [
        finding for finding in findings if finding["code"] in ("LinesUnread", "DeviceNotOpened")
    ]


def test_unread_lines_are_counted(discover: Discover) -> None:
    """One fact for all files names the first line; blank lines and rules are no lines."""
    Path("n1.txt").write_text(f"{IBSTAT}\n  \n-----\n")
    Path("n2.txt").write_text(f"$ df\nFilesystem  1K-blocks\n$ ibstat\n{IBSTAT}  what is this\n")
    Path("n10.txt").write_text(f"{IBSTAT}  and this\n")
    (finding,) = unread(discover, "n1.txt", "n10.txt", "n2.txt")
    assert (finding["level"], finding["code"]) == ("info", "LinesUnread")
    assert finding["text"] == (
        "3 lines show nothing that discover reads: the first at n10.txt:13: 'and this'"
    )
    assert finding["location"] == {"file": "n10.txt", "line": 13, "nodes": ["n2", "n10"]}


def test_a_single_line_is_quoted(discover: Discover) -> None:
    """The whole line, if it is short."""
    (finding,) = unread(discover, "-", stdin=f"{IBSTAT}{'x' * 60}\n")
    text = f"1 line shows nothing that discover reads: <stdin>:13: '{'x' * 60}'"
    assert finding["text"] == text
    (finding,) = unread(discover, "-", stdin=f"{IBSTAT}{'x' * 61}\n")
    assert finding["text"] == text.replace("x'", "x...'")


def test_a_line_of_several_nodes_counts_once(discover: Discover) -> None:
    """Clush folds the output of nodes that print the same."""
    rule = "-" * 15
    (finding,) = unread(discover, "-", stdin=f"{rule}\ngpu-[1-3]\n{rule}\n{IBSTAT}what\n")
    assert finding["text"].startswith("1 line shows")
    assert finding["location"]["nodes"] == ["gpu-1", "gpu-2", "gpu-3"]


def test_values_printed_alone_are_read(discover: Discover) -> None:
    """The output of hostname, and of a command that names a product."""
    text = f"$ hostname\nn7\n$ dmidecode -s system-product-name\nDGXH100\n$ ibstat\n{IBSTAT}"
    assert unread(discover, "-", stdin=text) == []


@pytest.mark.parametrize("line", ["Failed to open device", "  Failed to open device mlx5_0"])
def test_devices_that_could_not_be_opened_are_a_warning(discover: Discover, line: str) -> None:
    """Their number and their nodes, once; such lines are not among the unread ones."""
    failed = f"{line}\n"
    text = (
        f"gpu-1: {failed}" * 2
        + f"gpu-2: {failed}"
        + "".join(f"gpu-1: {each}\n" for each in IBSTAT.splitlines())
    )
    (finding,) = unread(discover, "-", stdin=text)
    assert (finding["level"], finding["code"], finding["text"]) == (
        "warning",
        "DeviceNotOpened",
        "ibv_devinfo could not open a device (3 times)",
    )
    assert finding["location"]["nodes"] == ["gpu-1", "gpu-2"]


@pytest.mark.parametrize(
    "line",
    [
        "ibstat",
        "nvidia-smi topo -m",
        "rdma link show mlx5_0/1",
        "/usr/sbin/ibdev2netdev -v",
        "sudo amd-smi list",
        "pdsh@admin: gpu-1: ssh exited with exit code 127",
        "clush: gpu-1: exited with exit code 1",
        "clush: gpu-1: command timeout",
    ],
)
def test_typed_commands_and_remarks_are_no_output(discover: Discover, line: str) -> None:
    """People copy the command without its prompt; a host's exit code has a finding of its own."""
    of_node = "".join(f"gpu-1: {row}\n" for row in IBSTAT.splitlines())
    assert unread(discover, "-", stdin=f"{line}\n{of_node}") == []


@pytest.mark.parametrize(
    "line", ["sysctl -a", "rdma: an error", "gpu-1: it exited with exit code 127 today"]
)
def test_other_words_are_unread(discover: Discover, line: str) -> None:
    """A sentence may begin like a command, and an unknown program's output like a remark."""
    of_node = "".join(f"gpu-1: {row}\n" for row in IBSTAT.splitlines())
    (finding,) = unread(discover, "-", stdin=f"{line}\n{of_node}")
    assert finding["text"].startswith("1 line")


def test_a_value_that_a_tool_does_not_know_is_read(discover: Discover) -> None:
    """Ibstatus writes "unknown" for the GID of a pod's device, and EFA has no link layer."""
    text = (
        "Infiniband device 'mlx5_2' port 1 status:\n\tdefault gid:\t unknown\n"
        "\tstate:\t\t 4: ACTIVE\n\trate:\t\t 100 Gb/sec (4X EDR)\n"
        "\tlink_layer:\t InfiniBand\n\n"
        "hca_id: rdmap0s0\n\tvendor_id:\t0x1d0f\n\tport:\t1\n"
        "\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\tlink_layer:\t\tUnspecified\n"
    )
    assert unread(discover, "-", stdin=text) == []


def test_other_lines_with_these_words_are_unread(discover: Discover) -> None:
    """The line begins with them."""
    (finding,) = unread(discover, "-", stdin=f"{IBSTAT}x: Failed to open device\n")
    assert finding["code"] == "LinesUnread"


def test_lines_of_hosts_that_did_not_answer_are_no_news(discover: Discover) -> None:
    """The error about the host has the reason."""
    text = f"gpu-01 | CHANGED | rc=0 >>\n{IBSTAT}gpu-03 | FAILED | rc=127 >>\nibstat: not found\n"
    assert unread(discover, "-", stdin=text) == []


@pytest.mark.parametrize(("status", "codes"), [(0, ["LinesUnread"]), (1, [])])
def test_the_message_of_a_command_that_failed_is_no_news(
    discover: Discover, status: int, codes: list[str]
) -> None:
    """The script of discover runs every tool that a node has, and some fail there."""
    text = (
        "### rdma-webhook discover: 2\n### host: n1\n### ran: ibstat (exit 0)\n"
        f"{IBSTAT}### ran: rdma link (exit {status})\nFailed to open NETLINK_RDMA socket\n### end\n"
    )
    assert [finding["code"] for finding in unread(discover, "-", stdin=text)] == codes


def test_an_unopened_device_counts_although_its_command_failed(discover: Discover) -> None:
    """As ibv_devinfo fails then."""
    text = (
        "### rdma-webhook discover: 2\n### host: n1\n### ran: ibstat (exit 0)\n"
        f"{IBSTAT}### ran: ibv_devinfo (exit 1)\nFailed to open device\n### end\n"
    )
    (finding,) = unread(discover, "-", stdin=text)
    assert finding["text"] == "ibv_devinfo could not open a device (1 time)"
