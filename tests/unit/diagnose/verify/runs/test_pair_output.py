"""The results on the output of both ends."""

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
from webhook.diagnose.verify.runs.pair_output import devices_in, grade_pair, pair_log
from webhook.diagnose.verify.runs.plan import RunPlan
from webhook.model.finding import Location

PAIR = NodePair("gpu-0", "gpu-1")
SINGLE_HCA_PLAN = plan_of(fabric=replace(FABRIC, hcas=("mlx5_0",)))
BEGUN, SERVED = command("mlx5_0", 18515, "10.1.2.3"), command("mlx5_0", 18515)


def graded(
    client: str, server: str, plan: RunPlan = SINGLE_HCA_PLAN
) -> tuple[BenchmarkResult, ...]:
    """Grade the logs of a pair."""
    return grade_pair(PAIR, pair_log(client, server), plan)


def test_the_client_measures() -> None:
    """Its number counts once, though both ends print it; the lines are the client's."""
    (result,) = graded(measured("mlx5_0", 18515, 95), measured("mlx5_0", 18515, 94, ""))
    assert (result.finding.code, result.gbps) == ("AtRate", 95.0)
    assert result.finding.location == Location(line=1, nodes=PAIR, device="mlx5_0")
    assert result.measurement
    assert result.measurement.line_range == (1, 21)
    assert result.computation.startswith("rateGbps 100 (fabric v100-ib)")


def test_a_server_that_prints_no_number() -> None:
    """A test with a duration may print its table only at the client."""
    (result,) = graded(measured("mlx5_0", 18515, 95), SERVED)
    assert (result.finding.code, result.finding.level) == ("AtRate", "ok")


def test_each_test_of_each_hca() -> None:
    """They are distinguished by port, in their order, whichever end prints more."""
    plan = plan_of(tests=("ib_write_bw", "ib_write_lat"))
    client = ""
    for index, hca in enumerate(HCAS):
        client += measured(hca, 18515 + 2 * index, 95)
        client += command(hca, 18516 + 2 * index, "x", "ib_write_lat") + latency(device=hca)
    results = graded(client, "", plan)
    assert [
        (result.measurement and result.measurement.device, result.finding.code)
        for result in results
    ] == [
        ("mlx5_0", "AtRate"),
        ("mlx5_0", "Quick"),
        ("mlx5_1", "AtRate"),
        ("mlx5_1", "Quick"),
    ]


@pytest.mark.parametrize(
    ("client", "server", "code", "further_codes"),
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
def test_the_lower_layer_of_both_ends(
    client: str, server: str, code: str, further_codes: int
) -> None:
    """One end often only notices that the other end failed; the cause is named, with its device."""
    (result,) = graded(BEGUN + client, SERVED + server)
    assert (result.finding.level, result.finding.code) == ("error", code)
    assert len(result.further_codes) == further_codes
    assert code not in result.further_codes
    assert result.measurement is not None
    assert result.measurement.device == "mlx5_0"


@pytest.mark.parametrize(
    ("client", "level", "code", "reason"),
    [
        (
            "rdma-verify: 'ib_write_bw' on mlx5_0 printed no result within 40 s\n",
            "error",
            "TimedOut",
            "ib_write_bw on mlx5_0 printed no result within 40 s.",
        ),
        (
            "rdma-verify: 'ib_write_bw' on mlx5_0 ended with exit code 137\n",
            "error",
            "ExitCode137",
            "A process was killed by SIGKILL. A possible cause",
        ),
        (
            "rdma-verify: 'ib_write_bw' on mlx5_0 ended with exit code 139\n",
            "unsure",
            "NoResult",
            "ib_write_bw on mlx5_0 ended with exit code 139, and printed no result.",
        ),
        ("", "unsure", "NoResult", "ib_write_bw on mlx5_0 printed no result."),
    ],
    ids=["late", "killed", "crashed", "silent"],
)
def test_a_test_that_says_nothing_known(client: str, level: str, code: str, reason: str) -> None:
    """The reason has the device, and how its test ended."""
    (result,) = graded(BEGUN + client, SERVED)
    assert (result.finding.level, result.finding.code) == (level, code)
    assert result.finding.text.startswith(reason)
    assert result.finding.remedy
    assert result.measurement is not None
    assert (result.measurement.device, result.measurement.kind) == ("mlx5_0", "bandwidth")


def test_a_failure_of_each_hca() -> None:
    """Lines between two tests belong to the first test."""
    failed = " Unable to find the Infiniband/RoCE device\n"
    server = "".join(
        f"{command(hca, 18515 + index)}{failed}"
        f"rdma-verify: {hca} (ib_write_bw) ended with exit code 1\n"
        for index, hca in enumerate(HCAS)
    )
    results = graded("", server, plan_of())
    assert [(result.finding.code, result.finding.location) for result in results] == [
        ("NoRdmaDevice", Location(line=1, nodes=PAIR, device="mlx5_0")),
        ("NoRdmaDevice", Location(line=4, nodes=PAIR, device="mlx5_1")),
    ]


def test_an_hca_that_was_never_measured() -> None:
    """A client that ended early printed nothing about later HCAs; they have results too."""
    results = graded(measured("mlx5_0", 18515, 95), "", plan_of())
    assert [result.finding.code for result in results] == ["AtRate", "NoResult"]
    assert results[1].finding.text.startswith("ib_write_bw on mlx5_1 printed no result")


@pytest.mark.parametrize(
    ("log", "level", "code", "reason"),
    [
        (
            "rdma-verify: this image has no 'ib_write_bw'\n",
            "unsure",
            "NoPerftest",
            "The image has no ib_write_bw.",
        ),
        (
            "rdma-verify: devices\nrdma-verify: this container has no RDMA device\n",
            "error",
            "NoRdmaDevice",
            "The container has no RDMA device",
        ),
        ("Couldn't allocate MR\n", "error", "PerftestNoMemory", "perftest could not register"),
        ("hello\n", "unsure", "NoResult", "The pods ended, but printed no output"),
        ("", "unsure", "NoResult", "The pods ended, but printed no output"),
    ],
    ids=["no perftest", "no device", "a known failure", "prose", "nothing"],
)
@pytest.mark.parametrize("end", ["client", "server"])
def test_pods_that_began_no_test(end: str, log: str, level: str, code: str, reason: str) -> None:
    """The pair has a single result, with the reason."""
    (result,) = graded(*((log, "") if end == "client" else ("", log)))
    assert (result.finding.level, result.finding.code) == (level, code)
    assert result.finding.location.nodes == PAIR
    assert result.finding.text.startswith(reason)
    assert result.finding.remedy


def test_devices_of_other_names() -> None:
    """Without a list, both ends measure their own HCAs, which are paired by port."""
    plan = plan_of(fabric=replace(FABRIC, hcas=()))
    client = f"rdma-verify: devices mlx5_7\n{command('mlx5_7', 18515, 'x')}"
    server = f"rdma-verify: devices mlx5_4\n{command('mlx5_4', 18515)}Couldn't allocate MR\n"
    assert devices_in(server) == ["mlx5_4"]
    assert devices_in("prose") == []
    (result,) = graded(client, server, plan)
    assert result.finding.code == "PerftestNoMemory"


def test_the_text_is_kept_in_order() -> None:
    """Lines before the tests come first, and then each test, the client's part first."""
    log = pair_log(f"one\n{BEGUN}client\n", f"two\n{SERVED}server\nrdma-verify: so\n")
    assert log.text == f"one\ntwo\n{BEGUN}client\n{SERVED}server\nrdma-verify: so\n"
    (section,) = log.sections
    assert (section.device, section.line_range, section.notes) == ("mlx5_0", (3, 7), ("so",))


def test_a_slow_hca_of_a_good_pair() -> None:
    """Each HCA is graded by the rate of the fabric."""
    client = measured("mlx5_0", 18515, 95) + measured("mlx5_1", 18516, 40)
    assert [result.finding.code for result in graded(client, client_log(), plan_of())] == [
        "AtRate",
        "FarBelowRate",
    ]
