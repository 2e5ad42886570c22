"""Files judged together: failures, peers, untested HCAs, and what decides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.unit.diagnose.tools.benchmarks import outputs
from tests.unit.diagnose.tools.benchmarks.outputs import bandwidth, latency, nccl_tests, row
from tests.unit.diagnose.verify.judged import judged, the_only
from webhook.diagnose.tools.causes import CAUSES, SETTINGS, SLOWER, TRANSPORTS, TROUBLES, Cause
from webhook.diagnose.verify.output import verify_form, verify_schema, verify_text
from webhook.diagnose.verify.results import Evaluation

SCHEMA = json.loads(verify_schema())
VALIDATOR = Draft202012Validator(SCHEMA)
BY_CODE = {cause.code: cause for cause in CAUSES}
OVER_RDMA, OVER_SOCKETS = TRANSPORTS[0].example, TRANSPORTS[1].example


def codes(found: Evaluation) -> list[tuple[str, str]]:
    """List the verdict and the code of each run."""
    return [(one.verdict, one.code) for one in found.judgements]


@pytest.mark.parametrize("cause", TROUBLES, ids=lambda cause: str(cause.code))
def test_every_known_failure(cause: Cause) -> None:
    """A line of the table of causes fails, with what it means and what to do."""
    found = the_only(f"x\n{cause.example}\n")
    assert (found.verdict, found.code, found.lines) == ("fail", cause.code, (2, 2))
    assert found.because.startswith(f"{cause.means} In the output: ")
    assert (found.remedy, found.source, found.layer) == (cause.remedy, cause.source, cause.layer)


def test_the_lowest_layer_is_named_first() -> None:
    """A port that is down makes all else fail; the others are listed, lowest first."""
    names = ("SystemError", "DaemonsNotStarted", "IbResourcesMissing", "PerftestNoMemory")
    lines = [BY_CODE[name].example for name in (*names, "HcasNotConnected", "PortDown")]
    found = the_only("\n".join([*lines, lines[0]]))
    assert (found.code, found.layer, found.lines) == ("PortDown", "link", (1, 7))
    expected = ["HcasNotConnected", "PerftestNoMemory", "IbResourcesMissing"]
    assert list(found.also) == [*expected, "DaemonsNotStarted", "SystemError"]


def test_a_failure_belongs_to_its_run() -> None:
    """A run without a result takes the failures up to the next run; a good one takes none."""
    failed = "$ ib_write_bw -d mlx5_0\nPort number 1 state is Down\n"
    output = bandwidth(row(95)) + failed + bandwidth(row(96))
    found = judged(output)
    assert codes(found) == [("pass", "AtRate"), ("fail", "PortDown"), ("pass", "AtRate")]
    run = found.judgements[1].measurement
    assert run is not None
    assert (run.test, run.device) == ("ib_write_bw", "mlx5_0")


def test_failures_without_a_run() -> None:
    """What fails before, between and after runs is one failure each."""
    output = "Couldn't allocate MR\n" + bandwidth(row(95)) + "exit code 137\nOOMKilled\n"
    found = judged(output)
    expected = [("fail", "PerftestNoMemory"), ("pass", "AtRate"), ("fail", "ExitCode137")]
    assert codes(found) == expected
    assert found.judgements[2].also == ("OomKilled",)


def test_a_run_that_fails_among_its_rows() -> None:
    """A failure between the first line and the last row fails the run."""
    output = bandwidth(
        "\n".join([row(95, 1024), " Failed status 12: wr_id 0 syndrom 0x81", row(95)])
    )
    assert the_only(output).code == "TransferFailed"


def test_what_decides() -> None:
    """The worst verdict decides, and of failures the lowest layer."""
    slow, unknown = bandwidth(row(80)), "\n".join(outputs.head())
    good, memory = bandwidth(row(95)), "Couldn't allocate MR\n"
    assert judged(good, slow).worst.code == "BelowRate"
    assert judged(slow, unknown, good).worst.code == "NoResult"
    assert judged(unknown, memory, slow).worst.code == "PerftestNoMemory"
    assert judged(memory, bandwidth(row(10))).worst.code == "FarBelowRate"
    assert judged(OVER_SOCKETS, memory).worst.code == "PerftestNoMemory"


@pytest.mark.parametrize(
    ("log", "verdict", "code"),
    [
        (OVER_RDMA, "pass", "OverRdma"),
        (f"{OVER_RDMA}\n{SLOWER[0].example}", "warn", "GpuDirectOff"),
        (f"{OVER_RDMA}\n{OVER_SOCKETS}", "warn", "MixedTransports"),
        (OVER_SOCKETS, "fail", "ChannelsOverSockets"),
        (f"{OVER_SOCKETS}\n{SETTINGS[0].example}", "fail", "IbDisabledByEnvironment"),
        (f"{OVER_SOCKETS}\n{BY_CODE['LibraryMissing'].example}", "fail", "LibraryMissing"),
        ("NCCL version 2.27.5+cuda12.9", "inconclusive", "TransportUnknown"),
        (TRANSPORTS[4].example, "pass", "OverRdma"),
    ],
)
def test_logs(log: str, verdict: str, code: str) -> None:
    """A log of a job says over which network it ran, and what kept it from RDMA."""
    found = the_only(log)
    assert (found.verdict, found.code) == (verdict, code)
    assert found.measurement is None


def test_a_log_says_gpu_direct() -> None:
    """With channels over RDMA, whether the NIC reads the GPU's memory is told."""
    assert ", with GPUDirect RDMA." in the_only(OVER_RDMA).because
    assert ", without GPUDirect RDMA." in the_only(OVER_RDMA.replace("/GDRDMA", "")).because
    assert "GPUDirect" not in the_only(TRANSPORTS[4].example).because


def test_what_is_no_output() -> None:
    """Other text has no judgement."""
    assert judged("hello\nworld\n", "").judgements == ()


@pytest.mark.parametrize(
    ("numbers", "odd"),
    [
        ([95.0, 95.1, 94.9, 90.5], []),
        ([95.0, 95.1, 94.9, 90.0], [3]),
        ([95.0, 60.0, 60.5, 61.0, 95.5], []),
        ([95.0, 60.0], []),
        ([95.0, 95.0, 60.0], [2]),
        ([40.0, 95.0, 95.0, 96.0, 41.0], [0, 4]),
        ([90.0, 90.0, 99.0], []),
    ],
)
def test_peers(numbers: list[float], odd: list[int]) -> None:
    """Of three or more runs, those far below the median warn; one that is faster does not."""
    found = judged(*(bandwidth(row(one)) for one in numbers), rate=None)
    expected = ["Outlier" if place in odd else "NoRate" for place in range(len(numbers))]
    assert [one.code for one in found.judgements] == expected
    assert all("(" in one.because for one in found.judgements if one.code == "Outlier")


def test_an_outlier_says_of_whom() -> None:
    """The rail is named where it has three runs; a failure stays one."""
    slow = [bandwidth(row(one)) for one in (95, 95, 95, 80, 50)]
    found = judged(*slow).judgements
    assert [(one.verdict, one.code) for one in found[3:]] == [
        ("warn", "Outlier"),
        ("fail", "FarBelowRate"),
    ]
    said = "Less than its peers: their median is 95 Gb/s (5 runs on mlx5_4)."
    assert all(one.because.endswith(said) for one in found[3:])


def test_rails() -> None:
    """A run is compared with its own rail and with all: a whole rail may be slow."""
    rails = [bandwidth(row(one), device=f"mlx5_{place}") for place, one in enumerate([95, 95, 80])]
    found = judged(*rails, rate=None)
    assert [one.code for one in found.judgements] == ["NoRate", "NoRate", "Outlier"]
    assert "(3 runs of the test)" in found.judgements[2].because


def test_only_like_is_compared() -> None:
    """Other tests, directions, memories and sizes are no peers."""
    texts = [
        bandwidth(row(95)),
        bandwidth(row(50), title="Send BW Test"),
        bandwidth(row(50), title="RDMA_Write Bidirectional BW Test"),
        bandwidth(row(50, 8 << 20)),
        "initializing CUDA\n" + bandwidth(row(50)),
        "ib_write_bw 127.0.0.1\n" + bandwidth(row(50)),
        bandwidth(row(94)),
    ]
    assert all(one.code != "Outlier" for one in judged(*texts, rate=None).judgements)


def test_latencies_of_peers() -> None:
    """A latency that is as its peers are passes, and one far above them warns."""
    found = judged(*(latency(one) for one in (3.0, 3.1, 3.05, 3.2, 4.1)))
    assert codes(found) == [("pass", "AsPeers")] * 4 + [("warn", "Outlier")]
    assert found.judgements[0].because == "3 µs at 2 bytes, as its peers."
    assert "Slower than its peers: their median is 3.1 µs" in found.judgements[4].because
    assert codes(judged(latency(3.0), latency(3.1))) == [("inconclusive", "NoPeers")] * 2


def test_collectives_of_peers() -> None:
    """Jobs of one size are compared by their bus bandwidth."""
    slow = nccl_tests().replace("46.65", "30.10").replace("46.48", "30.20")
    found = judged(*[nccl_tests() + OVER_RDMA] * 3, slow + OVER_RDMA)
    assert codes(found) == [("pass", "OverRdma")] * 3 + [("warn", "Outlier")]


def test_every_hca_is_tested() -> None:
    """An HCA of the fabric without a result makes the whole inconclusive; a failure is none."""
    good = bandwidth(row(95), device="mlx5_0")
    down = "$ ib_write_bw -d mlx5_1\nPort number 1 state is Down\n"
    found = judged(good, hcas=["mlx5_0", "mlx5_1", "mlx5_2"])
    (remark,) = found.remarks
    assert remark.because == "No result of these HCAs of the fabric: mlx5_1, mlx5_2."
    assert (found.worst.verdict, found.worst.code) == ("inconclusive", "NotTested")
    assert judged(good, hcas=["mlx5_0"]).remarks == ()
    assert judged(good, down, hcas=["mlx5_0", "mlx5_1"]).worst.code == "PortDown"


ALL = [
    bandwidth(row(95)),
    bandwidth(row(50)) + "Couldn't allocate MR\nIB device mlx5_9 not found\n",
    latency(),
    nccl_tests(wrong=2),
    outputs.ucx_perftest(),
    outputs.JSON,
    outputs.VALID_JSON,
    outputs.PINGS,
    OVER_SOCKETS,
    "$ ib_read_bw -i 2 -b 10.0.0.1\nPort number 1 state is Down\n",
]


def test_the_json_form() -> None:
    """It fits the schema, which allows no other key, and is JSON."""
    form = verify_form(judged(*ALL, hcas=["mlx5_0"]))
    VALIDATOR.validate(json.loads(json.dumps(form)))
    good = form["measurements"][0]
    wanted = ("verdict", "gbps", "latencyUs", "expected", "because", "remedy", "source")
    assert [good[key] for key in wanted] == [
        "pass",
        95.0,
        None,
        99.37,
        "95.0 Gb/s of 99.37 Gb/s (0.96).",
        "",
        "--rate 100, of which packets of MTU 4096 leave 0.994",
    ]
    assert (good["file"], good["lines"], good["run"]["device"]) == ("a", [2, 20], "mlx5_4")
    assert good["run"]["loopback"] is False
    assert good["run"]["rows"][0]["peakGbps"] == 95.0
    assert form["measurements"][1]["lines"] == [2, 20]
    assert (form["verdict"], form["code"]) == ("fail", "FarBelowRate")
    assert form["findings"][0]["code"] == "NotTested"


def test_the_schema_is_shipped() -> None:
    """The file is beside the code, and a JSON Schema."""
    Draft202012Validator.check_schema(SCHEMA)
    shipped = Path(__file__).parents[4] / "webhook" / "diagnose" / "verify" / "verify.schema.json"
    assert verify_schema() == shipped.read_text(encoding="utf-8")


def test_the_text() -> None:
    """For people: each run with its sign, its number and what to do, and what decides."""
    found = judged(
        bandwidth(row(95)),
        "$ ib_read_bw -d mlx5_0 -i 2 -b a\nPort number 1 state is Down\nCouldn't allocate MR\n",
        OVER_RDMA,
        hcas=["mlx5_1"],
    )
    assert verify_text(found, width=88) == (
        "ib_write_bw mlx5_4  a:2\n"
        "  ✔ 95.0 Gb/s of 99.37 Gb/s (0.96).\n"
        "    expected: --rate 100, of which packets of MTU 4096 leave 0.994\n"
        "ib_read_bw mlx5_0 port 2 bidirectional  b:1\n"
        "  ✘ The port of this RDMA device is down. In the output: Port number 1 state is Down\n"
        "    → Use another device of the node (ibstat shows those that are Active), and report\n"
        "      the port to whoever runs the node.\n"
        "    also: PerftestNoMemory\n"
        "Output  c:1\n"
        "  ✔ The log shows RDMA, with GPUDirect RDMA. It says nothing about speed.\n"
        "All runs\n"
        "  ? No result of these HCAs of the fabric: mlx5_1.\n"
        "    → Run the benchmark on each of them: -d names the device.\n"
        "\n"
        "✘ fail (PortDown): 2 pass, 1 inconclusive, 1 fail\n"
    )
    assert "\x1b[" in verify_text(found, colour=True)
    assert verify_text(judged(outputs.ucx_perftest())).startswith("tag match bandwidth  a:2\n")
