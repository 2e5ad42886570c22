"""Outputs of many nodes in one text, with the prefixes of pdsh and clush."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import ROW_GBITS, bandwidth, nccl_tests
from webhook.diagnose.tools.benchmarks import read_output_lines
from webhook.diagnose.tools.benchmarks.measurements import benchmark_lines_by_node, output_lines


def prefixed(name: str, text: str) -> list[str]:
    """Put a node's name before each line."""
    return [f"{name}: {line}" for line in text.splitlines()]


def in_turn(*texts: list[str]) -> str:
    """Mix the lines of nodes."""
    return "\n".join(line for lines in zip(*texts, strict=True) for line in lines)


@pytest.mark.parametrize("output", [bandwidth(), nccl_tests()], ids=["perftest", "nccl-tests"])
def test_nodes_are_separated(output: str) -> None:
    """Each node has its own lines, with their numbers in the whole text."""
    text = in_turn(prefixed("gpu-01", output), prefixed("gpu-02.lab", output))
    nodes = benchmark_lines_by_node(output_lines(text))
    assert list(nodes) == ["gpu-01", "gpu-02.lab"]
    assert [line.number for line in nodes["gpu-02.lab"][:3]] == [2, 4, 6]
    assert [line.text for line in nodes["gpu-01"]] == [line.strip() for line in output.splitlines()]
    (run,) = read_output_lines(nodes["gpu-02.lab"]).measurements
    assert run.rows
    assert all(row.line % 2 == 0 for row in run.rows)


def test_a_node_that_failed() -> None:
    """It has no header of a benchmark, but a similar name; failures keep their line numbers."""
    text = "\n".join([*prefixed("gpu-1", bandwidth()), "gpu-17: Couldn't allocate MR"])
    nodes = benchmark_lines_by_node(output_lines(text))
    assert list(nodes) == ["gpu-1", "gpu-17"]
    (failure,) = read_output_lines(nodes["gpu-17"]).failures
    assert (failure.number, failure.known_line.code) == (len(text.splitlines()), "PerftestNoMemory")


def test_what_pdsh_says_itself() -> None:
    """Its remarks name the node, too, and empty lines may have lost their blank."""
    text = "\n".join(
        [*prefixed("n1", bandwidth()), "pdsh@head: n2: ssh exited with exit code 137", "n1:"]
    )
    nodes = benchmark_lines_by_node(output_lines(text))
    assert [line.text for line in nodes["n2"]] == ["ssh exited with exit code 137"]
    assert nodes["n1"][-1].text == ""


@pytest.mark.parametrize(
    "line",
    [
        "libibverbs: Warning: no userspace device-specific driver found for /sys/x",
        "ethernet_read_keys: Couldn't read remote address",
        "GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:20:00:01",
        "test: RDMA_Write_BW_Test,",
        f"title: {ROW_GBITS}",
    ],
)
def test_what_programs_write(line: str) -> None:
    """A word and a colon are not a node unless a benchmark begins after them."""
    lines = output_lines(f"{bandwidth()}{line}\n")
    assert benchmark_lines_by_node(lines) == {None: lines}


def test_lines_of_nobody() -> None:
    """Lines without a prefix belong to no node."""
    text = "\n".join(["begin", *prefixed("n1", bandwidth()), "end"])
    nodes = benchmark_lines_by_node(output_lines(text))
    assert [line.text for line in nodes[None]] == ["begin", "end"]


@pytest.mark.parametrize("pad", ["", " "])
def test_the_labels_of_srun(pad: str) -> None:
    """The ranks of nccl-tests are one run: each prints its log, only the first one the table."""
    table = prefixed(f"{pad}0", nccl_tests())
    logs = [f"{pad}{rank}: n:1:1 [0] NCCL INFO Channel via NET/IB/{rank}" for rank in (0, 1, 10)]
    nodes = benchmark_lines_by_node(output_lines("\n".join([logs[1], *table, logs[0], logs[2]])))
    assert list(nodes) == [None]
    assert [line.number for line in nodes[None]] == list(range(1, len(table) + 4))
    assert nodes[None][0].text == "n:1:1 [0] NCCL INFO Channel via NET/IB/1"
    assert nodes[None][1].text == "# Collective test starting: all_reduce_perf"


def test_the_tasks_of_perftest() -> None:
    """Each task is an end of its own, and so is each node with a name."""
    tasks = [*prefixed("0", bandwidth()), *prefixed("1", bandwidth())]
    assert list(benchmark_lines_by_node(output_lines("\n".join(tasks)))) == ["0", "1"]
    mixed = [*prefixed("0", nccl_tests()), *prefixed("gpu-1", nccl_tests())]
    assert list(benchmark_lines_by_node(output_lines("\n".join(mixed)))) == [None, "gpu-1"]
    command = "0: $ ib_write_bw # nThread"
    nodes = benchmark_lines_by_node(output_lines("\n".join([*tasks, command])))
    assert list(nodes) == ["0", "1"]
