"""Files graded together: failures, peers, untested HCAs, and the worst finding."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from tests.unit.diagnose.tools.benchmarks import outputs
from tests.unit.diagnose.tools.benchmarks.outputs import (
    bandwidth,
    latency,
    nccl_job,
    nccl_log,
    nccl_tests,
    row,
)
from tests.unit.diagnose.verify.evaluated import evaluated, only_result
from webhook.diagnose.tools.known_lines import (
    FAILURES,
    KNOWN_LINES,
    SETTINGS,
    SLOWER,
    TRANSPORTS,
    KnownLine,
)
from webhook.diagnose.verify.output import verify_form, verify_schema, verify_text
from webhook.diagnose.verify.results import Evaluation
from webhook.model.finding import Location

SCHEMA = json.loads(verify_schema())
VALIDATOR = Draft202012Validator(SCHEMA)
BY_CODE = {known_line.code: known_line for known_line in KNOWN_LINES}
OVER_RDMA, OVER_SOCKETS = TRANSPORTS[0].example, TRANSPORTS[1].example


def codes(evaluation: Evaluation) -> list[tuple[str, str]]:
    """List the level and the code of each run."""
    return [(result.finding.level, result.finding.code) for result in evaluation.results]


@pytest.mark.parametrize("cause", FAILURES, ids=lambda cause: str(cause.code))
def test_every_known_failure(cause: KnownLine) -> None:
    """A line of the table of known lines fails, with its meaning and its remedy."""
    result = only_result(f"x\n{cause.example}\n")
    assert (result.finding.level, result.finding.code) == ("error", cause.code)
    assert result.finding.location == Location("a", 2)
    assert result.finding.text.startswith(f"{cause.meaning} Output: ")
    assert (result.finding.remedy, result.citation, result.layer) == (
        cause.remedy,
        cause.source,
        cause.layer,
    )


def test_the_lowest_layer_is_named_first() -> None:
    """When a port is down, all else fails; the other causes are listed, lowest first."""
    names = ("SystemError", "DaemonsNotStarted", "IbResourcesMissing", "PerftestNoMemory")
    lines = [BY_CODE[name].example for name in (*names, "HcasNotConnected", "PortDown")]
    result = only_result("\n".join([*lines, lines[0]]))
    assert (result.finding.code, result.layer) == ("PortDown", "link")
    assert result.finding.location.line == 1
    expected = ["HcasNotConnected", "PerftestNoMemory", "IbResourcesMissing"]
    assert list(result.further_codes) == [*expected, "DaemonsNotStarted", "SystemError"]


def test_a_consequence_is_named_last() -> None:
    """A flushed transfer never is the cause, even where the failure before it is on top."""
    flushed, access = BY_CODE["TransferFlushed"].example, BY_CODE["TransferRemoteAccess"].example
    result = only_result(f"{flushed}\n{access}\n{BY_CODE['SystemError'].example}")
    assert result.finding.code == "TransferRemoteAccess"
    assert result.further_codes == ("SystemError", "TransferFlushed")


def test_a_failure_belongs_to_its_run() -> None:
    """A run without a result has the failures up to the next run; a good run has none."""
    failed = "$ ib_write_bw -d mlx5_0\nPort number 1 state is Down\n"
    output = bandwidth(row(95)) + failed + bandwidth(row(96))
    evaluation = evaluated(output)
    assert codes(evaluation) == [("ok", "AtRate"), ("error", "PortDown"), ("ok", "AtRate")]
    run = evaluation.results[1].measurement
    assert run is not None
    assert (run.test, run.device) == ("ib_write_bw", "mlx5_0")


def test_failures_without_a_run() -> None:
    """Lines before, between and after runs are a failure each."""
    output = "Couldn't allocate MR\n" + bandwidth(row(95)) + "exit code 137\nOOMKilled\n"
    evaluation = evaluated(output)
    expected = [("error", "PerftestNoMemory"), ("ok", "AtRate"), ("error", "ExitCode137")]
    assert codes(evaluation) == expected
    assert evaluation.results[2].further_codes == ("OOMKilled",)


def test_a_run_that_fails_among_its_rows() -> None:
    """A failure between the first line and the last row fails the run."""
    output = bandwidth(
        "\n".join([row(95, 1024), " Failed status 12: wr_id 0 syndrom 0x81", row(95)])
    )
    assert only_result(output).finding.code == "TransferUnanswered"


def test_what_decides() -> None:
    """The worst level decides, and of failures the lowest layer."""
    slow, unknown = bandwidth(row(80)), "\n".join(outputs.head())
    passing, memory = bandwidth(row(95)), "Couldn't allocate MR\n"
    assert evaluated(passing, slow).worst.code == "BelowRate"
    assert evaluated(slow, unknown, passing).worst.code == "NoResult"
    assert evaluated(unknown, memory, slow).worst.code == "PerftestNoMemory"
    assert evaluated(memory, bandwidth(row(10))).worst.code == "FarBelowRate"
    assert evaluated(OVER_SOCKETS, memory).worst.code == "PerftestNoMemory"


@pytest.mark.parametrize(
    ("log", "level", "code"),
    [
        (OVER_RDMA, "ok", "OverRdma"),
        (f"{OVER_RDMA}\n{SLOWER[0].example}", "warning", "GpuDirectOff"),
        (f"{OVER_RDMA}\n{OVER_SOCKETS}", "warning", "MixedTransports"),
        (OVER_SOCKETS, "error", "ChannelsOverSockets"),
        (f"{OVER_SOCKETS}\n{SETTINGS[0].example}", "error", "IbDisabledByEnvironment"),
        (f"{OVER_SOCKETS}\n{BY_CODE['LibraryMissing'].example}", "error", "LibraryMissing"),
        ("NCCL version 2.27.5+cuda12.9", "unsure", "TransportUnknown"),
        (TRANSPORTS[6].example, "ok", "OverRdma"),
    ],
)
def test_logs(log: str, level: str, code: str) -> None:
    """A log of a job shows its network, and what kept it from RDMA."""
    result = only_result(log)
    assert (result.finding.level, result.finding.code) == (level, code)
    assert result.measurement is None


def test_causes_in_a_log() -> None:
    """A slow log has the source of its cause; one over sockets lists the further causes."""
    slow = only_result(f"{OVER_RDMA}\n{SLOWER[0].example}")
    assert slow.citation == SLOWER[0].source
    sockets = only_result(f"{OVER_SOCKETS}\n{SETTINGS[0].example}")
    assert (sockets.citation, sockets.further_codes) == (
        SETTINGS[0].source,
        ("ChannelsOverSockets",),
    )


def test_a_log_says_gpu_direct() -> None:
    """For channels over RDMA, the result names GPUDirect RDMA, or its absence."""
    assert ", with GPUDirect RDMA." in only_result(OVER_RDMA).finding.text
    assert ", without GPUDirect RDMA." in only_result(OVER_RDMA.replace("/GDRDMA", "")).finding.text
    assert "GPUDirect" not in only_result(TRANSPORTS[6].example).finding.text


def test_a_log_of_one_node() -> None:
    """A job on one node chooses a network that it does not use."""
    chose = "n:1:1 [0] NCCL INFO Using network IB\n"
    local = "n:1:1 [5] NCCL INFO Channel 38/0 : 5[700000] -> 3[500000] via P2P/IPC comm 0x7f37\n"
    result = only_result(chose + local)
    assert (result.finding.level, result.finding.code) == ("unsure", "TransportUnknown")
    assert "all channels in the log are within a node" in result.finding.text
    assert only_result(chose).finding.level == "ok"
    assert only_result(f"{chose}{local}{OVER_RDMA}").finding.level == "ok"


def test_nccl_tests_that_fail() -> None:
    """An error of NCCL ends nccl-tests; what comes before it is the cause."""
    end = "n1: Test NCCL failure common.cu:1057 'internal error / '\n"
    failed = only_result(f"{nccl_job().partition('#       size')[0]}{end}")
    assert (failed.finding.level, failed.finding.code) == ("error", "NcclTestFailed")
    plugin = BY_CODE["UcxPluginFailed"].example
    result = only_result(f"{nccl_job().partition('#       size')[0]}{end}{plugin}\n")
    assert (result.finding.code, result.further_codes) == ("UcxPluginFailed", ("NcclTestFailed",))


def test_what_is_no_output() -> None:
    """Other text has no result."""
    assert evaluated("hello\nworld\n", "").results == ()


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
    evaluation = evaluated(*(bandwidth(row(gbps)) for gbps in numbers), rate=None)
    expected = ["Outlier" if index in odd else "NoRate" for index in range(len(numbers))]
    assert [result.finding.code for result in evaluation.results] == expected
    assert all(
        "(" in result.finding.text
        for result in evaluation.results
        if result.finding.code == "Outlier"
    )


def test_an_outlier_says_of_whom() -> None:
    """A rail with three runs is named; a failure stays a failure."""
    slow = [bandwidth(row(gbps)) for gbps in (95, 95, 95, 80, 50)]
    results = evaluated(*slow).results
    assert [(result.finding.level, result.finding.code) for result in results[3:]] == [
        ("warning", "Outlier"),
        ("error", "FarBelowRate"),
    ]
    reason = "This is below the median of its peers, 95 Gb/s (5 runs on mlx5_4)."
    assert all(result.finding.text.endswith(reason) for result in results[3:])
    locations = [result.finding.location for result in results[3:]]
    assert locations == [Location(name, 2, device="mlx5_4") for name in ("d", "e")]


def test_rails() -> None:
    """A run is compared with its rail and with all runs: a whole rail may be slow."""
    rails = [bandwidth(row(gbps), device=f"mlx5_{rail}") for rail, gbps in enumerate([95, 95, 80])]
    evaluation = evaluated(*rails, rate=None)
    assert [result.finding.code for result in evaluation.results] == [
        "NoRate",
        "NoRate",
        "Outlier",
    ]
    assert "(3 runs of this test)" in evaluation.results[2].finding.text


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
    assert all(result.finding.code != "Outlier" for result in evaluated(*texts, rate=None).results)


def test_latencies_of_peers() -> None:
    """A latency within the spread passes, with the median; one far above its peers warns."""
    evaluation = evaluated(*(latency(microseconds) for microseconds in (3.0, 3.1, 3.05, 3.2, 4.1)))
    assert codes(evaluation) == [("ok", "AsPeers")] * 4 + [("warning", "Outlier")]
    first = evaluation.results[0].finding
    median = "in line with that of the run's peers, whose median is 3.1 µs (5 runs on mlx5_4)"
    assert (first.text, first.location.file) == (f"3 µs at 2 bytes, {median}.", "a")
    assert evaluation.results[4].finding.text == (
        "4.1 µs at 2 bytes. This is above the median of its peers, 3.1 µs (5 runs on mlx5_4)."
    )
    assert codes(evaluated(latency(3.0), latency(3.1))) == [("unsure", "NoPeers")] * 2


def test_collectives_of_peers() -> None:
    """Jobs of the same size are compared by their bus bandwidth."""
    slow = nccl_tests().replace("46.65", "30.10").replace("46.48", "30.20")
    evaluation = evaluated(*[nccl_tests() + nccl_log(4)] * 3, slow + nccl_log(4))
    assert codes(evaluation) == [("ok", "OverRdma")] * 3 + [("warning", "Outlier")]


def test_every_hca_is_tested() -> None:
    """A fabric's HCA without any output makes the evaluation inconclusive; a failure is output."""
    passing = bandwidth(row(95), device="mlx5_0")
    down = "$ ib_write_bw -d mlx5_1\nPort number 1 state is Down\n"
    evaluation = evaluated(passing, hcas=["mlx5_0", "mlx5_1", "mlx5_2"])
    (finding,) = evaluation.findings
    assert finding.text == "2 HCAs of the fabric have no result: mlx5_1, mlx5_2."
    assert (evaluation.worst.level, evaluation.worst.code) == ("unsure", "NotTested")
    assert evaluated(passing, hcas=["mlx5_0"]).findings == ()
    assert evaluated(passing, down, hcas=["mlx5_0", "mlx5_1"]).worst.code == "PortDown"


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
    form = verify_form(evaluated(*ALL, hcas=["mlx5_0"]))
    VALIDATOR.validate(json.loads(json.dumps(form)))
    result = form["results"][0]
    assert result["finding"] == {
        "level": "ok",
        "code": "AtRate",
        "text": "95.0 Gb/s, 96% of the expected 99.37 Gb/s.",
        "remedy": "",
        "location": {"file": "a", "line": 2, "device": "mlx5_4"},
    }
    assert (result["gbps"], result["latencyUs"], result["expected"]) == (95.0, None, 99.37)
    assert result["computation"] == "--rate 100 × 0.994 payload share at MTU 4096"
    run = result["run"]
    assert run
    assert (run["device"], run["loopback"], run["rows"][0]["peakGbps"]) == ("mlx5_4", False, 95.0)
    assert (form["level"], form["code"]) == ("error", "FarBelowRate")
    assert (form["text"], form["remedy"]) == (
        form["results"][1]["finding"]["text"],
        form["results"][1]["finding"]["remedy"],
    )
    assert form["findings"][0]["code"] == "NotTested"


def test_the_json_form_has_every_value() -> None:
    """The values that only some programs print have their keys."""
    failed, slow, collective = verify_form(
        evaluated(
            "Couldn't allocate MR\nCouldn't create IB resources\n", latency(), nccl_tests(wrong=2)
        )
    )["results"]
    assert (failed["layer"], failed["also"]) == ("memory", ["IbResourcesMissing"])
    assert slow["run"]
    measurement = evaluated(latency()).results[0].measurement
    assert measurement
    expected = measurement.rows[0].latency
    assert expected
    assert slow["run"]["rows"][0]["latencyUs"] == expected._asdict()
    run = collective["run"]
    assert run
    assert (run["ranks"], run["nodes"], run["wrongElements"]) == (2, 2, 2)
    assert [row["inPlace"] for row in run["rows"]] == [False, True] * 2
    assert [row["wrongElements"] for row in run["rows"]] == [0, 0, 0, 2]


def test_the_schema() -> None:
    """It is a JSON Schema."""
    Draft202012Validator.check_schema(SCHEMA)


def test_the_text() -> None:
    """Each run has its sign, its number and its remedy; the last line has the level."""
    evaluation = evaluated(
        bandwidth(row(95)),
        "$ ib_read_bw -d mlx5_0 -i 2 -b a\nPort number 1 state is Down\nCouldn't allocate MR\n",
        OVER_RDMA,
        hcas=["mlx5_1"],
    )
    assert verify_text(evaluation, width=88) == (
        "ib_read_bw mlx5_0 port 2 bidirectional  b:1\n  ✘ A port of the RDMA device that perftest "
        "uses is down. Output: Port number 1 state is\n    Down [PortDown]\n    → Use another "
        "device of the node (ibstat shows which ports are Active), and report\n      this port to "
        "the cluster administrator.\n    also: PerftestNoMemory\nib_write_bw mlx5_4  a:2\n  ✔ 95.0 "
        "Gb/s, 96% of the expected 99.37 Gb/s.\n    expected: 99.37 Gb/s = --rate 100 × 0.994 "
        "payload share at MTU 4096\nOutput  c\n  ✔ The log shows RDMA, with GPUDirect RDMA. It "
        "contains no bandwidth measurement.\nAll runs\n  ? 1 HCA of the fabric has no result: "
        "mlx5_1. [NotTested]\n    → Run ib_write_bw -d HCA for each HCA that has no result.\n\n✘ "
        "error (PortDown): 2 ok, 1 unsure, 1 error\n"
    )
    assert "\x1b[" in verify_text(evaluation, color=True)
    lines = "".join(f"n1: {line}\nn2: {line}\n" for line in bandwidth(row(95)).splitlines())
    assert "ib_write_bw mlx5_4  a:3 on n1\n" in verify_text(evaluated(lines))
    assert verify_text(evaluated(outputs.ucx_perftest())).startswith("tag match bandwidth  a:2\n")
