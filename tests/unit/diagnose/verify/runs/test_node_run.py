"""A run: what becomes of each pair, whatever its pods do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.verify.runs.fake_pods import (
    CLIENT,
    SERVER,
    FakePods,
    FakeSite,
    Pod,
    Story,
    ended,
    node_of,
    pending,
    role_of,
    running,
    waiting,
)
from tests.unit.diagnose.verify.runs.plans import FABRIC, HCAS, client_log, command, plan_of
from webhook.diagnose.verify.results import BenchmarkResult, NodePair
from webhook.diagnose.verify.runs.plan import PodProblem, all_pair_rounds
from webhook.diagnose.verify.runs.pods import remove_pods, run_selector
from webhook.errors import ClusterError
from webhook.kube.api import RefusedError

PAIR = NodePair("a", "b")
LABELS = PodProblem("NamespaceNotLabelled", "Namespace lab lacks the label.", "Label it.")


def logs(client: str = "", server: str = "") -> Any:
    """Return the logs of both ends."""
    return lambda pod: server if role_of(pod) == "server" else client


def stories(server: Story = SERVER, client: Story = CLIENT) -> Any:
    """Return the stories of both ends."""
    return lambda pod: server if role_of(pod) == "server" else client


def only(pods: FakePods, **how: Any) -> BenchmarkResult:
    """Run one pair, and return its only judgement; its pods are gone after that."""
    report = FakeSite(pods, **how).run(plan_of()).report
    ((pair, (found,)),) = report.results
    assert pair == PAIR
    assert found.file == "a → b"
    assert not pods.pods
    return found


def test_a_pair_that_is_well() -> None:
    """The client gets the address of the server; each HCA has its judgement; no pod is left."""
    pods = FakePods(logs=logs(client_log(95), client_log(95)))
    site = FakeSite(pods)
    report = site.run(plan_of()).report
    (result,) = report.results
    judged = [(one.verdict, one.code, one.gbps) for one in result.judgements]
    assert judged == [("pass", "AtRate", 95.0)] * 2
    assert [one.measurement and one.measurement.device for one in result.judgements] == [*HCAS]
    server, client = pods.created
    assert (node_of(server), node_of(client)) == ("b", "a")
    assert client["spec"]["containers"][0]["args"][:4] == ["rdma-verify", "client", "10.1.2.3", "0"]
    assert not pods.pods
    assert site.told == [
        "a → b: server created on b",
        "a → b: client created on a",
        "a → b: measures",
        "a → b: reads what both printed",
        "a → b: pass (AtRate)",
    ]
    assert [*site.kept] == [PAIR]
    assert report.remarks == ()


@pytest.mark.parametrize("count", range(2, 8), ids="{} nodes".format)
def test_all_pairs_of_many_nodes(count: int) -> None:
    """Each pair is measured once, and no node is in two pairs at a time."""
    nodes = [f"n{number}" for number in range(count)]
    pods = FakePods(logs=logs(client_log()))
    plan = plan_of(nodes, rounds=tuple(all_pair_rounds(nodes)))
    report = FakeSite(pods).run(plan).report
    measured = [tuple(sorted(one.pair)) for one in report.results]
    assert sorted(measured) == [(one, other) for one in nodes for other in nodes if one < other]
    for busy in pods.busy:
        assert len(set(busy)) == len(busy)


def test_a_slow_node_is_found_among_its_peers() -> None:
    """All pairs are compared with each other, whatever round they were in."""

    def log(pod: Pod) -> str:
        return client_log(92 if node_of(pod) == "n2" else 98)

    nodes = ["n0", "n1", "n2", "n3", "n4"]
    report = FakeSite(FakePods(logs=log)).run(plan_of(nodes)).report
    odd = {one.pair.client for one in report.results if one.judgements[0].code == "Outlier"}
    assert odd == {"n2"}


def test_a_server_that_fails_before_it_listens() -> None:
    """No client is created: the log of the server has the cause, for each HCA."""
    server = "".join(
        f"{command(hca, 18515 + place)}IB device {hca} not found\n"
        " Unable to find the Infiniband/RoCE device\n"
        for place, hca in enumerate(HCAS)
    )
    pods = FakePods(stories(server=[running(), ended(1, "Error")]), logs(server=server))
    report = FakeSite(pods).run(plan_of()).report
    found = [(one.code, one.measurement and one.measurement.device) for one in report.results[0][1]]
    assert found == [("DeviceNotFound", "mlx5_0"), ("DeviceNotFound", "mlx5_1")]
    assert [role_of(pod) for pod in pods.created] == ["server"]


def test_hcas_that_the_fabric_does_not_name() -> None:
    """The client measures as many as the server has found."""
    fabric = FABRIC.__class__(name="v100-ib", resources=FABRIC.resources)
    log = "rdma-verify: devices mlx5_4 mlx5_7\n"
    pods = FakePods(logs=logs(log, log))
    FakeSite(pods).run(plan_of(fabric=fabric))
    assert pods.created[1]["spec"]["containers"][0]["args"][3] == "2"


@pytest.mark.parametrize(
    ("server", "client", "role", "node"),
    [
        ([pending("0/2 nodes: 1 Insufficient rdma/x")], CLIENT, "server", "b"),
        (SERVER, [waiting("ImagePullBackOff", "not there")], "client", "a"),
        ([running()], CLIENT, "server", "b"),
    ],
    ids=["server pending", "client without image", "server never ready"],
)
def test_a_pod_that_does_not_start(server: Story, client: Story, role: str, node: str) -> None:
    """It is waited for as long as was asked, and then explained; the network may be good."""
    problem = PodProblem("Insufficient", "No node has it free.", "Wait.")
    site = FakeSite(FakePods(stories(server, client)), problem=problem)
    found = site.run(plan_of()).report.results[0].judgements[0]
    assert (found.verdict, found.code, found.remedy) == ("inconclusive", "Insufficient", "Wait.")
    start = f"The {role} on {node} did not start within 60 s."
    assert found.because == f"{start} No node has it free."
    assert 60 < site.time < 80
    site.problem, site.time = None, 0
    found = site.run(plan_of()).report.results[0].judgements[0]
    assert (found.verdict, found.code, found.because) == ("inconclusive", "NotStarted", start)


def test_what_a_pod_waits_for_is_told_once() -> None:
    """A line for each change, not one for each look."""
    waits = pending("0/2 nodes are available")
    story: Story = [waits, waits, waits, waiting("ContainerCreating"), *SERVER]
    site = FakeSite(FakePods(stories(story), logs(client_log())))
    site.run(plan_of())
    assert site.told[:4] == [
        "a → b: server created on b",
        "a → b: server waits on b: 0/2 nodes are available",
        "a → b: server waits on b: ContainerCreating",
        "a → b: client created on a",
    ]


@pytest.mark.parametrize("reason", ["ErrImageNeverPull", "InvalidImageName"])
def test_a_pod_that_never_starts_is_not_waited_for(reason: str) -> None:
    """What no waiting repairs ends the pair at once."""
    site = FakeSite(FakePods(stories([waiting(reason)])))
    site.run(plan_of())
    assert site.time < 5


@pytest.mark.parametrize(
    ("pods", "verdict", "code", "said"),
    [
        (
            FakePods(
                stories(
                    [{"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no x"}]
                )
            ),
            "inconclusive",
            "PodFailed",
            "The server on b failed before it ran. UnexpectedAdmissionError: no x",
        ),
        (
            FakePods(stories(client=[running(), ended(137, "OOMKilled")])),
            "fail",
            "OomKilled",
            "The client on a was killed.",
        ),
        (
            FakePods(stories(client=[running()])),
            "inconclusive",
            "NotEnded",
            "The client on a did not end within 80 s.",
        ),
        (
            FakePods(errors={"create": [RefusedError(403, "exceeded quota: pods")]}),
            "inconclusive",
            "PodRejected",
            "The server for b was not created. the API server answered 403: exceeded quota: pods",
        ),
        (
            FakePods(errors={"log": [RefusedError(500, "no kubelet")] * 2}),
            "inconclusive",
            "LogUnreadable",
            "The log of the client on a could not be read: the API server answered 500: no kubelet",
        ),
        (FakePods(), "inconclusive", "NoResult", "The pods ended, and printed nothing"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isalpha() else None,
)
def test_pods_that_do_not_measure(pods: FakePods, verdict: str, code: str, said: str) -> None:
    """Each has its code, and a sentence that names the end and the node."""
    found = only(pods)
    assert (found.verdict, found.code) == (verdict, code)
    assert found.because.startswith(said)
    assert found.remedy


@pytest.mark.parametrize("role", ["server", "client"])
def test_a_pod_that_somebody_deletes(role: str) -> None:
    """The pair ends."""
    found = only(FakePods(vanishes=lambda pod: role_of(pod) == role))
    node = {"server": "b", "client": "a"}[role]
    assert (found.verdict, found.code) == ("inconclusive", "PodGone")
    assert found.because == f"The {role} on {node} was deleted while the run went on."


def test_a_server_whose_log_is_lost() -> None:
    """What the client measured counts."""
    pods = FakePods(logs=logs(client_log()))
    pods.errors["log"] = [RefusedError(404, "gone"), None]
    report = FakeSite(pods).run(plan_of()).report
    assert [one.code for one in report.results[0].judgements] == ["AtRate", "AtRate"]


def test_a_server_that_is_killed_for_memory_meanwhile() -> None:
    """It is the cause of what the client saw."""
    server = [running(), running(ready=True), ended(137, "OOMKilled")]
    found = only(FakePods(stories(server), logs(client_log())))
    assert (found.verdict, found.code, found.layer) == ("fail", "OomKilled", "memory")
    assert found.because.startswith("The server on b was killed.")


@pytest.mark.parametrize(
    ("rdma", "code"), [(None, "NotCalled"), ("no", "NoRdma")], ids=["not called", "no RDMA"]
)
@pytest.mark.parametrize("problem", [LABELS, None], ids=["explained", "not explained"])
def test_pods_without_rdma_end_the_run(
    rdma: str | None, code: str, problem: PodProblem | None
) -> None:
    """No other pod would fare better: one is created, and it is said why."""
    pods = FakePods(rdma=rdma)
    run = FakeSite(pods, problem=problem).run(plan_of(["a", "b", "c"]))
    assert len(pods.created) == 1
    (remark,) = run.report.remarks
    assert run.report.results == ()
    assert (remark.verdict, remark.code) == ("fail", problem.code if problem else code)
    assert remark.because
    assert remark.remedy


def test_a_status_that_is_not_understood() -> None:
    """It is the webhook's all the same: a newer version may have written it."""
    pods = FakePods(logs=logs(client_log()), rdma="perhaps")
    assert FakeSite(pods).run(plan_of()).report.results[0].judgements[0].code == "AtRate"


def test_a_right_that_is_lacking_ends_the_run() -> None:
    """The API server's words say which."""
    said = 'pods is forbidden: User "x" cannot create resource "pods" in API group ""'
    pods = FakePods(errors={"create": [RefusedError(403, said)]})
    with pytest.raises(RefusedError, match="cannot create resource"):
        FakeSite(pods).run(plan_of())


@pytest.mark.parametrize("request_", ["create", "list", "delete", "log"])
@pytest.mark.parametrize(
    "error", [ClusterError("timed out"), RefusedError(503, "busy")], ids=["silent", "busy"]
)
def test_an_api_server_that_is_silent_for_a_while(request_: str, error: Exception) -> None:
    """The request is made again, and the run goes on."""
    pods = FakePods(logs=logs(client_log()), errors={request_: [error] * 20})
    found = FakeSite(pods).run(plan_of()).report.results[0].judgements
    assert [one.code for one in found] == ["AtRate", "AtRate"]


@pytest.mark.parametrize("request_", ["create", "list", "delete"])
def test_an_api_server_that_stays_silent(request_: str) -> None:
    """The run ends after a minute."""
    pods = FakePods(logs=logs(client_log()), errors={request_: [ClusterError("timed out")] * 500})
    site = FakeSite(pods)
    with pytest.raises(ClusterError, match="timed out"):
        site.run(plan_of())
    assert 60 <= site.time < 80


@pytest.mark.parametrize("pauses", range(12), ids="after {} pauses".format)
def test_an_interruption(pauses: int) -> None:
    """Whenever it comes: what was measured stays, it is said how much, and all pods are found."""
    pods = FakePods(logs=logs(client_log()))
    site = FakeSite(pods, ends_after=pauses)
    run = site.run(plan_of(["a", "b", "c"]))
    (remark,) = run.report.remarks
    done = len(run.report.results)
    assert (remark.verdict, remark.code) == ("inconclusive", "Interrupted")
    assert remark.because == f"The run was interrupted after {done} of 3 pairs."
    before = [*pods.pods]
    removed = remove_pods(pods, run_selector("verify-0123abcd"), site.pause, lambda: site.time)
    assert [pod.metadata.name for pod in removed] == before
    assert not pods.pods


def test_an_interruption_while_the_api_server_is_silent() -> None:
    """Nobody waits a minute for it."""
    pods = FakePods(errors={"list": [ClusterError("timed out")] * 500})
    site = FakeSite(pods, ends_after=3)
    with pytest.raises(ClusterError, match="timed out"):
        site.run(plan_of())
    assert site.time < 10
