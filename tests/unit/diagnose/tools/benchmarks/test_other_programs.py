"""The readers of nccl-tests, ucx_perftest, rping, and perftest's JSON."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import (
    JSON,
    PINGS,
    VALID_JSON,
    bandwidth,
    nccl_tests,
    only,
    ucx_perftest,
)
from webhook.diagnose.tools.benchmarks import read_output
from webhook.diagnose.tools.benchmarks.measurements import Latency, MeasuredRow, Measurement


def test_nccl_tests() -> None:
    """A row has a number for buffers out of place and one in place; 46.65 GB/s are 373.2 Gb/s."""
    run = only(nccl_tests())
    assert run._replace(rows=()) == Measurement(
        program="nccl-tests",
        test="all_reduce_perf",
        kind="collective",
        line_range=(2, 14),
        complete=True,
        ranks=2,
        nodes=2,
        cuda=True,
        average_gbps=186.26,
        wrong_elements=0,
        checked=True,
    )
    assert [
        (row.size, row.gbps, row.latency, row.in_place, row.wrong_elements) for row in run.rows
    ] == [
        (8, 0.0, Latency(average=21.5), False, 0),
        (8, 0.0, Latency(average=21.1), True, 0),
        (1 << 30, 373.2, Latency(average=23015.0), False, 0),
        (1 << 30, 371.84, Latency(average=23100.0), True, 0),
    ]


def test_nccl_tests_that_are_wrong() -> None:
    """The summary counts wrong elements; without it, the rows do."""
    output = nccl_tests("alltoall_perf", wrong=7)
    assert (only(output).test, only(output).wrong_elements) == ("alltoall_perf", 7)
    assert only(output.partition("# Out of")[0]).wrong_elements == 7
    assert (
        only(output.replace("      7\n", "    N/A\n").partition("# Out of")[0]).wrong_elements == 0
    )
    unchecked = output.replace("      0 ", "    N/A ").replace("      0\n", "    N/A\n")
    assert (
        only(unchecked.replace("      7\n", "    N/A\n").partition("# Out of")[0]).wrong_elements
        is None
    )


def test_nccl_tests_on_a_single_machine() -> None:
    """The machines are counted by their names."""
    assert only(nccl_tests(other="node-a")).nodes == 1


def test_nccl_tests_cut() -> None:
    """Without its header a table is a run of unknown machines; a cut row keeps what is complete."""
    body = nccl_tests()[nccl_tests().index("#       size") :]
    run = only(body)
    assert (run.nodes, run.ranks, len(run.rows)) == (None, None, 4)
    cut = body[: body.index("   23100")]
    assert [row.in_place for row in only(cut).rows] == [False, True, False]
    assert only(nccl_tests().partition("           8")[0]).rows == ()


def test_a_count_with_a_fraction_is_no_count() -> None:
    """A word between the names of the columns moves them, so #wrong has the value of a time."""
    moved = nccl_tests().replace("root     time", "root  x  time", 1)
    assert moved != nccl_tests()
    cut = moved[: moved.index("21.10") + len("21.1")]
    (run,) = read_output(cut).measurements
    assert [row.wrong_elements for row in run.rows] == [None]


def test_nccl_tests_twice() -> None:
    """Each begins with its own header, and the test is named above it."""
    runs = read_output(nccl_tests() + nccl_tests("alltoall_perf")).measurements
    assert [(run.test, len(run.rows)) for run in runs] == [
        ("all_reduce_perf", 4),
        ("alltoall_perf", 4),
    ]


def test_nccl_tests_of_older_versions() -> None:
    """Their last column is called "error", and a command names the test."""
    old = nccl_tests().replace("#wrong", " error").replace("# Collective test starting: ", "$ ./")
    run = only(old.replace("      0 ", "  0e+00 "))
    assert (run.test, run.rows[0].wrong_elements) == ("all_reduce_perf", None)
    assert (run.checked, run.wrong_elements) == (True, 0)


@pytest.mark.parametrize(
    ("report", "figure"), [(JSON, "MsgRate: 0"), (VALID_JSON, '"t_typical": 1')]
)
def test_json_that_is_cut(report: str, figure: str) -> None:
    """A figure may lack digits until its report ends, so none is kept."""
    cut = only(report[: report.index(figure) + len(figure)])
    assert (cut.rows, cut.cut_line) == ((), cut.line_range[1])
    assert only(report).cut_line is None


@pytest.mark.parametrize("end", ["5", "5e", "5e-", "5e-0"])
def test_an_error_that_is_cut(end: str) -> None:
    """An error of 5e-07 is rounding, and never a number of wrong elements."""
    old = nccl_tests().replace("#wrong", " error").replace("      0", "  5e-07")
    table, *_ = old.partition("\n# Out of")
    row = table.rpartition("\n")[2]
    last = len(table.splitlines())
    cut = only(table.removesuffix("5e-07") + end)
    assert (cut.cut_line, cut.wrong_elements, cut.best_gbps) == (last, None, 373.2)
    out_of_place = only(table.removesuffix(row) + row.partition("e-07")[0])
    assert (out_of_place.cut_line, out_of_place.wrong_elements) == (last, None)
    for whole in (table, f"{table}\n", f"{table.removesuffix('5e-07')}N/A", old):
        assert only(whole).cut_line is None
    assert only(f"{table.removesuffix('5e-07')}5\n").cut_line is None


def test_a_table_of_nccl_tests_that_is_cut() -> None:
    """Without its last columns a row is cut, except above the end of the table."""
    table, *_ = nccl_tests().partition("\n# Out of")
    row = table.rpartition("\n")[2]
    short = table.removesuffix(row) + row.partition("   23100")[0]
    for cut in (short, f"{short}\n"):
        assert (only(cut).cut_line, only(cut).best_gbps) == (len(table.splitlines()), 373.2)
    for end in ("# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 23.2825"):
        assert only(f"{short}\n{end}\n").cut_line is None
    assert only(table).cut_line is None


def test_ucx_perftest() -> None:
    """MB are 2^20 bytes, and the numbers of the whole run count."""
    assert only(ucx_perftest()) == Measurement(
        program="ucx_perftest",
        test="tag match bandwidth",
        kind="bandwidth",
        line_range=(2, 15),
        complete=True,
        rows=(MeasuredRow(15, 1 << 20, 1000, gbps=195.448),),
        cuda=False,
    )


def test_ucx_perftest_latency() -> None:
    """A test of latency has no meaningful bandwidth."""
    run = only(ucx_perftest("latency", "cuda"))
    assert (run.kind, run.cuda) == ("latency", True)
    assert run.rows == (MeasuredRow(15, 1 << 20, 1000, latency=Latency(None, 43.0, 42.92)),)


def test_ucx_perftest_that_was_stopped() -> None:
    """Without its last line, the newest number counts; without any number, there is no row."""
    stopped = ucx_perftest().partition("Final:")[0]
    assert only(stopped).rows[0][:3] == (14, 1 << 20, 700)
    run = only(ucx_perftest().partition("| API")[0])
    assert (run.rows, run.cuda, run.test) == ((), None, None)


def test_ucx_perftest_twice() -> None:
    """A second header after a number begins another run."""
    runs = read_output(ucx_perftest() + ucx_perftest("latency")).measurements
    assert [run.kind for run in runs] == ["bandwidth", "latency"]


def test_json_that_is_none() -> None:
    """Older versions leave out quotes; the unit is proven as in text."""
    assert only(JSON) == Measurement(
        program="perftest",
        test="ib_write_bw",
        kind="bandwidth",
        line_range=(2, 20),
        rows=(MeasuredRow(16, 65536, 5000, gbps=46.4, peak_gbps=46.5),),
        device="mlx5_6",
        link_layer="Ethernet",
        mtu=2048,
        qps=2,
        bidirectional=False,
        cuda=True,
    )


def test_json() -> None:
    """Newer versions write JSON, possibly in one line."""
    run = only(VALID_JSON)
    assert run[:4] == ("perftest", "ib_send_lat", "latency", (1, 1))
    assert (run.device, run.mtu, run.bidirectional, run.qps) == ("mlx5_7", 4096, True, None)
    assert run.rows == (MeasuredRow(1, 8, 1000, latency=Latency(1.4, 1.5, 1.55, 9.5, 1.9)),)
    assert len(read_output(VALID_JSON * 3).measurements) == 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BW_average: 5531.31", "BW_average: none"),
        ("MsgRate: 0.088501", "MsgRate: 0.010000"),
        ("MsgRate: 0.088501,", ""),
    ],
)
def test_json_without_a_number(old: str, new: str) -> None:
    """A unit that is not proven gives no bandwidth."""
    (row,) = only(JSON.replace(old, new)).rows
    assert (row.size, row.gbps) == (65536, None)


def test_json_of_other_tests() -> None:
    """An unknown test has no kind, and without a size there is no row."""
    run = only(JSON.replace("RDMA_Write_BW_Test", "Flow_Test").replace("MsgSize: 65536", ""))
    assert (run.test, run.kind, run.bidirectional, run.rows) == (None, None, None, ())
    assert read_output("test_info\n").measurements == ()
    assert only(JSON.replace("Mtu: 2048", "Mtu: 2.5")).mtu is None


def test_json_ends() -> None:
    """Lines after a report do not belong to it."""
    after = "Link_type: IB\nMtu: 256\n"
    assert only(JSON + after) == only(JSON)
    assert only(VALID_JSON + after) == only(VALID_JSON)


def test_rping() -> None:
    """Each run begins at ping 0; server and client print their own lines."""
    run = only(PINGS + "client DISCONNECT EVENT...\n")
    assert run == Measurement(
        "rping", "rping", "connection", (1, 3), (MeasuredRow(1, iterations=3),)
    )
    server = PINGS.replace("ping data", "server ping data", 3)
    assert len(read_output(PINGS + PINGS + server).measurements) == 3


def test_all_programs_in_a_text() -> None:
    """Programs one after the other are read in their order."""
    parts = [PINGS, bandwidth(), nccl_tests(), JSON, ucx_perftest()]
    assert [run.program for run in read_output("".join(parts)).measurements] == [
        "rping",
        "perftest",
        "nccl-tests",
        "perftest",
        "ucx_perftest",
    ]
