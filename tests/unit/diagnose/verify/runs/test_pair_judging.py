"""The judgements on the output of both ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import latency
from tests.unit.diagnose.verify.runs.plans import (
    FABRIC,
    HCAS,
    client_log,
    command,
    measured,
    plan_of,
)
from webhook.diagnose.verify.results import BenchmarkResult, NodePair
from webhook.diagnose.verify.runs.pair_output import devices_in, judge_pair, pair_log
from webhook.diagnose.verify.runs.plan import RunPlan

PAIR = NodePair("gpu-0", "gpu-1")
SINGLE_HCA_PLAN = plan_of(fabric=replace(FABRIC, hcas=("mlx5_0",)))
BEGUN, SERVED = command("mlx5_0", 18515, "10.1.2.3"), command("mlx5_0", 18515)


def judged(
    client: str, server: str, plan: RunPlan = SINGLE_HCA_PLAN
) -> tuple[BenchmarkResult, ...]:
    """Judge the logs of a pair."""
    return judge_pair(PAIR, pair_log(client, server), plan)


def test_the_client_measures() -> None:
    """Its number counts once, though both ends print it; the lines are the client's."""
    (judgement,) = judged(measured("mlx5_0", 18515, 95), measured("mlx5_0", 18515, 94, ""))
    assert (judgement.code, judgement.gbps, judgement.file) == ("AtRate", 95.0, "gpu-0 → gpu-1")
    assert judgement.lines == (1, 21)
    assert judgement.source.startswith("rateGbps: 100 of fabric v100-ib")


def test_a_server_that_prints_no_number() -> None:
    """A test with a duration may print its table only at the client."""
    (judgement,) = judged(measured("mlx5_0", 18515, 95), SERVED)
    assert (judgement.code, judgement.verdict) == ("AtRate", "pass")


def test_each_test_of_each_hca() -> None:
    """They are distinguished by port, in their order, whichever end prints more."""
    plan = plan_of(tests=("ib_write_bw", "ib_write_lat"))
    client = ""
    for index, hca in enumerate(HCAS):
        client += measured(hca, 18515 + 2 * index, 95)
        client += command(hca, 18516 + 2 * index, "x", "ib_write_lat") + latency(device=hca)
    judgements = judged(client, "", plan)
    assert [
        (judgement.measurement and judgement.measurement.device, judgement.code)
        for judgement in judgements
    ] == [
        ("mlx5_0", "AtRate"),
        ("mlx5_0", "Quick"),
        ("mlx5_1", "AtRate"),
        ("mlx5_1", "Quick"),
    ]


@pytest.mark.parametrize(
    ("client", "server", "code", "also"),
    [
        (
            "Couldn't connect to 10.1.2.3:18515\n",
            "IB device mlx5_0 not found\n",
            "DeviceNotFound",
            1,
        ),
        ("Couldn't allocate MR\n", "Couldn't read remote address\n", "PerftestNoMemory", 1),
        ("Couldn't read remote address\n", "Port number 1 state is Down\n", "PortDown", 1),
        ("Port number 1 state is Down\n", "", "PortDown", 0),
        ("", "Couldn't allocate MR\n", "PerftestNoMemory", 0),
    ],
    ids=["server alone has no device", "client", "server", "client only", "server only"],
)
def test_the_lower_layer_of_both_ends(client: str, server: str, code: str, also: int) -> None:
    """One end often only notices that the other end failed; the cause is named, with its device."""
    (judgement,) = judged(BEGUN + client, SERVED + server)
    assert (judgement.verdict, judgement.code) == ("fail", code)
    assert len(judgement.also) == also
    assert code not in judgement.also
    assert judgement.measurement is not None
    assert judgement.measurement.device == "mlx5_0"


@pytest.mark.parametrize(
    ("client", "verdict", "code", "reason"),
    [
        (
            "rdma-verify: mlx5_0 (ib_write_bw) gave no result within 40 s\n",
            "fail",
            "TimedOut",
            "mlx5_0 (ib_write_bw) gave no result within 40 s.",
        ),
        (
            "rdma-verify: mlx5_0 (ib_write_bw) ended with exit code 137\n",
            "fail",
            "ExitCode137",
            "The process was killed by a signal, as the kernel does",
        ),
        (
            "rdma-verify: mlx5_0 (ib_write_bw) ended with exit code 139\n",
            "inconclusive",
            "NoResult",
            "mlx5_0 (ib_write_bw) ended with exit code 139, and nothing that is known.",
        ),
        ("", "inconclusive", "NoResult", "mlx5_0 (ib_write_bw) printed no result"),
    ],
    ids=["late", "killed", "crashed", "silent"],
)
def test_a_test_that_says_nothing_known(client: str, verdict: str, code: str, reason: str) -> None:
    """The reason has the device, and how its test ended."""
    (judgement,) = judged(BEGUN + client, SERVED)
    assert (judgement.verdict, judgement.code) == (verdict, code)
    assert judgement.because.startswith(reason)
    assert judgement.remedy
    assert judgement.measurement is not None
    assert (judgement.measurement.device, judgement.measurement.kind) == ("mlx5_0", "bandwidth")


def test_a_failure_of_each_hca() -> None:
    """Lines between two tests belong to the first test."""
    failed = " Unable to find the Infiniband/RoCE device\n"
    server = "".join(
        f"{command(hca, 18515 + index)}{failed}"
        f"rdma-verify: {hca} (ib_write_bw) ended with exit code 1\n"
        for index, hca in enumerate(HCAS)
    )
    judgements = judged("", server, plan_of())
    assert [(judgement.code, judgement.lines) for judgement in judgements] == [
        ("NoRdmaDevice", (1, 2)),
        ("NoRdmaDevice", (4, 5)),
    ]


def test_an_hca_that_was_never_measured() -> None:
    """A client that ended early printed nothing about later HCAs; they have judgements too."""
    judgements = judged(measured("mlx5_0", 18515, 95), "", plan_of())
    assert [judgement.code for judgement in judgements] == ["AtRate", "NoResult"]
    assert judgements[1].because.startswith("mlx5_1 (ib_write_bw) printed no result")


@pytest.mark.parametrize(
    ("log", "verdict", "code", "reason"),
    [
        (
            "rdma-verify: this image has no 'ib_write_bw'\n",
            "inconclusive",
            "NoPerftest",
            "The image has no ib_write_bw.",
        ),
        (
            "rdma-verify: devices\nrdma-verify: this container has no RDMA device\n",
            "fail",
            "NoRdmaDevice",
            "No RDMA device is in the container",
        ),
        ("Couldn't allocate MR\n", "fail", "PerftestNoMemory", "perftest could not register"),
        ("hello\n", "inconclusive", "NoResult", "The pods ended, and printed nothing"),
        ("", "inconclusive", "NoResult", "The pods ended, and printed nothing"),
    ],
    ids=["no perftest", "no device", "a known failure", "prose", "nothing"],
)
@pytest.mark.parametrize("end", ["client", "server"])
def test_pods_that_began_no_test(end: str, log: str, verdict: str, code: str, reason: str) -> None:
    """The pair has a single judgement, with the reason."""
    (judgement,) = judged(*((log, "") if end == "client" else ("", log)))
    assert (judgement.verdict, judgement.code, judgement.file) == (verdict, code, "gpu-0 → gpu-1")
    assert judgement.because.startswith(reason)
    assert judgement.remedy


def test_devices_of_other_names() -> None:
    """Without a list, both ends measure their own HCAs, which are paired by port."""
    plan = plan_of(fabric=replace(FABRIC, hcas=()))
    client = f"rdma-verify: devices mlx5_7\n{command('mlx5_7', 18515, 'x')}"
    server = f"rdma-verify: devices mlx5_4\n{command('mlx5_4', 18515)}Couldn't allocate MR\n"
    assert devices_in(server) == ["mlx5_4"]
    assert devices_in("prose") == []
    (judgement,) = judged(client, server, plan)
    assert judgement.code == "PerftestNoMemory"


def test_the_text_is_kept_in_order() -> None:
    """Lines before the tests come first, and then each test, the client's part first."""
    log = pair_log(f"one\n{BEGUN}client\n", f"two\n{SERVED}server\nrdma-verify: so\n")
    assert log.text == f"one\ntwo\n{BEGUN}client\n{SERVED}server\nrdma-verify: so\n"
    (section,) = log.sections
    assert (section.device, section.lines, section.notes) == ("mlx5_0", (3, 7), ("so",))


def test_a_slow_hca_of_a_good_pair() -> None:
    """Each HCA is judged by the rate of the fabric."""
    client = measured("mlx5_0", 18515, 95) + measured("mlx5_1", 18516, 40)
    assert [judgement.code for judgement in judged(client, client_log(), plan_of())] == [
        "AtRate",
        "FarBelowRate",
    ]
