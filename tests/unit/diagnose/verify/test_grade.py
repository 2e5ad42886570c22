"""The level on a single run."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.tools.benchmarks import outputs
from tests.unit.diagnose.tools.benchmarks.outputs import (
    PINGS,
    bandwidth,
    latency,
    nccl_tests,
    row,
    ucx_perftest,
)
from tests.unit.diagnose.verify.evaluated import evaluated, only_result
from webhook.diagnose.tools.known_lines import TRANSPORTS

OVER_RDMA, OVER_SOCKETS = TRANSPORTS[0].example, TRANSPORTS[1].example
UCX_RDMA, UCX_TCP = TRANSPORTS[6].example, TRANSPORTS[7].example


@pytest.mark.parametrize(
    ("gbps", "level", "code"),
    [
        (99.37, "ok", "AtRate"),
        (89.44, "ok", "AtRate"),
        (89.42, "warning", "BelowRate"),
        (74.54, "warning", "BelowRate"),
        (74.51, "error", "FarBelowRate"),
        (1.0, "error", "FarBelowRate"),
    ],
)
def test_thresholds(gbps: float, level: str, code: str) -> None:
    """0.9 of the expectation (99.37 Gb/s here) passes, and 0.75 warns."""
    result = only_result(bandwidth(row(gbps)))
    assert (result.finding.level, result.finding.code, result.gbps) == (level, code, gbps)
    assert bool(result.finding.remedy) == (level != "ok")
    assert result.layer == ("link" if level == "error" else None)


def test_a_pass_in_full() -> None:
    """The result has the number, the expectation and its computation."""
    result = only_result(bandwidth(row(94.71)))
    assert result.finding.text == "94.7 Gb/s, 95% of the expected 99.37 Gb/s."
    assert (result.expected, result.finding.remedy) == (99.37, "")
    assert result.computation == "--rate 100 × 0.994 payload share at MTU 4096"


def test_a_cut_row_is_not_graded() -> None:
    """A part of its number is missing."""
    cut = bandwidth(row(95)).rpartition("0")[0]
    for output in (cut[: cut.rindex(".") - 1] + "0", latency().rpartition("1.61")[0] + "1"):
        result = only_result(output)
        assert (result.finding.level, result.finding.code) == ("unsure", "NoResult")
        assert result.finding.text == "The output is cut in line 20."
        assert (result.gbps, result.latency_us) == (None, None)


@pytest.mark.parametrize(
    ("gbps", "level", "code", "end"),
    [
        (95, "ok", "AtRate", "Gb/s."),
        (50, "unsure", "NoResult", "Gb/s. The output is cut in line 21."),
    ],
)
def test_rows_above_a_cut_one(gbps: float, level: str, code: str, end: str) -> None:
    """They prove that a link is good; a larger message may have been faster than they were."""
    output = bandwidth(f"{row(gbps)}\n{row(99, 8 << 20)}")
    result = only_result(output[: output.rindex(".") + 1] + "0")
    assert (result.finding.level, result.finding.code, result.gbps) == (level, code, gbps)
    assert result.finding.text == f"{gbps:.1f} Gb/s, {gbps / 99.37:.0%} of the expected 99.37 {end}"


def test_the_best_row_counts() -> None:
    """The highest average of all sizes is graded, not the peak."""
    output = bandwidth("\n".join([row(20, 1024), row(95), row(90, 8 << 20)]))
    assert only_result(output).gbps == 95


@pytest.mark.parametrize(
    ("size", "qps", "code"),
    [
        (65536, 1, "SmallMessages"),
        ((1 << 20) - 1, 1, "SmallMessages"),
        (1 << 20, 1, "FarBelowRate"),
        (65536, 2, "FarBelowRate"),
    ],
)
def test_small_messages(size: int, qps: int, code: str) -> None:
    """One queue pair with small messages does not prove that a link is slow."""
    assert only_result(bandwidth(row(50, size), qps=qps)).finding.code == code


@pytest.mark.parametrize(
    ("largest", "level", "code"),
    [
        (8 << 20, "error", "FarBelowRate"),
        (1 << 20, "error", "FarBelowRate"),
        (512 << 10, "unsure", "SmallMessages"),
    ],
)
def test_a_table_of_many_sizes_is_graded_by_its_large_messages(
    largest: int, level: str, code: str
) -> None:
    """`-a` begins with 2 bytes: a slow link is still slow if one row had messages of 1 MiB."""
    rows = [row(0.1, 2), row(40, 65536), row(50, largest)]
    for table in (rows, rows[::-1]):
        result = only_result(bandwidth("\n".join(table)))
        assert (result.finding.level, result.finding.code, result.gbps) == (level, code, 50)


def test_a_table_that_was_cut() -> None:
    """It already is that of -a, so the remedy is not to use -a; a complete one needs more pairs."""
    table = bandwidth("\n".join([row(40, 32768), row(50, 65536)]))
    cut = only_result(table.rpartition("---")[0].rstrip("-")).finding
    assert cut.text.endswith("might not fill the link. The table ends at 65,536 bytes.")
    assert cut.remedy == "Pass the complete table: -a measures messages of up to 8 MiB."
    whole = only_result(table).finding
    assert (whole.text, whole.code) == (cut.text, cut.code)
    assert whole.remedy.startswith("Run the benchmark again with -q 4, or with messages of 1 MiB")
    alone = only_result(bandwidth(row(50, 65536))).finding
    assert alone.text.endswith("might not fill the link.")
    assert "with -a for all sizes" in alone.remedy


def test_small_messages_that_are_fast_enough() -> None:
    """If they fill the link nevertheless, it is good."""
    assert only_result(bandwidth(row(95, 65536))).finding.code == "AtRate"
    assert only_result(bandwidth(row(80, 65536))).finding.code == "SmallMessages"


def test_unknown_queue_pairs() -> None:
    """If the number of queue pairs is not shown, it may be 1."""
    output = bandwidth(row(50, 65536)).replace("Number of qps   : 1", "")
    assert only_result(output).finding.code == "SmallMessages"


def test_loopback() -> None:
    """Data that never left the machine proves nothing about the link, however fast."""
    output = "$ ib_write_bw -d mlx5_4 127.0.0.1\n" + bandwidth(row(95))
    result = only_result(output)
    assert (result.finding.level, result.finding.code, result.expected) == (
        "unsure",
        "Loopback",
        None,
    )
    assert "The client connected to 127.0.0.1, so no cable was tested." in result.finding.text


def test_faster_than_the_port() -> None:
    """More than the port can carry does not pass: the rate is wrong, or no cable was used."""
    assert only_result(bandwidth(row(104.3))).finding.code == "AtRate"
    result = only_result(bandwidth(row(104.4)))
    assert (result.finding.level, result.finding.code) == ("unsure", "FasterThanRate")


def test_both_directions() -> None:
    """A bidirectional test carries twice as much."""
    output = bandwidth(row(185), title="RDMA_Write Bidirectional BW Test")
    result = only_result(output)
    assert (result.finding.level, result.expected) == ("ok", 198.74)


def test_no_rate() -> None:
    """Without a rate, the result has the number, and names the options for a rate."""
    result = only_result(bandwidth(row(95)), rate=None)
    assert (result.finding.level, result.finding.code, result.gbps) == ("unsure", "NoRate", 95)
    assert "--rate" in result.finding.remedy


def test_a_bandwidth_of_zero() -> None:
    """Perftest prints it when it cannot measure the processor's clock."""
    zero = bandwidth(" 65536      5000             0.000000           0.000000           0.000000")
    result = only_result(zero)
    assert (result.finding.level, result.finding.code, result.gbps) == (
        "unsure",
        "ZeroBandwidth",
        None,
    )
    assert only_result(bandwidth(row(0.5, 1024))).finding.code != "ZeroBandwidth"


def test_no_unit() -> None:
    """A bandwidth whose unit is not proven is ignored."""
    result = only_result(bandwidth(" 65536      5000             46.50              46.40"))
    assert (result.finding.level, result.finding.code, result.gbps) == (
        "unsure",
        "UnitUnproven",
        None,
    )


def test_no_result() -> None:
    """A run that has not ended is inconclusive."""
    result = only_result("\n".join(outputs.head()))
    assert (result.finding.level, result.finding.code) == ("unsure", "NoResult")


def test_gpu_memory_has_a_hint() -> None:
    """A slow run with GPU memory may use the wrong HCA for the GPU."""
    result = only_result("initializing CUDA\n" + bandwidth(row(50)))
    assert "nvidia-smi topo -m" in result.finding.remedy
    assert "nvidia-smi topo -m" not in only_result(bandwidth(row(50))).finding.remedy
    assert only_result("initializing CUDA\n" + bandwidth(row(95))).finding.remedy == ""


@pytest.mark.parametrize(
    ("test", "typical", "obstacle"),
    [
        (
            "RDMA_Write",
            2.51,
            "this is above the 2.5 µs that NVIDIA's test ngc_multinode_perf accepts",
        ),
        (
            "RDMA_Read",
            4.51,
            "this is above the 4.5 µs that NVIDIA's test ngc_multinode_perf accepts",
        ),
        (
            "Atomic",
            1.0,
            "NVIDIA's test ngc_multinode_perf has no limit for this test and message size",
        ),
    ],
)
def test_the_text_of_a_latency_alone(test: str, typical: float, obstacle: str) -> None:
    """It states why the latency did not pass: a limit, or none, and no peers."""
    text = f"{typical:g} µs at 2 bytes; {obstacle}, and there are too few runs to compare."
    assert only_result(latency(typical, test)).finding.text == text


@pytest.mark.parametrize(
    ("test", "typical", "level"),
    [
        ("RDMA_Write", 2.5, "ok"),
        ("RDMA_Write", 2.51, "unsure"),
        ("Send", 2.5, "ok"),
        ("RDMA_Read", 4.5, "ok"),
        ("RDMA_Read", 4.51, "unsure"),
        ("Atomic", 1.0, "unsure"),
    ],
)
def test_latency_alone(test: str, typical: float, level: str) -> None:
    """Without peers, a latency passes if NVIDIA's test accepts it, and never fails."""
    result = only_result(latency(typical, test))
    assert (result.finding.level, result.latency_us) == (level, typical)
    assert result.finding.code == ("Quick" if level == "ok" else "NoPeers")
    assert bool(result.citation) == (level == "ok")


def test_latency_of_large_messages() -> None:
    """The bound applies to messages of a few bytes."""
    large = latency().replace(" 2    1000 ", " 65    1000 ")
    assert only_result(large).finding.code == "NoPeers"
    assert "has no limit for this test and message size" in only_result(large).finding.text
    assert only_result(large.replace(" 65 ", " 64 ")).finding.code == "Quick"


def test_latency_for_a_time() -> None:
    """A run with a duration has only the average."""
    header = " #bytes        #iterations       t_avg[usec]    tps average"
    output = outputs.text(
        outputs.head("Send Latency Test"), [header, " 2  912345  1.64   609756.10"]
    )
    assert only_result(output).latency_us == 1.64


def test_latency_within_a_machine() -> None:
    """A loopback proves nothing about the latency of the link either."""
    result = only_result("ib_write_lat localhost\n" + latency())
    assert (result.finding.level, result.finding.code) == ("unsure", "Loopback")


def test_latency_without_numbers() -> None:
    """A table of another kind than its title has no latency."""
    output = bandwidth(title="Send Latency Test")
    assert (only_result(output).finding.code, only_result(output).latency_us) == ("NoResult", None)


@pytest.mark.parametrize(
    ("output", "level", "code"),
    [
        (nccl_tests(wrong=3) + OVER_RDMA, "error", "WrongResults"),
        (nccl_tests() + OVER_SOCKETS, "error", "NotRdma"),
        (nccl_tests(other="node-a"), "unsure", "Loopback"),
        (nccl_tests(), "unsure", "TransportUnknown"),
        (nccl_tests().partition("           8")[0] + "#", "unsure", "NoResult"),
    ],
)
def test_collectives(output: str, level: str, code: str) -> None:
    """Wrong results and sockets fail; without NCCL's log the network is not known."""
    result = only_result(output)
    assert (result.finding.level, result.finding.code) == (level, code)
    assert result.layer == ("nccl" if level == "error" else None)


@pytest.mark.parametrize(("count", "text"), [(1, "1 wrong element."), (3, "3 wrong elements.")])
def test_wrong_elements_are_counted(count: int, text: str) -> None:
    """The text has their number."""
    assert only_result(nccl_tests(wrong=count)).finding.text == f"The results have {text}"


def test_a_collective_within_a_node() -> None:
    """It has no server and no client, so the remedy is to run it on more nodes."""
    remedy = only_result(nccl_tests(other="node-a")).finding.remedy
    assert remedy == "Run the benchmark on at least two nodes."


def test_ucx() -> None:
    """ucx_perftest is graded by the rate if UCX logs that it used RDMA, and fails over TCP."""
    assert only_result(ucx_perftest() + UCX_RDMA, rate=200).finding.code == "AtRate"
    result = only_result(ucx_perftest() + UCX_TCP, rate=200)
    assert (result.finding.level, result.finding.code, result.layer) == ("error", "NotRdma", "ucx")
    assert result.finding.text == "UCX carried 195.4 Gb/s over TCP, not over RDMA."


@pytest.mark.parametrize(
    ("command", "level", "code", "part"),
    [
        ("UCX_TLS=tcp ucx_perftest 10.0.0.2 -t tag_bw", "error", "NotRdma", "UCX_TLS=tcp excludes"),
        ("UCX_TLS=sm,self ucx_perftest 10.0.0.2", "unsure", "Loopback", "allows no network"),
        ("UCX_TLS=rc ucx_perftest 127.0.0.1", "unsure", "Loopback", "connected to 127.0.0.1,"),
        ("ucx_perftest 10.0.0.2 -t tag_bw", "unsure", "TransportUnknown", "whether UCX used RDMA"),
        ("UCX_TLS=rc,sm,self ucx_perftest 10.0.0.2", "ok", "AtRate", "98% of the expected"),
    ],
    ids=["tcp", "memory", "loopback", "unknown", "rdma"],
)
@pytest.mark.parametrize("measure", ["overhead", "latency"])
def test_ucx_without_a_log(command: str, level: str, code: str, part: str, measure: str) -> None:
    """Without evidence of RDMA to another node, no bandwidth and no latency passes."""
    texts = [f"$ {command}\n{ucx_perftest(measure)}"] * 3
    for result in evaluated(*texts, rate=200).results:
        if measure == "latency" and level == "ok":
            assert (result.finding.code, result.latency_us) == ("AsPeers", 43)
            continue
        assert (result.finding.level, result.finding.code) == (level, code)
        assert part in result.finding.text
        assert result.graded_figure is not None
        assert (result.layer == "ucx") == (level == "error")
        assert ("UCX_LOG_LEVEL=info" in result.finding.remedy) == (code == "TransportUnknown")


def test_the_transport_of_a_log_and_of_a_command() -> None:
    """A log of several runs may show RDMA for another one: the command's exclusion counts."""
    tcp = f"$ UCX_TLS=tcp ucx_perftest 10.0.0.2\n{ucx_perftest()}{UCX_RDMA}\n"
    assert only_result(tcp, rate=200).finding.code == "NotRdma"
    text = only_result(f"$ UCX_TLS=rc ucx_perftest x\n{ucx_perftest()}{UCX_TCP}").finding.text
    assert text == "UCX carried 195.4 Gb/s over TCP, not over RDMA."


def test_rping() -> None:
    """Pings show that RDMA works."""
    result = only_result(PINGS)
    assert (result.finding.level, result.finding.code) == ("ok", "Connected")
    assert "(3 pings)" in result.finding.text


def test_slow_numbers_keep_their_digits() -> None:
    """Below 1 Gb/s the number is not rounded to nothing."""
    assert only_result(bandwidth(row(0.35))).finding.text.startswith("0.35 Gb/s, 0% of ")
