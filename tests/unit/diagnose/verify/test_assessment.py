"""Files judged together: failures, peers, untested HCAs, and the deciding judgement."""

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


def codes(assessment: Evaluation) -> list[tuple[str, str]]:
    """List the verdict and the code of each run."""
    return [(judgement.verdict, judgement.code) for judgement in assessment.judgements]


@pytest.mark.parametrize("cause", TROUBLES, ids=lambda cause: str(cause.code))
def test_every_known_failure(cause: Cause) -> None:
    """A line of the table of causes fails, with its meaning and its remedy."""
    judgement = the_only(f"x\n{cause.example}\n")
    assert (judgement.verdict, judgement.code, judgement.lines) == ("fail", cause.code, (2, 2))
    assert judgement.because.startswith(f"{cause.means} In the output: ")
    assert (judgement.remedy, judgement.source, judgement.layer) == (
        cause.remedy,
        cause.source,
        cause.layer,
    )


def test_the_lowest_layer_is_named_first() -> None:
    """When a port is down, all else fails; the other causes are listed, lowest first."""
    names = ("SystemError", "DaemonsNotStarted", "IbResourcesMissing", "PerftestNoMemory")
    lines = [BY_CODE[name].example for name in (*names, "HcasNotConnected", "PortDown")]
    judgement = the_only("\n".join([*lines, lines[0]]))
    assert (judgement.code, judgement.layer, judgement.lines) == ("PortDown", "link", (1, 7))
    expected = ["HcasNotConnected", "PerftestNoMemory", "IbResourcesMissing"]
    assert list(judgement.also) == [*expected, "DaemonsNotStarted", "SystemError"]


def test_a_failure_belongs_to_its_run() -> None:
    """A run without a result has the failures up to the next run; a good run has none."""
    failed = "$ ib_write_bw -d mlx5_0\nPort number 1 state is Down\n"
    output = bandwidth(row(95)) + failed + bandwidth(row(96))
    assessment = judged(output)
    assert codes(assessment) == [("pass", "AtRate"), ("fail", "PortDown"), ("pass", "AtRate")]
    run = assessment.judgements[1].measurement
    assert run is not None
    assert (run.test, run.device) == ("ib_write_bw", "mlx5_0")


def test_failures_without_a_run() -> None:
    """Lines before, between and after runs are a failure each."""
    output = "Couldn't allocate MR\n" + bandwidth(row(95)) + "exit code 137\nOOMKilled\n"
    assessment = judged(output)
    expected = [("fail", "PerftestNoMemory"), ("pass", "AtRate"), ("fail", "ExitCode137")]
    assert codes(assessment) == expected
    assert assessment.judgements[2].also == ("OomKilled",)


def test_a_run_that_fails_among_its_rows() -> None:
    """A failure between the first line and the last row fails the run."""
    output = bandwidth(
        "\n".join([row(95, 1024), " Failed status 12: wr_id 0 syndrom 0x81", row(95)])
    )
    assert the_only(output).code == "TransferFailed"


def test_what_decides() -> None:
    """The worst verdict decides, and of failures the lowest layer."""
    slow, unknown = bandwidth(row(80)), "\n".join(outputs.head())
    passing, memory = bandwidth(row(95)), "Couldn't allocate MR\n"
    assert judged(passing, slow).worst.code == "BelowRate"
    assert judged(slow, unknown, passing).worst.code == "NoResult"
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
    """A log of a job shows its network, and what kept it from RDMA."""
    judgement = the_only(log)
    assert (judgement.verdict, judgement.code) == (verdict, code)
    assert judgement.measurement is None


def test_a_log_says_gpu_direct() -> None:
    """For channels over RDMA, the judgement names GPUDirect RDMA, or its absence."""
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
    """Of three or more runs, a run far below the median warns; a faster run does not."""
    assessment = judged(*(bandwidth(row(gbps)) for gbps in numbers), rate=None)
    expected = ["Outlier" if index in odd else "NoRate" for index in range(len(numbers))]
    assert [judgement.code for judgement in assessment.judgements] == expected
    assert all(
        "(" in judgement.because
        for judgement in assessment.judgements
        if judgement.code == "Outlier"
    )


def test_an_outlier_says_of_whom() -> None:
    """A rail with three runs is named; a failure stays a failure."""
    slow = [bandwidth(row(gbps)) for gbps in (95, 95, 95, 80, 50)]
    judgements = judged(*slow).judgements
    assert [(judgement.verdict, judgement.code) for judgement in judgements[3:]] == [
        ("warn", "Outlier"),
        ("fail", "FarBelowRate"),
    ]
    reason = "Less than its peers: their median is 95 Gb/s (5 runs on mlx5_4)."
    assert all(judgement.because.endswith(reason) for judgement in judgements[3:])


def test_rails() -> None:
    """A run is compared with its rail and with all runs: a whole rail may be slow."""
    rails = [bandwidth(row(gbps), device=f"mlx5_{rail}") for rail, gbps in enumerate([95, 95, 80])]
    assessment = judged(*rails, rate=None)
    assert [judgement.code for judgement in assessment.judgements] == [
        "NoRate",
        "NoRate",
        "Outlier",
    ]
    assert "(3 runs of the test)" in assessment.judgements[2].because


def test_only_like_is_compared() -> None:
    """Runs with another test, direction, memory or size are not peers."""
    texts = [
        bandwidth(row(95)),
        bandwidth(row(50), title="Send BW Test"),
        bandwidth(row(50), title="RDMA_Write Bidirectional BW Test"),
        bandwidth(row(50, 8 << 20)),
        "initializing CUDA\n" + bandwidth(row(50)),
        "ib_write_bw 127.0.0.1\n" + bandwidth(row(50)),
        bandwidth(row(94)),
    ]
    assert all(judgement.code != "Outlier" for judgement in judged(*texts, rate=None).judgements)


def test_latencies_of_peers() -> None:
    """A latency close to its peers passes, and a latency far above them warns."""
    assessment = judged(*(latency(microseconds) for microseconds in (3.0, 3.1, 3.05, 3.2, 4.1)))
    assert codes(assessment) == [("pass", "AsPeers")] * 4 + [("warn", "Outlier")]
    assert assessment.judgements[0].because == "3 µs at 2 bytes, as its peers."
    assert "Slower than its peers: their median is 3.1 µs" in assessment.judgements[4].because
    assert codes(judged(latency(3.0), latency(3.1))) == [("inconclusive", "NoPeers")] * 2


def test_collectives_of_peers() -> None:
    """Jobs of the same size are compared by their bus bandwidth."""
    slow = nccl_tests().replace("46.65", "30.10").replace("46.48", "30.20")
    assessment = judged(*[nccl_tests() + OVER_RDMA] * 3, slow + OVER_RDMA)
    assert codes(assessment) == [("pass", "OverRdma")] * 3 + [("warn", "Outlier")]


def test_every_hca_is_tested() -> None:
    """A fabric's HCA without any output makes the assessment inconclusive; a failure is output."""
    passing = bandwidth(row(95), device="mlx5_0")
    down = "$ ib_write_bw -d mlx5_1\nPort number 1 state is Down\n"
    assessment = judged(passing, hcas=["mlx5_0", "mlx5_1", "mlx5_2"])
    (remark,) = assessment.remarks
    assert remark.because == "No result of these HCAs of the fabric: mlx5_1, mlx5_2."
    assert (assessment.worst.verdict, assessment.worst.code) == ("inconclusive", "NotTested")
    assert judged(passing, hcas=["mlx5_0"]).remarks == ()
    assert judged(passing, down, hcas=["mlx5_0", "mlx5_1"]).worst.code == "PortDown"


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
    """It is JSON and fits the schema, which allows no other key."""
    form = verify_form(judged(*ALL, hcas=["mlx5_0"]))
    VALIDATOR.validate(json.loads(json.dumps(form)))
    measurement = form["measurements"][0]
    keys = ("verdict", "gbps", "latencyUs", "expected", "because", "remedy", "source")
    assert [measurement[key] for key in keys] == [
        "pass",
        95.0,
        None,
        99.37,
        "95.0 Gb/s of 99.37 Gb/s (0.96).",
        "",
        "--rate 100, of which packets of MTU 4096 leave 0.994",
    ]
    assert (measurement["file"], measurement["lines"], measurement["run"]["device"]) == (
        "a",
        [2, 20],
        "mlx5_4",
    )
    assert measurement["run"]["loopback"] is False
    assert measurement["run"]["rows"][0]["peakGbps"] == 95.0
    assert form["measurements"][1]["lines"] == [2, 20]
    assert (form["verdict"], form["code"]) == ("fail", "FarBelowRate")
    assert form["findings"][0]["code"] == "NotTested"


def test_the_schema_is_shipped() -> None:
    """The file is next to the code, and a JSON Schema."""
    Draft202012Validator.check_schema(SCHEMA)
    shipped = Path(__file__).parents[4] / "webhook" / "diagnose" / "verify" / "verify.schema.json"
    assert verify_schema() == shipped.read_text(encoding="utf-8")


def test_the_text() -> None:
    """Each run has its sign, its number and its remedy; the last line has the verdict."""
    assessment = judged(
        bandwidth(row(95)),
        "$ ib_read_bw -d mlx5_0 -i 2 -b a\nPort number 1 state is Down\nCouldn't allocate MR\n",
        OVER_RDMA,
        hcas=["mlx5_1"],
    )
    assert verify_text(assessment, width=88) == (
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
    assert "\x1b[" in verify_text(assessment, colour=True)
    assert verify_text(judged(outputs.ucx_perftest())).startswith("tag match bandwidth  a:2\n")
