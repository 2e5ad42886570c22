"""The reader of perftest's text."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.tools.benchmarks import outputs
from tests.unit.diagnose.tools.benchmarks.outputs import (
    DASHES,
    FREQUENCY,
    JSON,
    LAT_HEADER,
    ROW_GBITS,
    ROW_MIB,
    addresses,
    bandwidth,
    gids,
    head,
    only,
    table,
    text,
)
from webhook.diagnose.tools.benchmarks import read_output
from webhook.diagnose.tools.benchmarks.measurements import Latency, MeasuredRow, Measurement


def test_everything_that_is_printed() -> None:
    """A run has the values of its header and its table, and nothing else."""
    assert only(bandwidth()) == Measurement(
        program="perftest",
        test="ib_write_bw",
        kind="bandwidth",
        line_range=(2, 20),
        rows=(MeasuredRow(20, 65536, 5000, gbps=46.4, peak_gbps=46.5),),
        complete=True,
        device="mlx5_4",
        link_layer="InfiniBand",
        mtu=4096,
        qps=1,
        bidirectional=False,
        loopback="",
    )


def test_the_header_does_not_tell_the_unit() -> None:
    """The message rate does: a server prints the client's numbers below its own header."""
    expected = [(row.gbps, row.peak_gbps) for row in only(bandwidth()).rows]
    assert expected == [(46.4, 46.5)]
    for row, unit in [(ROW_MIB, "MB/sec"), (ROW_MIB, "MiB/sec"), (ROW_MIB, "Gb/sec")]:
        (measured,) = only(bandwidth(row, unit)).rows
        assert measured.gbps == pytest.approx(46.4, abs=0.001)
        assert measured.peak_gbps == pytest.approx(46.5, abs=0.001)
    (measured,) = only(bandwidth(ROW_GBITS, "MB/sec")).rows
    assert (measured.gbps, measured.peak_gbps) == (46.4, 46.5)


@pytest.mark.parametrize(
    ("title", "test", "kind", "bidirectional"),
    [
        ("RDMA_Write BW Test", "ib_write_bw", "bandwidth", False),
        ("RDMA_Write Bidirectional BW Test", "ib_write_bw", "bandwidth", True),
        ("RDMA_Read BW Test", "ib_read_bw", "bandwidth", False),
        ("Send BW Test", "ib_send_bw", "bandwidth", False),
        ("Send Post List BW Test", "ib_send_bw", "bandwidth", False),
        ("Atomic BW Test", "ib_atomic_bw", "bandwidth", False),
        ("RDMA_Write Latency Test", "ib_write_lat", "latency", False),
        ("RDMA_Read Latency Test", "ib_read_lat", "latency", False),
        ("Send Latency Test", "ib_send_lat", "latency", False),
    ],
)
def test_titles(title: str, test: str, kind: str, bidirectional: bool) -> None:
    """The title names the command of the test."""
    run = only(bandwidth(title=title))
    assert (run.test, run.kind, run.bidirectional) == (test, kind, bidirectional)


def test_latency() -> None:
    """A row of latencies has the least, the typical, the average, the worst and the 99th."""
    run = only(outputs.latency())
    assert run.kind == "latency"
    assert run.rows == (MeasuredRow(20, 2, 1000, latency=Latency(1.52, 1.61, 1.64, 6.03, 1.72)),)


@pytest.mark.parametrize(
    ("header", "row", "latency"),
    [
        (
            " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]",
            " 2       1000          1.52           6.03         1.61",
            Latency(1.52, 1.61, None, 6.03, None),
        ),
        (
            " #bytes        #iterations       t_avg[usec]    tps average",
            " 2       912345            1.64          609756.10",
            Latency(average=1.64),
        ),
    ],
    ids=["old", "duration"],
)
def test_columns_of_latency(header: str, row: str, latency: Latency) -> None:
    """Old versions and runs for a time print fewer columns."""
    run = only(text(head("Send Latency Test"), [header, row]))
    assert [measured.latency for measured in run.rows] == [latency]
    assert run.duration is (True if "tps" in header else None)


@pytest.mark.parametrize("whole", [bandwidth(), outputs.latency()])
def test_a_row_that_is_cut(whole: str) -> None:
    """A part of a number is another number, so no figure of such a row is kept."""
    open_table = whole.removesuffix(f"\n{DASHES}\n")
    line = len(open_table.splitlines())
    row = open_table.rpartition("\n")[2]
    for length in range(2, len(row)):
        cut = only(open_table.removesuffix(row) + row[:length])
        assert (cut.rows, cut.cut_line) == ((), line)
    short = open_table.rpartition("  ")[0]
    assert (only(f"{short}\n").rows, only(f"{short}\n").cut_line) == ((), line)
    assert (len(only(f"{short}\n{DASHES}\n").rows), only(whole).cut_line) == (1, None)
    assert only(f"{open_table[:-1]}\n").cut_line is None
    assert only(open_table)._replace(complete=True) == only(whole)
    assert read_output(f"{short}\n{whole}").measurements[0].cut_line == line


def test_the_link_of_efa() -> None:
    """Perftest calls it IB, but packets of SRD have other headers than InfiniBand's."""
    efa = bandwidth().replace("Connection type : RC", "Connection type : SRD")
    assert (only(efa).link_layer, only(efa).mtu) == (None, 4096)
    report = JSON.replace("Link_type: Ethernet", "Connection_type: SRD,\nLink_type: IB")
    assert only(report).link_layer is None
    assert only(report.replace("SRD", "RC")).link_layer == "InfiniBand"
    assert only(bandwidth()).link_layer == "InfiniBand"


def test_rows_above_one_that_is_cut() -> None:
    """Only the last row is dropped."""
    rows = text(head(), addresses(), table(outputs.row(46.4), outputs.row(48.9, 8 << 20)))
    table_text = rows.removesuffix(f"\n{DASHES}\n")
    last = table_text.rpartition("\n")[2]
    for length in range(2, len(last)):
        run = only(table_text.removesuffix(last) + last[:length])
        assert ([row.gbps for row in run.rows], run.cut_line) == ([46.4], 21)
    assert only(f"{rows}8").cut_line is None
    assert only(f"{rows.rpartition(DASHES)[0]}8 of 9").cut_line is None
    assert only(f"{text(head())}8").cut_line is None
    assert only(f"{rows.rpartition(DASHES)[0]} Failed status 10: wr_id 0\n8").cut_line is None


def test_a_table_of_all_sizes() -> None:
    """With -a each size has a row, and remarks on the CPU's frequency occur between rows."""
    rows = [outputs.row(3.1, 1024), FREQUENCY, outputs.row(46.4), outputs.row(48.9, 8 << 20)]
    run = only(text(head(), addresses(), table(*rows)))
    assert [(row.size, row.gbps) for row in run.rows] == [
        (1024, 3.1),
        (1 << 20, 46.4),
        (8 << 20, 48.9),
    ]


def test_more_columns() -> None:
    """CPU utilization, a service level, and the two ports of a card have columns of their own."""
    cpu = outputs.BW_HEADER.format("Gb/sec") + "    CPU_Util[%]"
    assert only(text(head(), [cpu, f"{ROW_GBITS}    12.50"])).rows[0].gbps == 46.4
    sl = " #bytes    #sl      #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
    row = " 65536    3           5000           46.50            46.40                  0.088501"
    assert only(text(head(), [sl, row])).rows[0][1:4] == (65536, 5000, 46.4)
    ports = (
        outputs.BW_HEADER.format("Gb/sec")
        + "   BW Port1[Gb/sec]   MsgRate Port1[Mpps]   BW Port2[Gb/sec]   MsgRate Port2[Mpps]"
    )
    row = f"{ROW_GBITS}        23.20            0.044250              23.20            0.044251"
    assert only(text(head(), [ports, row])).rows[0].gbps == 46.4


@pytest.mark.parametrize(
    "row",
    [
        " 65536      5000             46.50              46.40",
        " 65536      5000             46.50              46.40     0.08",
        " 65536      5000             46.50              46.40     0.000000",
    ],
)
def test_a_unit_that_is_not_proven(row: str) -> None:
    """Without a message rate that fits, the size is known and the bandwidth is not."""
    (measured,) = only(bandwidth(row)).rows
    assert (measured.size, measured.gbps, measured.peak_gbps) == (65536, None, None)


def test_zero_is_zero_in_each_unit() -> None:
    """Perftest prints it if it could not measure the processor's clock."""
    (measured,) = only(bandwidth(" 65536      5000     0.00     0.00      0.000000")).rows
    assert (measured.gbps, measured.peak_gbps) == (0.0, None)


def test_large_messages_have_few_digits() -> None:
    """With 32 MiB, the message rate has a digit or two, which still prove the unit."""
    (measured,) = only(
        bandwidth(" 33554432    5                0.35               0.34   \t   0.000001")
    ).rows
    assert (measured.gbps, measured.peak_gbps) == (0.34, 0.35)


def test_a_peak_that_was_not_measured() -> None:
    """With -D or with many queue pairs the peak is 0.00."""
    (measured,) = only(
        bandwidth(" 65536      10329004         0.00               46.40    0.088501")
    ).rows
    assert (measured.gbps, measured.peak_gbps) == (46.4, None)


@pytest.mark.parametrize(
    "row",
    [
        " 65536.5      5000             46.50              46.40              0.088501",
        " 65536      5000.5             46.50              46.40              0.088501",
        " 65536      5000             46.50              46.40              0.088501    1   2",
        " 65536",
        " 65536 5000 46.50 46.40 fast",
        "",
    ],
)
def test_what_is_no_row(row: str) -> None:
    """A line that does not fit the columns is not a row."""
    assert only(bandwidth(row)).rows == ()


def test_gpu_memory() -> None:
    """CUDA is named before the header; its last lines do not belong to the next run."""
    before = ["initializing CUDA", "Picking device No. 0", "creating CUDA Ctx"]
    after = ["deallocating GPU buffer 00007f8738600000", "destroying current CUDA Ctx"]
    plain = [*head(), *addresses(), *table(ROW_GBITS)]
    first, second = read_output(text(before, plain, after, plain)).measurements
    assert (first.cuda, second.cuda) == (True, None)


@pytest.mark.parametrize(
    ("ends", "loopback"),
    [
        (addresses(), ""),
        (addresses("0x1a", "0x1a"), "Both ends have the same address, so no cable was tested."),
        (gids(), ""),
        (
            gids("10:20:00:01", "10:20:00:01"),
            "Both ends have the same address, so no cable was tested.",
        ),
        (addresses("0xXX", "0xXX"), None),
        (addresses("0x1a", "0xXX"), None),
        (addresses("0x1a")[:1] * 4, None),
        (gids()[:2] * 4, None),
        ([*gids()[:2] * 4, *gids()[2:] * 4], ""),
        (
            gids("00:00:00:00", "00:00:00:00"),
            "Both ends have the same address, so no cable was tested.",
        ),
        (
            [
                *gids()[:2],
                *(line.replace("255", "00") for line in gids("00:00:00:00", "00:00:00:00")),
            ],
            None,
        ),
        (gids()[1:2] * 2, None),
        ([], None),
    ],
    ids=[
        "lids",
        "one-lid",
        "gids",
        "one-gid",
        "redacted",
        "half-redacted",
        "local-lids-alone",
        "local-gids-alone",
        "queue-pairs",
        "mapped-zero",
        "gids-of-zero",
        "no-side",
        "none",
    ],
)
def test_loopback_by_addresses(ends: list[str], loopback: str | None) -> None:
    """Two ends with one LID, or on RoCE with one GID, are one port."""
    assert only(text(head(), ends, table(ROW_GBITS))).loopback == loopback


def mixed(*ends: list[str]) -> str:
    """Mix the lines of a server and a client, as in a shared terminal."""
    server, client = head(), head()
    lines = [line for pair in zip(server, client, strict=True) for line in pair]
    headers = [outputs.BW_HEADER.format("MB/sec"), DASHES, outputs.BW_HEADER.format("Gb/sec")]
    return text(lines, *ends, headers, [FREQUENCY, ROW_GBITS, DASHES, ROW_GBITS, DASHES])


def test_two_processes_in_a_terminal() -> None:
    """Mixed lines are one run, each row counts once, and both ends seem to be one."""
    run = only(mixed())
    assert (run.device, run.mtu, len(run.rows), run.rows[0].gbps) == (
        "mlx5_4",
        4096,
        1,
        46.4,
    )
    assert run.loopback is not None
    assert run.loopback.startswith("Server and client share a terminal")
    assert only(mixed(addresses(), addresses("0x2b", "0x1a"))).loopback == ""


def test_ends_that_differ() -> None:
    """With two devices, the run has none; of two MTUs, packets have the smaller."""
    output = text(head(device="mlx5_4"), head(device="mlx5_5", mtu=2048), table(ROW_GBITS))
    run = only(output)
    assert (run.device, run.mtu) == (None, 2048)


@pytest.mark.parametrize(
    ("command", "port", "duration", "server"),
    [
        (
            "$ ib_write_bw -d mlx5_4 -i 2 127.0.0.1 --report_gbits",
            2,
            False,
            "127.0.0.1",
        ),
        (
            "root@a:~# ib_write_bw --ib-dev=mlx5_4 --ib-port=1 -D 10 localhost &",
            1,
            True,
            "localhost",
        ),
        ("ib_write_bw -F -q 2 -s 65536 -a ::1", None, False, "::1"),
        ("sh -c 'x' && ib_write_bw -d mlx5_4 10.0.0.7", None, False, ""),
        ("ib_write_bw -x 127 -i two --duration=5 -d", None, True, ""),
        ("ib_write_bw -d mlx5_4 | grep 127.0.0.1", None, False, ""),
    ],
)
def test_the_command_above(command: str, port: int | None, duration: bool, server: str) -> None:
    """The echo of a command has the port, the duration, and the address of the server."""
    run = only(command + "\n" + bandwidth())
    assert (run.port, run.duration) == (port, duration)
    sentence = f"The client connected to {server}, so no cable was tested."
    assert run.loopback == (sentence if server else "")
    assert run.line_range[0] == 1


def test_a_command_without_output() -> None:
    """A command alone, as in documentation, is not a measurement."""
    assert read_output("ib_write_bw -d mlx5_4\n").measurements == ()


def test_a_failure_before_the_header() -> None:
    """The command of an early failure has the test, the device and the direction."""
    output = "$ ib_read_lat -d mlx5_0 -b -i 1 10.0.0.7\nPort number 1 state is Down\nCouldn't set\n"
    run = only(output)
    assert run[:4] == ("perftest", "ib_read_lat", "latency", (1, 2))
    assert (run.device, run.port, run.bidirectional, run.rows) == ("mlx5_0", 1, True, ())


def test_consecutive_runs() -> None:
    """A title or a command after a table, or after a failure, begins another run."""
    first = "$ ib_write_bw -d mlx5_0\nPort number 1 state is Down\n"
    second = "$ ib_write_bw -d mlx5_1\n" + bandwidth(device="mlx5_1")
    third = bandwidth(device="mlx5_2", title="RDMA_Read BW Test")
    done = "[1]+  Done                    ib_write_bw -d mlx5_2\n"
    runs = read_output(first + second + third + done).measurements
    assert [(run.test, run.device, len(run.rows)) for run in runs] == [
        ("ib_write_bw", "mlx5_0", 0),
        ("ib_write_bw", "mlx5_1", 1),
        ("ib_read_bw", "mlx5_2", 1),
    ]


def test_only_a_table() -> None:
    """Without a title, the columns show the kind of measurement, but not the program."""
    run = only(text(table(ROW_GBITS)))
    assert (run.test, run.kind, run.rows[0].gbps) == (None, "bandwidth", 46.4)
    run = only(text([LAT_HEADER, " 2 1000 1.52 6.03 1.61 1.64"]))
    assert (run.test, run.kind) == (None, "latency")
    run = only(text([" #bytes     #iterations", " 2 1000 1.5"]))
    assert (run.kind, run.rows) == (None, ())


def test_what_terminals_add() -> None:
    """Colors, carriage returns, and the prefixes of mpirun and kubectl are left out."""
    plain = only(bandwidth())
    assert only(bandwidth().replace("\n", "\r\n")) == plain
    assert only("".join(f"\x1b[32m{line}\x1b[0m\n" for line in bandwidth().splitlines())) == plain
    assert only("".join(f"[1,0]<stdout>:{line}\n" for line in bandwidth().splitlines())) == plain
    prefix = "[pod/perftest-client/perftest] "
    assert only("".join(f"{prefix}{line}\n" for line in bandwidth().splitlines())) == plain


def test_both_ports() -> None:
    """With -O, both ports of the card send."""
    assert only(bandwidth().replace("Dual-port       : OFF", "Dual-port       : ON")).dual_port
    assert only(bandwidth()).dual_port is None
    assert only(JSON.replace("Dual_port: OFF", "Dual_port: ON")).dual_port
    assert only(JSON).dual_port is None
