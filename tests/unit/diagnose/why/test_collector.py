"""What is read of a cluster, with all rights and with few."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.builders import V100, fabrics
from tests.unit.diagnose.why.pods import OWNED, configuration, event, job, live, namespace, unseen
from webhook.diagnose.tools.causes import TRANSPORTS
from webhook.diagnose.why.collector import (
    HEAD,
    SCRIPT,
    CollectOptions,
    Collector,
    NoPodError,
    read_processes,
)
from webhook.diagnose.why.evidence import (
    ClaimFailure,
    ContainerProcesses,
    PinnedProcess,
    PodEvidence,
)
from webhook.errors import ClusterError
from webhook.kube.api import Query, RefusedError
from webhook.kube.objects import KubernetesObject, Pod
from webhook.model.claims import ClaimFacts
from webhook.model.fabric import DeviceClaim

LAB = "/api/v1/namespaces/lab"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


class FakeCluster:
    """Answers with these objects or status codes, 404 for all else, and notes what was asked.

    It stands for an API server over HTTP, which the integration tests and tests/e2e have.
    """

    def __init__(self, answers: dict[str, Any], said: Any = "hidden 0", log: Any = "") -> None:
        self.answers = answers
        self.asked: list[tuple[str, Query]] = []
        self.ran: list[tuple[str, str, str]] = []
        self._said, self._log = said, log

    def get(self, path: str, query: Query) -> dict[str, Any]:
        """Return an object."""
        self.asked.append((path, query))
        found = self.answers.get(path, 404)
        if callable(found):
            found = found(query)
        if isinstance(found, int):
            raise RefusedError(found, "no")
        if isinstance(found, ClusterError):
            raise found
        return dict(found)

    def log(self, path: str, query: Query, most: int) -> str:
        """Return a log."""
        self.asked.append((path, query))
        assert most == HEAD
        found = self._log(query) if callable(self._log) else self._log
        if isinstance(found, ClusterError):
            raise found
        return str(found)

    def run(self, namespace: str, pod: str, container: str, command: list[str]) -> str:
        """Return what the command prints."""
        self.ran.append((namespace, pod, container))
        assert command == ["/bin/sh", "-c", SCRIPT]
        if isinstance(self._said, ClusterError):
            raise self._said
        return str(self._said)


def listed(*items: Any, after: str = "") -> dict[str, Any]:
    """Write a page of a list as the API returns it: without the kinds of its items."""
    bare = [{key: one[key] for key in one if key != "kind"} for one in items]
    return {"metadata": {"resourceVersion": "1", "continue": after}, "items": bare}


BATCH = {
    "resources": [
        {"name": "jobs/status", "kind": "Job", "namespaced": True},
        {"name": "jobs", "kind": "Job", "namespaced": True},
    ]
}


def everything(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the answers to a reader with all rights."""
    return {
        f"{LAB}/pods/train-0": {key: pod[key] for key in pod if key != "kind"},
        LAB: namespace(),
        "/apis/batch/v1": BATCH,
        "/apis/batch/v1/namespaces/lab/jobs/train": job(),
        HOOKS: listed(configuration()),
        f"{LAB}/events": lambda query: listed(
            *(
                one
                for one in (event("A", "of pod"), event("B", "of job", "Job", "train"))
                if query["fieldSelector"].endswith(f".name={one['involvedObject']['name']}")
            )
        ),
        "/api/v1/nodes": listed(
            {"metadata": {"name": "n", "labels": {"a": "b"}, "uid": "u"}, "status": {"x": 1}}
        ),
    }


def collect(api: FakeCluster, **wanted: Any) -> PodEvidence:
    """Collect what is known about the pod."""
    return Collector(api, api, CollectOptions(**wanted)).collect("lab", "train-0")


def test_with_all_rights() -> None:
    """Namespace, webhooks, owner and events are read, and nothing is lacking."""
    pod = unseen(metadata=OWNED)
    found = collect(FakeCluster(everything(pod)))
    assert found.lacking == ()
    assert found.pod == Pod.read(pod)
    assert found.namespace == KubernetesObject.read(namespace())
    assert [owner.kind for owner in found.owners] == ["Job"]
    assert found.webhooks is not None
    assert [one.webhook.name for one in found.webhooks] == ["pods.rdma.lab"]
    assert found.events is not None
    assert [event.reason for event in found.events] == ["A", "B"]
    assert (found.nodes, found.processes, found.logs) == (None, None, None)


def test_with_the_right_to_read_pods_only() -> None:
    """What is lacking is said, one sentence each."""
    pod = unseen(metadata=OWNED, phase="Pending")
    api = FakeCluster(dict.fromkeys(everything(pod), 403) | {f"{LAB}/pods/train-0": pod})
    found = collect(api, logs=True)
    assert found.lacking == (
        "You do not have the right to read the kinds of batch/v1.",
        "You do not have the right to read namespace lab.",
        "You do not have the right to read mutatingwebhookconfigurations.",
        "You do not have the right to read the events of Pod train-0.",
        "You do not have the right to read nodes.",
    )
    assert (found.namespace, found.webhooks, found.events, found.nodes) == (None,) * 4
    assert found.owners == ()


def test_only_what_is_needed() -> None:
    """Of a pod that was seen and runs, neither namespace, webhooks nor nodes are read."""
    api = FakeCluster(everything(live()))
    assert collect(api).lacking == ()
    assert [path for path, _ in api.asked] == [f"{LAB}/pods/train-0", f"{LAB}/events"]


def test_for_what_would_be_decided() -> None:
    """With a fabrics file, all that a decision depends on is read, as for a preview."""
    answers = everything(live()) | {
        f"{LAB}/limitranges": listed(),
        f"{LAB}/resourcequotas": listed(
            {"metadata": {"name": "q", "namespace": "lab"}, "spec": {"hard": {"limits.memory": 1}}}
        ),
    }
    found = collect(FakeCluster(answers), fabrics=fabrics(V100))
    assert found.lacking == ()
    assert found.nodes is None
    assert list(found.facts.nodes) == ["n"]
    required = found.facts.namespace("lab").memory_limit_required
    assert required == "ResourceQuota q counts limits.memory"
    assert "node" not in str(found.facts.namespace("lab").claims)


def test_claims_count_where_a_fabric_has_them() -> None:
    """The namespace's templates and claims are read; nodes once, however many pods."""
    resource = "/apis/resource.k8s.io/v1/namespaces/lab"
    template = {"metadata": {"name": "nics", "namespace": "lab"}, "spec": {"spec": {}}}
    answers = everything(live(phase="Pending")) | {
        f"{resource}/resourceclaimtemplates": listed(template),
        f"{resource}/resourceclaims": listed(),
    }
    api = FakeCluster(answers)
    claimed = replace(V100, claims=(DeviceClaim(template="nics"),))
    collector = Collector(api, api, CollectOptions(fabrics=fabrics(claimed)))
    first, second = (collector.collect("lab", "train-0") for _ in range(2))
    assert first.facts.namespace("lab").claims == ClaimFacts(templates={"nics": {}}, complete=True)
    assert [path for path, _ in api.asked].count("/api/v1/nodes") == 1
    assert first.nodes == second.nodes != ()


def test_the_namespace_is_read_once() -> None:
    """Of a pod that the webhook has not seen, with a fabrics file."""
    api = FakeCluster(everything(unseen()))
    found = collect(api, fabrics=fabrics(V100))
    assert found.namespace == KubernetesObject.read({**namespace(), "kind": "Namespace"})
    assert [path for path, _ in api.asked].count(LAB) == 1


def test_nodes_of_a_pending_pod() -> None:
    """Of nodes, the few fields are kept that say what they offer."""
    node = {"metadata": {"name": "n", "uid": "u"}, "status": {"allocatable": {"rdma/x": "1"}}}
    answers = everything(live(phase="Pending")) | {"/api/v1/nodes": listed(node)}
    (found,) = collect(FakeCluster(answers)).nodes or ()
    assert found.model_dump() == {
        "metadata": {"name": "n"},
        "spec": {"unschedulable": False},
        "status": {"allocatable": {"rdma/x": "1"}, "conditions": ()},
    }


@pytest.mark.parametrize(
    ("node", "phase", "is_asked"),
    [("", "Pending", True), ("node-1", "Pending", False), ("", "Failed", False)],
)
def test_claims_of_a_pod_without_a_node(node: str, phase: str, is_asked: bool) -> None:
    """Whether each that it names exists; what is of a template, or cannot be read, counts as there.

    An API server without the version of the kind also answers 404, which says nothing of a claim;
    nor does the name in an answer with another code.
    """
    names = ("mine", "ending", "there", "of-others", "of-another-version", "mine")
    claims = [{"name": f"claim-{one}", "resourceClaimName": one} for one in names]
    made = {"name": "made", "resourceClaimTemplateName": "nics"}
    pod = live(phase=phase, spec={"nodeName": node, "resourceClaims": [*claims, made]})
    answers = {
        "mine": RefusedError(404, 'resourceclaims.resource.k8s.io "mine" not found'),
        "ending": {"metadata": {"name": "ending", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        "there": {"metadata": {"name": "there"}},
        "of-others": RefusedError(403, 'forbidden: RBAC: role "of-others" not found'),
        "of-another-version": RefusedError(404, "the server could not find the requested resource"),
    }
    path = "/apis/resource.k8s.io/v1/namespaces/lab/resourceclaims"
    api = FakeCluster({**everything(pod), **{f"{path}/{key}": answers[key] for key in answers}})
    found = collect(api)
    asked = [one for one, _ in api.asked if one.startswith(path)]
    missing = (ClaimFailure("mine"), ClaimFailure("ending", is_ending=True))
    assert found.claim_failures == (missing if is_asked else ())
    assert len(asked) == (5 if is_asked else 0)
    told = [one for one in found.lacking if "ResourceClaim" in one]
    forbidden = ["You do not have the right to read ResourceClaim of-others."]
    assert told == (forbidden if is_asked else [])


def test_pages() -> None:
    """A list is read to its end."""

    def page(query: Query) -> dict[str, Any]:
        assert query["limit"] == "500"
        if "continue" in query:
            return listed({"metadata": {"name": "b"}})
        return listed({"metadata": {"name": "a"}}, after="more")

    answers = everything(live(phase="Pending")) | {"/api/v1/nodes": page}
    found = collect(FakeCluster(answers))
    assert found.nodes is not None
    assert [node.metadata.name for node in found.nodes] == ["a", "b"]


def test_owners_of_owners() -> None:
    """The owner of the owner is read too; one that has gone ends the chain, and that is said."""
    above = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "set"}
    owned = job()
    owned["metadata"]["ownerReferences"] = [{**above, "controller": True}]
    answers = everything(live(metadata=OWNED)) | {
        "/apis/batch/v1/namespaces/lab/jobs/train": owned,
        "/apis/jobset.x-k8s.io/v1alpha2": {
            "resources": [{"name": "jobsets", "kind": "JobSet", "namespaced": True}]
        },
    }
    found = collect(FakeCluster(answers))
    assert [owner.kind for owner in found.owners] == ["Job"]
    assert found.lacking == ("JobSet set: no longer there.",)
    answers["/apis/jobset.x-k8s.io/v1alpha2/namespaces/lab/jobsets/set"] = {
        "metadata": {"name": "set"}
    }
    assert [owner.kind for owner in collect(FakeCluster(answers)).owners] == ["Job", "JobSet"]


def test_events_in_order() -> None:
    """The newest is last, whatever the API server's order and the form of their times."""
    events = [
        event("C", "", lastTimestamp="2026-11-22T10:00:03Z"),
        event("A", "", lastTimestamp=None, eventTime="2026-11-22T10:00:01.5Z"),
        event("B", "", lastTimestamp=None, metadata={"creationTimestamp": "2026-11-22T10:00:02Z"}),
    ]
    found = collect(FakeCluster(everything(live()) | {f"{LAB}/events": listed(*events)}))
    assert [event.reason for event in found.events or ()] == ["A", "B", "C"]


def test_a_node_is_no_owner() -> None:
    """The mirror pod of a static pod is owned by its node, which has no template."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "controller": True}
    pod = live(metadata={"ownerReferences": [owner]})
    answers = everything(pod) | {
        "/api/v1": {"resources": [{"name": "nodes", "kind": "Node", "namespaced": False}]}
    }
    found = collect(FakeCluster(answers))
    assert (found.owners, found.lacking) == ((), ())


def test_a_pod_that_is_not_there() -> None:
    """It is said how to list pods."""
    with pytest.raises(NoPodError) as caught:
        collect(FakeCluster({}))
    assert str(caught.value) == (
        "there is no pod train-0 in namespace lab; to list its pods: kubectl get pods -n lab"
    )


def test_a_pod_that_could_not_be_created() -> None:
    """Its controller's event says why."""
    failed = event("FailedCreate", "denied: no fabric", "Job", "train")
    other = event("FailedCreate", "another Job's", "Job", "other")
    with pytest.raises(NoPodError) as caught:
        collect(FakeCluster({f"{LAB}/events": listed(failed, other)}))
    assert str(caught.value) == (
        "there is no pod train-0 in namespace lab; Job train could not create a pod: denied: no "
        "fabric"
    )


def test_a_pod_that_may_not_be_read() -> None:
    """That right is needed."""
    with pytest.raises(NoPodError) as caught:
        collect(FakeCluster({f"{LAB}/pods/train-0": 403}))
    assert str(caught.value) == "you do not have the right to read pod train-0 in namespace lab"


def test_other_refusals() -> None:
    """An error of the API server is not taken for a missing pod, and does not end what follows."""
    with pytest.raises(RefusedError):
        collect(FakeCluster({f"{LAB}/pods/train-0": 500}))
    answers = everything(live()) | {f"{LAB}/events": ClusterError("it is silent")}
    assert collect(FakeCluster(answers)).lacking == ("The events of Pod train-0: it is silent.",)


def running(**more: Any) -> dict[str, Any]:
    """Make a pod with one container that runs, and one that has ended."""
    states = [
        {"name": "main", "state": {"running": {}}, "restartCount": more.pop("restarts", 0)},
        {"name": "done", "state": {"terminated": {"exitCode": 0}}},
    ]
    return live(containerStatuses=states, **more)


def test_processes_of_running_containers() -> None:
    """The script runs in each container that runs."""
    api = FakeCluster(everything(running()), said="process 7 2048 python3\nhidden 0\n")
    found = collect(api, processes=True)
    assert api.ran == [("lab", "train-0", "main")]
    assert found.processes == (ContainerProcesses("main", (PinnedProcess(7, "python3", 2048),)),)


def test_processes_that_may_not_be_read() -> None:
    """Why not is said of the container."""
    api = FakeCluster(everything(running()), said=ClusterError("Handshake status 403 Forbidden"))
    (found,) = collect(api, processes=True).processes or ()
    assert found.problem == (
        "Handshake status 403 Forbidden (this needs the right to pods/exec, and a shell in "
        "the image)"
    )


def test_processes_of_the_node() -> None:
    """With hostPID, nothing is run: other pods' processes would count."""
    api = FakeCluster(everything(running(spec={"hostPID": True})))
    (found,) = collect(api, processes=True).processes or ()
    assert "hostPID" in found.problem
    assert api.ran == []


@pytest.mark.parametrize(
    ("said", "pinned", "problem"),
    [
        ("process 7 0 my prog\nprocess 8 12 a\nhidden 0\n", [(7, "my prog", 0), (8, "a", 12)], ""),
        ("hidden 0\n", [], ""),
        ("hidden 3\n", [], "3 of its processes belong to another user and cannot be inspected"),
        ("process 8 12 a\nhidden 3\n", [(8, "a", 12)], ""),
        ("no-ls\n", [], "the image has no ls"),
        ("exec failed: no such file\n", [], "it answered 'exec failed: no such file'"),
        ("process x y z\nprocess 1\nhidden 0", [], ""),
    ],
)
def test_answers_of_the_script(said: str, pinned: list[Any], problem: str) -> None:
    """Processes with an open device, and why there may be others."""
    found = read_processes("main", said)
    assert list(map(tuple, found.pinned)) == pinned
    assert found.problem == problem


def test_the_script_runs() -> None:
    """A shell runs it to its end, and this process has no RDMA device open."""
    said = subprocess.run(["/bin/sh", "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert said.stderr == ""
    assert said.stdout.splitlines()[-1].startswith("hidden ")
    assert "process " not in said.stdout


def test_the_script_finds_who_has_a_device_open(tmp_path: Path) -> None:
    """A process is found by what it has open; this file stands for a device, which is not here."""
    device = tmp_path / "dev" / "infiniband" / "uverbs0"
    device.parent.mkdir(parents=True)
    with device.open("w"):
        said = subprocess.run(["/bin/sh", "-c", SCRIPT], capture_output=True, text=True, check=True)
    found = read_processes("main", said.stdout)
    assert [(one.pid, one.kibibytes) for one in found.pinned] == [(os.getpid(), 0)]
    assert found.pinned[0].name


def test_logs() -> None:
    """The log of each container is read, and that before a restart as well."""
    api = FakeCluster(
        everything(running(restarts=1)),
        log=lambda query: TRANSPORTS[1 if "previous" in query else 0].example,
    )
    found = collect(api, logs=True).logs or ()
    assert [(one.container, one.previous, one.findings.transport) for one in found] == [
        ("main", False, "yes"),
        ("main", True, "no"),
        ("done", False, "yes"),
    ]


def test_long_logs() -> None:
    """Of a log that is longer than what is read, the end is read as well."""

    def long(query: Query) -> str:
        return TRANSPORTS[1].example if "tailLines" in query else "x\n" * (HEAD // 2)

    (found, _) = collect(FakeCluster(everything(running()), log=long), logs=True).logs or ()
    assert found.findings.transport == "no"


def test_logs_that_may_not_be_read() -> None:
    """That is said once of each container."""
    api = FakeCluster(everything(running(restarts=1)), log=RefusedError(403, "no"))
    found = collect(api, logs=True)
    assert found.logs == ()
    assert found.lacking == (
        "You do not have the right to read the log of container main.",
        "You do not have the right to read the log of container done.",
    )
