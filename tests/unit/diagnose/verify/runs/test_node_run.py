"""A run: the result of each pair, whatever its pods do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.verify.runs.fake_pods import (
    CLIENT,
    SERVER,
    FakeEnvironment,
    FakePods,
    Pod,
    Story,
    ended_status,
    node_of,
    pending,
    role_of,
    running,
    waiting,
)
from tests.unit.diagnose.verify.runs.plans import (
    FABRIC,
    HCAS,
    client_log,
    command,
    measured,
    plan_of,
)
from webhook.diagnose.verify.results import BenchmarkResult, NodePair
from webhook.diagnose.verify.runs.plan import all_pair_rounds
from webhook.diagnose.verify.runs.pods import remove_pods, run_selector
from webhook.errors import ClusterError
from webhook.kube.api import StatusError
from webhook.model.finding import Finding, Location

PAIR = NodePair("a", "b")
#: The run decides the level, and has other locations.
LABELS = Finding(
    "unsure", "NamespaceNotLabeled", "Namespace lab lacks the label.", "Label it.", Location("x")
)


def logs(client: str = "", server: str = "") -> Any:
    """Return the logs of both ends."""
    return lambda pod: server if role_of(pod) == "server" else client


def stories(server: Story = SERVER, client: Story = CLIENT) -> Any:
    """Return the stories of both ends."""
    return lambda pod: server if role_of(pod) == "server" else client


def only(pods: FakePods, **environment_fields: Any) -> BenchmarkResult:
    """Run a single pair, and return its only result; no pod remains."""
    report = FakeEnvironment(pods, **environment_fields).run(plan_of()).report
    ((pair, (result,)),) = report.pairs
    assert pair == PAIR
    assert result.finding.location.nodes == PAIR
    assert not pods.pods
    return result


def test_a_pair_that_is_well() -> None:
    """The client gets the address of the server; each HCA has a result; no pod remains."""
    pods = FakePods(logs=logs(client_log(95), client_log(95)))
    environment = FakeEnvironment(pods)
    report = environment.run(plan_of()).report
    (result,) = report.pairs
    numbers = [
        (result.finding.level, result.finding.code, result.gbps) for result in result.results
    ]
    assert numbers == [("ok", "AtRate", 95.0)] * 2
    assert [result.measurement and result.measurement.device for result in result.results] == [
        *HCAS
    ]
    server, client = pods.created
    assert (node_of(server), node_of(client)) == ("b", "a")
    assert client["spec"]["containers"][0]["args"][:4] == ["rdma-verify", "client", "10.1.2.3", "0"]
    assert not pods.pods
    assert environment.progress == [
        "a → b: server created on b",
        "a → b: client created on a",
        "a → b: measuring",
        "a → b: reading both logs",
        "a → b: ok (AtRate)",
    ]
    assert [*environment.saved_logs] == [PAIR]
    assert report.findings == ()


@pytest.mark.parametrize("count", range(2, 8), ids="{} nodes".format)
def test_all_pairs_of_many_nodes(count: int) -> None:
    """Each pair is measured once, and no node is in two pairs at the same time."""
    nodes = [f"n{number}" for number in range(count)]
    pods = FakePods(logs=logs(client_log()))
    plan = plan_of(nodes, rounds=tuple(all_pair_rounds(nodes)))
    report = FakeEnvironment(pods).run(plan).report
    measured = [tuple(sorted(pair_result.pair)) for pair_result in report.pairs]
    assert sorted(measured) == [
        (client, server) for client in nodes for server in nodes if client < server
    ]
    for busy in pods.busy:
        assert len(set(busy)) == len(busy)


def test_the_progress_names_the_worst_codes() -> None:
    """The level and the codes of the worst results are reported, and no better ones."""
    client = measured("mlx5_0", 18515, 95) + measured("mlx5_1", 18516, 12)
    environment = FakeEnvironment(FakePods(logs=logs(client)))
    environment.run(plan_of())
    assert environment.progress[-1] == "a → b: error (FarBelowRate)"


def test_a_slow_node_is_an_outlier_among_its_peers() -> None:
    """All pairs are compared with each other, across rounds."""

    def log(pod: Pod) -> str:
        return client_log(92 if node_of(pod) == "n2" else 98)

    nodes = ["n0", "n1", "n2", "n3", "n4"]
    report = FakeEnvironment(FakePods(logs=log)).run(plan_of(nodes)).report
    slow = {
        pair_result.pair.client
        for pair_result in report.pairs
        if pair_result.results[0].finding.code == "Outlier"
    }
    assert slow == {"n2"}


def test_a_server_that_fails_before_it_listens() -> None:
    """No client is created: the log of the server has the cause, for each HCA."""
    server = "".join(
        f"{command(hca, 18515 + index)}IB device {hca} not found\n"
        " Unable to find the Infiniband/RoCE device\n"
        for index, hca in enumerate(HCAS)
    )
    pods = FakePods(stories(server=[running(), ended_status(1, "Error")]), logs(server=server))
    report = FakeEnvironment(pods).run(plan_of()).report
    causes = [
        (result.finding.code, result.measurement and result.measurement.device)
        for result in report.pairs[0][1]
    ]
    assert causes == [("DeviceNotFound", "mlx5_0"), ("DeviceNotFound", "mlx5_1")]
    assert [role_of(pod) for pod in pods.created] == ["server"]


def test_hcas_that_the_fabric_does_not_name() -> None:
    """The client measures as many HCAs as the server detected."""
    fabric = FABRIC.__class__(name="v100-ib", resources=FABRIC.resources)
    log = "rdma-verify: devices mlx5_4 mlx5_7\n"
    pods = FakePods(logs=logs(log, log))
    FakeEnvironment(pods).run(plan_of(fabric=fabric))
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
    """The run waits for the time in the plan, then explains the pod; the network may be good."""
    problem = Finding("error", "Insufficient", "No node has it free.", "Wait.")
    environment = FakeEnvironment(FakePods(stories(server, client)), problem=problem)
    result = environment.run(plan_of()).report.pairs[0].results[0]
    assert (result.finding.level, result.finding.code, result.finding.remedy) == (
        "unsure",
        "Insufficient",
        "Wait.",
    )
    start = f"The {role} on {node} did not start within 60 s."
    assert result.finding.text == f"{start} No node has it free."
    assert 60 < environment.time < 80
    environment.problem, environment.time = None, 0
    result = environment.run(plan_of()).report.pairs[0].results[0]
    assert (result.finding.level, result.finding.code, result.finding.text) == (
        "unsure",
        "NotStarted",
        start,
    )


def test_what_a_pod_waits_for_is_reported_once() -> None:
    """There is a line for each change, not for each poll."""
    waits = pending("0/2 nodes are available")
    story: Story = [waits, waits, waits, waiting("ContainerCreating"), *SERVER]
    environment = FakeEnvironment(FakePods(stories(story), logs(client_log())))
    environment.run(plan_of())
    assert environment.progress[:4] == [
        "a → b: server created on b",
        "a → b: server on b is waiting: 0/2 nodes are available",
        "a → b: server on b is waiting: ContainerCreating",
        "a → b: client created on a",
    ]


@pytest.mark.parametrize("reason", ["ErrImageNeverPull", "InvalidImageName"])
def test_a_pod_that_never_starts_is_not_waited_for(reason: str) -> None:
    """A permanent problem ends the pair immediately, and the text mentions no time."""
    problem = Finding("error", reason, "The image is missing.", "Push it.")
    environment = FakeEnvironment(FakePods(stories([waiting(reason)])), problem=problem)
    finding = environment.run(plan_of()).report.pairs[0].results[0].finding
    assert (finding.level, finding.code, finding.remedy) == ("unsure", reason, "Push it.")
    assert finding.text == "The server on b cannot start. The image is missing."
    assert environment.time < 5


@pytest.mark.parametrize(
    ("pods", "level", "code", "reason"),
    [
        (
            FakePods(
                stories(
                    [{"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no x"}]
                )
            ),
            "unsure",
            "PodFailed",
            "The server on b failed before it ran. UnexpectedAdmissionError: no x",
        ),
        (
            FakePods(stories(client=[running(), ended_status(137, "OOMKilled")])),
            "error",
            "OOMKilled",
            "The client on a was killed.",
        ),
        (
            FakePods(stories(client=[running()])),
            "unsure",
            "NotEnded",
            "The client on a did not end within 80 s.",
        ),
        (
            FakePods(errors={"create": [StatusError(403, "exceeded quota: pods")]}),
            "unsure",
            "PodRejected",
            "The server for b was not created: the API server answered 403: exceeded quota: pods",
        ),
        (
            FakePods(errors={"log": [StatusError(500, "no kubelet")] * 2}),
            "unsure",
            "LogUnreadable",
            "The log of the client on a could not be read: the API server answered 500: no kubelet",
        ),
        (FakePods(), "unsure", "NoResult", "The pods ended, but printed no output"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isalpha() else None,
)
def test_pods_that_do_not_measure(pods: FakePods, level: str, code: str, reason: str) -> None:
    """Each has a code, and a sentence that names the end and the node."""
    result = only(pods)
    assert (result.finding.level, result.finding.code) == (level, code)
    assert result.finding.text.startswith(reason)
    assert result.finding.remedy


@pytest.mark.parametrize("role", ["server", "client"])
def test_a_pod_that_somebody_deletes(role: str) -> None:
    """The pair ends."""
    result = only(FakePods(vanishes=lambda pod: role_of(pod) == role))
    node = {"server": "b", "client": "a"}[role]
    assert (result.finding.level, result.finding.code) == ("unsure", "PodGone")
    assert result.finding.text == f"The {role} on {node} was deleted during the run."


def test_a_server_whose_log_is_lost() -> None:
    """The measurement of the client counts."""
    pods = FakePods(logs=logs(client_log()))
    pods.errors["log"] = [StatusError(404, "gone"), None]
    report = FakeEnvironment(pods).run(plan_of()).report
    assert [result.finding.code for result in report.pairs[0].results] == ["AtRate", "AtRate"]


def test_a_server_that_is_killed_for_memory_meanwhile() -> None:
    """It is the cause of the client's result."""
    server = [running(), running(ready=True), ended_status(137, "OOMKilled")]
    result = only(FakePods(stories(server), logs(client_log())))
    assert (result.finding.level, result.finding.code, result.layer) == (
        "error",
        "OOMKilled",
        "memory",
    )
    assert result.finding.text.startswith("The server on b was killed.")


@pytest.mark.parametrize(
    ("rdma", "code"), [(None, "NotCalled"), ("no", "NoRdma")], ids=["not called", "no RDMA"]
)
@pytest.mark.parametrize("problem", [LABELS, None], ids=["explained", "not explained"])
def test_pods_without_rdma_end_the_run(
    rdma: str | None, code: str, problem: Finding | None
) -> None:
    """Other pods would fail as well: a single pod is created, and the finding has the reason."""
    pods = FakePods(rdma=rdma)
    run = FakeEnvironment(pods, problem=problem).run(plan_of(["a", "b", "c"]))
    assert len(pods.created) == 1
    (finding,) = run.report.findings
    assert run.report.pairs == ()
    assert (finding.level, finding.code) == ("error", problem.code if problem else code)
    assert finding.location == Location()
    assert finding.text
    assert finding.remedy


def test_a_status_that_is_not_understood() -> None:
    """It counts as the webhook's: a newer version may have written it."""
    pods = FakePods(logs=logs(client_log()), rdma="perhaps")
    assert FakeEnvironment(pods).run(plan_of()).report.pairs[0].results[0].finding.code == "AtRate"


def test_a_right_that_is_lacking_ends_the_run() -> None:
    """The error has the API server's message, which names the right."""
    message = 'pods is forbidden: User "x" cannot create resource "pods" in API group ""'
    pods = FakePods(errors={"create": [StatusError(403, message)]})
    with pytest.raises(StatusError, match="cannot create resource"):
        FakeEnvironment(pods).run(plan_of())


@pytest.mark.parametrize("request_", ["create", "list", "delete", "log"])
@pytest.mark.parametrize(
    "error", [ClusterError("timed out"), StatusError(503, "busy")], ids=["silent", "busy"]
)
def test_an_api_server_that_is_silent_for_a_while(request_: str, error: Exception) -> None:
    """The request is repeated, and the run continues."""
    pods = FakePods(logs=logs(client_log()), errors={request_: [error] * 20})
    results = FakeEnvironment(pods).run(plan_of()).report.pairs[0].results
    assert [result.finding.code for result in results] == ["AtRate", "AtRate"]


@pytest.mark.parametrize("request_", ["create", "list", "delete"])
def test_an_api_server_that_stays_silent(request_: str) -> None:
    """The run ends after a minute."""
    pods = FakePods(logs=logs(client_log()), errors={request_: [ClusterError("timed out")] * 500})
    environment = FakeEnvironment(pods)
    with pytest.raises(ClusterError, match="timed out"):
        environment.run(plan_of())
    assert 60 <= environment.time < 80


@pytest.mark.parametrize("pauses", range(12), ids="after {} pauses".format)
def test_an_interruption(pauses: int) -> None:
    """At any time, the results remain, the finding counts them, and all pods are deleted."""
    pods = FakePods(logs=logs(client_log()))
    environment = FakeEnvironment(pods, ends_after=pauses)
    run = environment.run(plan_of(["a", "b", "c"]))
    (finding,) = run.report.findings
    done = len(run.report.pairs)
    assert (finding.level, finding.code) == ("unsure", "Interrupted")
    assert finding.text == f"The run was interrupted after {done} of 3 pairs."
    before = [*pods.pods]
    removed = remove_pods(
        pods, run_selector("verify-0123abcd"), environment.wait_for_end, lambda: environment.time
    )
    assert [pod.metadata.name for pod in removed] == before
    assert not pods.pods


def test_an_interruption_while_the_api_server_is_silent() -> None:
    """The run does not wait a minute for it."""
    pods = FakePods(errors={"list": [ClusterError("timed out")] * 500})
    environment = FakeEnvironment(pods, ends_after=3)
    with pytest.raises(ClusterError, match="timed out"):
        environment.run(plan_of())
    assert environment.time < 10
