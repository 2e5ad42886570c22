"""What is said of what both ends printed."""

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
ONE = plan_of(fabric=replace(FABRIC, hcas=("mlx5_0",)))
BEGUN, SERVED = command("mlx5_0", 18515, "10.1.2.3"), command("mlx5_0", 18515)


def judged(client: str, server: str, plan: RunPlan = ONE) -> tuple[BenchmarkResult, ...]:
    """Judge the logs of a pair."""
    return judge_pair(PAIR, pair_log(client, server), plan)


def test_the_client_measures() -> None:
    """Its number counts once, though both ends print it; the lines are those of its part."""
    (found,) = judged(measured("mlx5_0", 18515, 95), measured("mlx5_0", 18515, 94, ""))
    assert (found.code, found.gbps, found.file) == ("AtRate", 95.0, "gpu-0 → gpu-1")
    assert found.lines == (1, 21)
    assert found.source.startswith("rateGbps: 100 of fabric v100-ib")


def test_a_server_that_prints_no_number() -> None:
    """A test for a time may print its table at the client alone."""
    (found,) = judged(measured("mlx5_0", 18515, 95), SERVED)
    assert (found.code, found.verdict) == ("AtRate", "pass")


def test_each_test_of_each_hca() -> None:
    """They are told apart by their ports, in their order, whichever end says more."""
    plan = plan_of(tests=("ib_write_bw", "ib_write_lat"))
    client = ""
    for place, hca in enumerate(HCAS):
        client += measured(hca, 18515 + 2 * place, 95)
        client += command(hca, 18516 + 2 * place, "x", "ib_write_lat") + latency(device=hca)
    found = judged(client, "", plan)
    assert [(one.measurement and one.measurement.device, one.code) for one in found] == [
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
    """One end often only notices that the other one failed; the cause is named, of the device."""
    (found,) = judged(BEGUN + client, SERVED + server)
    assert (found.verdict, found.code) == ("fail", code)
    assert len(found.also) == also
    assert code not in found.also
    assert found.measurement is not None
    assert found.measurement.device == "mlx5_0"


@pytest.mark.parametrize(
    ("client", "verdict", "code", "said"),
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
def test_a_test_that_says_nothing_known(client: str, verdict: str, code: str, said: str) -> None:
    """How it ended is said, and which device it was."""
    (found,) = judged(BEGUN + client, SERVED)
    assert (found.verdict, found.code) == (verdict, code)
    assert found.because.startswith(said)
    assert found.remedy
    assert found.measurement is not None
    assert (found.measurement.device, found.measurement.kind) == ("mlx5_0", "bandwidth")


def test_a_failure_of_each_hca() -> None:
    """What stands between two tests belongs to the first one."""
    failed = " Unable to find the Infiniband/RoCE device\n"
    server = "".join(
        f"{command(hca, 18515 + place)}{failed}"
        f"rdma-verify: {hca} (ib_write_bw) ended with exit code 1\n"
        for place, hca in enumerate(HCAS)
    )
    found = judged("", server, plan_of())
    assert [(one.code, one.lines) for one in found] == [
        ("NoRdmaDevice", (1, 2)),
        ("NoRdmaDevice", (4, 5)),
    ]


def test_an_hca_that_was_never_measured() -> None:
    """A client that ended early says nothing of the HCAs that follow, so that we say it."""
    found = judged(measured("mlx5_0", 18515, 95), "", plan_of())
    assert [one.code for one in found] == ["AtRate", "NoResult"]
    assert found[1].because.startswith("mlx5_1 (ib_write_bw) printed no result")


@pytest.mark.parametrize(
    ("log", "verdict", "code", "said"),
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
def test_pods_that_began_no_test(end: str, log: str, verdict: str, code: str, said: str) -> None:
    """One judgement says why, for the pair."""
    (found,) = judged(*((log, "") if end == "client" else ("", log)))
    assert (found.verdict, found.code, found.file) == (verdict, code, "gpu-0 → gpu-1")
    assert found.because.startswith(said)
    assert found.remedy


def test_devices_of_other_names() -> None:
    """Without a list, both ends measure what they have: the ports tell which belong together."""
    plan = plan_of(fabric=replace(FABRIC, hcas=()))
    client = f"rdma-verify: devices mlx5_7\n{command('mlx5_7', 18515, 'x')}"
    server = f"rdma-verify: devices mlx5_4\n{command('mlx5_4', 18515)}Couldn't allocate MR\n"
    assert devices_in(server) == ["mlx5_4"]
    assert devices_in("prose") == []
    (found,) = judged(client, server, plan)
    assert found.code == "PerftestNoMemory"


def test_the_text_is_kept_in_order() -> None:
    """What stands before the tests comes first, and then each test, the client's part first."""
    log = pair_log(f"one\n{BEGUN}client\n", f"two\n{SERVED}server\nrdma-verify: so\n")
    assert log.text == f"one\ntwo\n{BEGUN}client\n{SERVED}server\nrdma-verify: so\n"
    (section,) = log.sections
    assert (section.device, section.lines, section.notes) == ("mlx5_0", (3, 7), ("so",))


def test_a_slow_hca_of_a_good_pair() -> None:
    """Each is judged by the rate of the fabric."""
    client = measured("mlx5_0", 18515, 95) + measured("mlx5_1", 18516, 40)
    assert [one.code for one in judged(client, client_log(), plan_of())] == [
        "AtRate",
        "FarBelowRate",
    ]
