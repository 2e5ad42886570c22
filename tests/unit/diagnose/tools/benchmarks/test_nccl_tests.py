"""Outputs of nccl-tests and rccl-tests as launchers and people leave them.

The forms and figures follow published outputs: NVIDIA/nccl issues 302 and 1453 (labels of MPICH),
ROCm/rccl issues 1261 and 1490, NVIDIA/nccl-tests issues 182 and 213 (built without MPI).
"""

from __future__ import annotations

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import nccl_job, nccl_log, nccl_tests, only
from webhook.diagnose.tools.benchmarks import read_output
from webhook.diagnose.tools.benchmarks.measurements import (
    Measurement,
    benchmark_lines_by_node,
    output_lines,
)

HEADER = "#       size         count      type   redop    root     time   algbw   busbw #wrong"
BEGIN = "# nThread 1 nGpus 2 minBytes 8 maxBytes 1024"
ROW = "  1073741824     268435456     float     sum      -1    23015   46.65   87.47      0\n"


def test_a_table_without_a_name() -> None:
    """The rows show the test; the one with the largest messages counts, wherever it is."""
    body = nccl_tests().partition("\n")[2]
    assert only(body).test == "all_reduce_perf"
    scatter = body.replace("268435456", "134217728")
    assert only(scatter).test == "reduce_scatter_perf"
    small = "    8    1     float    none      -1    21.5  0.0  0.0  0  1  0.0  0.0  0\n"
    assert only(scatter.replace("# Out of", f"{small}# Out of")).test == "reduce_scatter_perf"
    assert only(body.replace("           8             2     float", "8  2  quad")).test == (
        "all_reduce_perf"
    )


def test_a_name_in_the_output_decides() -> None:
    """A row is only evidence where no line names the test."""
    assert only(nccl_tests("reduce_perf")).test == "reduce_perf"


def test_the_programs_of_packages() -> None:
    """Images and packages call the programs that use MPI all_reduce_perf_mpi."""
    assert only(nccl_tests("alltoall_perf_mpi")).test == "alltoall_perf"


def test_the_header_of_rccl_tests() -> None:
    """It is a run even if the program ends before its table."""
    begin = "$ reduce_perf -g 1\n# nThreads: 1 nGpus: 1 nRanks: 1 minBytes: 1024 maxBytes: 8\n"
    run = only(begin)
    assert (run.test, run.rows, run.line_range) == ("reduce_perf", (), (2, 2))


def test_the_labels_of_mpich() -> None:
    """With -prepend-rank, mpirun writes the rank before each piece of a row, also in its middle."""
    lines = nccl_tests().splitlines()
    lines = [
        line.replace("     -1 ", "     -1[0] ").replace("      0  ", "      0[0]  ")
        for line in lines
    ]
    labeled = "".join(f"[0] {line}\n" for line in lines)
    assert "-1[0]" in labeled
    assert only(labeled)._replace(rows=()) == only(nccl_tests())._replace(rows=())
    assert [row._replace(line=0) for row in only(labeled).rows] == [
        row._replace(line=0) for row in only(nccl_tests()).rows
    ]
    assert only(labeled.partition("\n")[2]).test == "all_reduce_perf"
    assert output_lines(" [12] # nThread 1")[0].text == "# nThread 1"
    assert output_lines("n:1:2 [1] NCCL INFO x")[0].text == "n:1:2 [1] NCCL INFO x"


def test_a_table_with_the_label_of_srun() -> None:
    """A person may copy the table alone; its label is no part of it."""
    table = "\n".join(f" 0: {line}" for line in (HEADER, ROW.strip()))
    nodes = benchmark_lines_by_node(output_lines(table))
    assert list(nodes) == [None]
    assert only("\n".join(line.text for line in nodes[None])).best_gbps == 699.76


def separate_runs(*order: tuple[int, str]) -> str:
    """Return the output of two nodes, each with its own ranks 0 and 1, as (rank, host)."""
    ranks = "".join(
        f"#  Rank  {rank} Group  0 Pid  7 on {host} device  0\n" for rank, host in order
    )
    opening = f"{BEGIN}\n#\n# Using devices\n"
    return f"{opening}{opening}{ranks}{HEADER}\n{HEADER}\n{ROW}{ROW}"


@pytest.mark.parametrize(
    "order",
    [
        ((0, "a"), (1, "a"), (0, "b"), (1, "b")),
        ((0, "a"), (0, "b"), (1, "b"), (1, "a")),
    ],
)
def test_nodes_that_do_not_see_each_other(order: tuple[tuple[int, str], ...]) -> None:
    """Whatever the order of their lines, none of them used the network."""
    run = only(separate_runs(*order))
    assert (run.ranks, run.nodes) == (2, 1)
    assert run.loopback is not None
    assert "built without MPI=1" in run.loopback
    assert only(nccl_tests()).loopback is None


def test_a_run_that_ended_at_once() -> None:
    """After a line of its log, another header belongs to another run."""
    text = f"{BEGIN}\nn:1:1 [0] NCCL WARN x\n{nccl_tests()}"
    assert [len(run.rows) for run in read_output(text).measurements] == [0, 4]
    begun = f"{BEGIN}\n#  Rank  0 Group  0 Pid  7 on a device  0\n\n{nccl_tests()}"
    assert [run.ranks for run in read_output(begun).measurements] == [1, 2]
    assert [len(run.rows) for run in read_output(f"{BEGIN}\n\n#\n{nccl_tests()}").measurements] == [
        4
    ]


def with_command(command: str) -> Measurement:
    """Return the run of an output below a command."""
    return only(f"{command}\n{nccl_job()}")


@pytest.mark.parametrize(
    ("command", "setting"),
    [
        ("mpirun -x NCCL_IB_DISABLE=1 all_reduce_perf", "NCCL_IB_DISABLE=1"),
        ("NCCL_IB_DISABLE=0 all_reduce_perf", None),
        ("NCCL_IB_DISABLE=1\nNCCL_IB_DISABLE=0 all_reduce_perf", None),
        ("mpirun -x NCCL_NET=Socket all_reduce_perf", "NCCL_NET=Socket"),
        ("mpirun -x NCCL_NET=socket -x FI_PROVIDER=efa all_reduce_perf", "NCCL_NET=socket"),
        ("mpirun -x NCCL_NET=IB all_reduce_perf", None),
        ("mpirun -x FI_PROVIDER=efa \\\n -x NCCL_IB_DISABLE=1 all_reduce_perf", None),
        ("LD_LIBRARY_PATH=/opt/amazon/ofi-nccl/lib NCCL_IB_DISABLE=1 all_reduce_perf", None),
        ("export MY_NCCL_IB_DISABLE=1", None),
        ("n:1:1 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.", None),
        ("", None),
    ],
)
def test_settings_in_a_command(command: str, setting: str | None) -> None:
    """NCCL_IB_DISABLE does not turn off a plugin for libfabric, if a command has signs of it."""
    run = with_command(command)
    assert (run.transport_setting, run.over_rdma) == (setting, False if setting else None)


def test_a_setting_is_that_of_the_next_run() -> None:
    """A later command starts with none."""
    text = f"NCCL_IB_DISABLE=1 all_reduce_perf\n{nccl_job()}$ all_gather_perf\n{nccl_job()}"
    runs = read_output(text).measurements
    assert [run.transport_setting for run in runs] == ["NCCL_IB_DISABLE=1", None]


def test_whether_results_were_checked() -> None:
    """Older versions print the largest error, which is seldom 0; N/A stands for -c 0."""
    assert only(nccl_job()).checked is True
    assert only(nccl_job(wrong="N/A")).checked is False
    assert only(nccl_job(wrong="5e-07").replace("#wrong", "error")).checked is True
    assert only(nccl_job() + nccl_log()).checked is True
    assert only(nccl_job(wrong="0").replace("# Out", f"{ROW.replace(' 0', ' N/A')}# Out")).checked
    assert only(nccl_tests().partition("           8")[0]).checked is None
