"""Tools that failed are named with the cause; their hosts have answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.diagnose.discover.observed_nodes import IBSTAT as ORIGIN
from tests.unit.diagnose.discover.observed_nodes import discovered, gpus, observed, port
from tests.unit.diagnose.discover.test_discover_command import IBSTAT, Discover, discover
from webhook.diagnose.tools.observations import FailureKind, Origin, ToolFailure

__all__ = ["discover"]

NO_DRIVER = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver"


def words(text: str) -> str:
    """Return a report without its line breaks."""
    return " ".join(text.split())


@pytest.mark.parametrize(
    "text",
    [
        "gpu-03 | FAILED | rc=127 >>\n/bin/sh: 1: ibstat: not foundnon-zero return code\n",
        (
            "gpu-03: bash: line 1: ibstat: command not found\n"
            "pdsh@admin: gpu-03: ssh exited with exit code 127\n"
        ),
    ],
)
def test_a_host_without_a_tool_has_answered(discover: Discover, text: str) -> None:
    """Nobody needs to connect to it: the tool is to be installed."""
    ran = discover("-", stdin=text)
    report = words(ran.out)
    assert "gpu-03: ibstat is not installed [ToolFailed]" in report
    assert "did not answer" not in report
    assert ran.code == 1


@pytest.mark.parametrize(
    ("head", "end"),
    [
        ("gpu-04 | FAILED | rc=255 >>\n", ""),
        ("", "pdsh@admin: gpu-04: ssh exited with exit code 255\n"),
    ],
)
def test_an_ibstat_that_stopped_is_an_error(discover: Discover, head: str, end: str) -> None:
    """A fabric of the first device alone would look whole."""
    message = "ibpanic: [711] main: stat of IB device 'mlx5_1' failed: No such file or directory"
    lines = [f"{'gpu-04: ' if end else ''}{line}" for line in (*IBSTAT.splitlines(), message)]
    ran = discover("-", stdin=head + "\n".join(lines) + f"\n{end}")
    sentence = "gpu-04: ibstat stopped before its end: stat of IB device 'mlx5_1' failed"
    assert sentence in words(ran.out)
    assert ran.code == 1


@pytest.mark.parametrize(
    ("message", "details"),
    [
        ("No IB devices found", " (ibv_devinfo: No IB devices found)"),
        (
            "Failed to get IB devices list: Function not implemented",
            " (ibv_devinfo: Failed to get IB devices list)",
        ),
        (
            "Fatal error:  device '*': sys files not found (/sys/class/infiniband/*/ports)",
            " (ibstatus: Fatal error: device '*': sys files not found)",
        ),
        (f"{NO_DRIVER}.", ""),
    ],
)
def test_a_message_alone_is_the_output_of_a_node(
    discover: Discover, tmp_path: Path, message: str, details: str
) -> None:
    """The node stays in the report, and has no RDMA device."""
    tmp_path.joinpath("n1.txt").write_text(IBSTAT, encoding="utf-8")
    tmp_path.joinpath("n2.txt").write_text(f"{message}\n", encoding="utf-8")
    ran = discover("--dir", str(tmp_path))
    report = words(ran.out)
    assert report.startswith("2 nodes, 1 fabric")
    assert f"n2: no tool shows an RDMA device{details} [NodeWithoutRdmaDevice]" in report
    assert ("[ToolFailed]" in report) == message.startswith("NVIDIA")
    assert (ran.code, ran.err) == (1, "")


@pytest.mark.parametrize(
    ("kind", "tool", "text"),
    [
        ("no device", "ibv_devinfo", "ibv_devinfo finds no RDMA device, but other tools show one"),
        ("no driver", "nvidia-smi", "nvidia-smi shows no GPU"),
        ("not installed", "ibstat", None),
    ],
)
def test_a_node_with_devices_has_only_what_matters(
    kind: FailureKind, tool: str, text: str | None
) -> None:
    """Another tool shows what one that is not installed would have shown."""
    failure = ToolFailure(Origin(tool, 9), kind, "" if text is None else "x")
    discovery = discovered({"n1": observed(port("mlx5_0"), failure)})
    expected = [] if text is None else [("warning", f"{text}: x")]
    assert [(finding.level, finding.text) for finding in discovery.findings] == expected


def test_tools_of_gpus_explain_no_missing_rdma_device() -> None:
    """A node without GPUs needs none of them; others are named in one finding."""
    failures = [
        ToolFailure(Origin(tool, line), "not installed")
        for line, tool in enumerate(("nvidia-smi", "ibstat", "ibstat", "ibv_devinfo"))
    ]
    discovery = discovered({"n1": observed(failures)})
    texts = {finding.text for finding in discovery.findings if finding.code == "ToolFailed"}
    assert texts == {"ibstat, ibv_devinfo are not installed"}


def test_a_message_counts_once() -> None:
    """A tool that was run twice failed for one reason."""
    twice = [ToolFailure(ORIGIN._replace(line=line), "stopped", "x") for line in (1, 2)]
    findings = discovered({"n1": observed(port("mlx5_0"), gpus(), twice)}).findings
    assert [finding.text for finding in findings] == ["ibstat stopped before its end: x"]
