"""The verdict on a single run."""

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
from tests.unit.diagnose.verify.judged import the_only
from webhook.diagnose.tools.causes import TRANSPORTS

OVER_RDMA, OVER_SOCKETS = TRANSPORTS[0].example, TRANSPORTS[1].example
UCX_TCP = TRANSPORTS[5].example


@pytest.mark.parametrize(
    ("gbps", "verdict", "code"),
    [
        (99.37, "pass", "AtRate"),
        (89.44, "pass", "AtRate"),
        (89.42, "warn", "BelowRate"),
        (74.54, "warn", "BelowRate"),
        (74.51, "fail", "FarBelowRate"),
        (1.0, "fail", "FarBelowRate"),
    ],
)
def test_thresholds(gbps: float, verdict: str, code: str) -> None:
    """0.9 of the expectation (99.37 Gb/s here) passes, and 0.75 warns."""
    judgement = the_only(bandwidth(row(gbps)))
    assert (judgement.verdict, judgement.code, judgement.gbps) == (verdict, code, gbps)
    assert bool(judgement.remedy) == (verdict != "pass")
    assert judgement.layer == ("link" if verdict == "fail" else None)


def test_a_pass_in_full() -> None:
    """The judgement has the number, the expectation and its source."""
    judgement = the_only(bandwidth(row(94.71)))
    assert judgement.because == "94.7 Gb/s of 99.37 Gb/s (0.95)."
    assert (judgement.expected, judgement.remedy) == (99.37, "")
    assert judgement.source == "--rate 100, of which packets of MTU 4096 leave 0.994"


def test_the_best_row_counts() -> None:
    """The highest average of all sizes is judged, not the peak."""
    output = bandwidth("\n".join([row(20, 1024), row(95), row(90, 8 << 20)]))
    assert the_only(output).gbps == 95


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
    assert the_only(bandwidth(row(50, size), qps=qps)).code == code


@pytest.mark.parametrize(
    ("largest", "verdict", "code"),
    [
        (8 << 20, "fail", "FarBelowRate"),
        (1 << 20, "fail", "FarBelowRate"),
        (512 << 10, "inconclusive", "SmallMessages"),
    ],
)
def test_a_table_of_many_sizes_is_judged_by_its_large_messages(
    largest: int, verdict: str, code: str
) -> None:
    """`-a` begins with 2 bytes: a slow link is still slow if one row had messages of 1 MiB."""
    rows = [row(0.1, 2), row(40, 65536), row(50, largest)]
    for table in (rows, rows[::-1]):
        judgement = the_only(bandwidth("\n".join(table)))
        assert (judgement.verdict, judgement.code, judgement.gbps) == (verdict, code, 50)


def test_small_messages_that_are_fast_enough() -> None:
    """If they fill the link nevertheless, it is good."""
    assert the_only(bandwidth(row(95, 65536))).code == "AtRate"
    assert the_only(bandwidth(row(80, 65536))).code == "SmallMessages"


def test_unknown_queue_pairs() -> None:
    """If the number of queue pairs is not shown, it may be 1."""
    output = bandwidth(row(50, 65536)).replace("Number of qps   : 1", "")
    assert the_only(output).code == "SmallMessages"


def test_loopback() -> None:
    """Data that never left the machine proves nothing about the link, however fast."""
    output = "$ ib_write_bw -d mlx5_4 127.0.0.1\n" + bandwidth(row(95))
    judgement = the_only(output)
    assert (judgement.verdict, judgement.code, judgement.expected) == (
        "inconclusive",
        "Loopback",
        None,
    )
    assert "the client connected to 127.0.0.1" in judgement.because


def test_faster_than_the_port() -> None:
    """More than the port can carry does not pass: the rate is wrong, or no cable was used."""
    assert the_only(bandwidth(row(104.3))).code == "AtRate"
    judgement = the_only(bandwidth(row(104.4)))
    assert (judgement.verdict, judgement.code) == ("inconclusive", "FasterThanRate")


def test_both_directions() -> None:
    """A bidirectional test carries twice as much."""
    output = bandwidth(row(185), title="RDMA_Write Bidirectional BW Test")
    judgement = the_only(output)
    assert (judgement.verdict, judgement.expected) == ("pass", 198.74)


def test_no_rate() -> None:
    """Without a rate, the judgement has the number, and names the options for a rate."""
    judgement = the_only(bandwidth(row(95)), rate=None)
    assert (judgement.verdict, judgement.code, judgement.gbps) == ("inconclusive", "NoRate", 95)
    assert "--rate" in judgement.remedy


def test_a_bandwidth_of_zero() -> None:
    """Perftest prints it when it cannot measure the processor's clock."""
    zero = bandwidth(" 65536      5000             0.000000           0.000000           0.000000")
    judgement = the_only(zero)
    assert (judgement.verdict, judgement.code, judgement.gbps) == (
        "inconclusive",
        "ZeroBandwidth",
        None,
    )
    assert the_only(bandwidth(row(0.5, 1024))).code != "ZeroBandwidth"


def test_no_unit() -> None:
    """A bandwidth whose unit is not proven is ignored."""
    judgement = the_only(bandwidth(" 65536      5000             46.50              46.40"))
    assert (judgement.verdict, judgement.code, judgement.gbps) == (
        "inconclusive",
        "UnitUnproven",
        None,
    )


def test_no_result() -> None:
    """A run that has not ended is inconclusive."""
    judgement = the_only("\n".join(outputs.head()))
    assert (judgement.verdict, judgement.code) == ("inconclusive", "NoResult")


def test_gpu_memory_has_a_hint() -> None:
    """A slow run with GPU memory may use the wrong HCA for the GPU."""
    judgement = the_only("initializing CUDA\n" + bandwidth(row(50)))
    assert "nvidia-smi topo -m" in judgement.remedy
    assert "nvidia-smi topo -m" not in the_only(bandwidth(row(50))).remedy


@pytest.mark.parametrize(
    ("test", "typical", "verdict"),
    [
        ("RDMA_Write", 2.5, "pass"),
        ("RDMA_Write", 2.51, "inconclusive"),
        ("Send", 2.5, "pass"),
        ("RDMA_Read", 4.5, "pass"),
        ("RDMA_Read", 4.51, "inconclusive"),
        ("Atomic", 1.0, "inconclusive"),
    ],
)
def test_latency_alone(test: str, typical: float, verdict: str) -> None:
    """Without peers, a latency passes if NVIDIA's test accepts it, and never fails."""
    judgement = the_only(latency(typical, test))
    assert (judgement.verdict, judgement.latency_us) == (verdict, typical)
    assert judgement.code == ("Quick" if verdict == "pass" else "NoPeers")
    assert bool(judgement.source) == (verdict == "pass")


def test_latency_of_large_messages() -> None:
    """The bound applies to messages of a few bytes."""
    large = latency().replace(" 2    1000 ", " 65    1000 ")
    assert the_only(large).code == "NoPeers"
    assert the_only(large.replace(" 65 ", " 64 ")).code == "Quick"


def test_latency_for_a_time() -> None:
    """A run with a duration has only the average."""
    header = " #bytes        #iterations       t_avg[usec]    tps average"
    output = outputs.text(
        outputs.head("Send Latency Test"), [header, " 2  912345  1.64   609756.10"]
    )
    assert the_only(output).latency_us == 1.64


def test_latency_within_a_machine() -> None:
    """A loopback proves nothing about the latency of the link either."""
    judgement = the_only("ib_write_lat localhost\n" + latency())
    assert (judgement.verdict, judgement.code) == ("inconclusive", "Loopback")


def test_latency_without_numbers() -> None:
    """A table of another kind than its title has no latency."""
    output = bandwidth(title="Send Latency Test")
    assert (the_only(output).code, the_only(output).latency_us) == ("NoResult", None)


def test_a_collective_never_fails_by_its_speed() -> None:
    """Over RDMA with correct results it passes, whatever the ratio."""
    judgement = the_only(nccl_tests() + OVER_RDMA, rate=10_000)
    assert (judgement.verdict, judgement.code, judgement.gbps) == ("pass", "OverRdma", 373.2)
    assert judgement.expected is None


@pytest.mark.parametrize(
    ("output", "verdict", "code"),
    [
        (nccl_tests(wrong=3) + OVER_RDMA, "fail", "WrongResults"),
        (nccl_tests() + OVER_SOCKETS, "fail", "NotRdma"),
        (nccl_tests(other="node-a"), "inconclusive", "Loopback"),
        (nccl_tests(), "inconclusive", "TransportUnknown"),
        (nccl_tests().partition("           8")[0] + "#", "inconclusive", "NoResult"),
    ],
)
def test_collectives(output: str, verdict: str, code: str) -> None:
    """Wrong results and sockets fail; without NCCL's log the network is not known."""
    judgement = the_only(output)
    assert (judgement.verdict, judgement.code) == (verdict, code)


def test_ucx() -> None:
    """ucx_perftest is judged by the rate, unless UCX logs that it used TCP."""
    assert the_only(ucx_perftest(), rate=200).code == "AtRate"
    judgement = the_only(ucx_perftest() + UCX_TCP, rate=200)
    assert (judgement.verdict, judgement.code, judgement.layer) == ("fail", "NotRdma", "ucx")


def test_rping() -> None:
    """Pings show that RDMA works."""
    judgement = the_only(PINGS)
    assert (judgement.verdict, judgement.code) == ("pass", "Connected")
    assert "(3 pings)" in judgement.because


def test_slow_numbers_keep_their_digits() -> None:
    """Below 1 Gb/s the number is not rounded to nothing."""
    assert the_only(bandwidth(row(0.35))).because.startswith("0.35 Gb/s of ")
