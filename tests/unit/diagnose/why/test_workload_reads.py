"""The pods of a controller, and the intermediate objects."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.why.pods import event
from tests.unit.diagnose.why.test_collector import LAB, FakeCluster, listed
from webhook.diagnose.why.collector import NoPodError
from webhook.diagnose.why.workload_kinds import KINDS, kinds_of
from webhook.diagnose.why.workload_reads import Workload, WorkloadReads
from webhook.errors import ClusterError
from webhook.kube.api import Query, StatusError
from webhook.preview.workloads.controllers import CONTROLLERS

APPS = "/apis/apps/v1/namespaces/lab"


def owned(name: str, *owners: str, created: str = "") -> dict[str, Any]:
    """Return an object with this name as its UID, and its owners' UIDs."""
    references = [{"uid": owner, "controller": True} for owner in owners]
    metadata = {"name": name, "uid": name, "creationTimestamp": created}
    return {"metadata": {**metadata, "ownerReferences": references}}


def deployment(*pods: dict[str, Any]) -> dict[str, Any]:
    """Return the answers about a Deployment with two ReplicaSets, and pods."""
    return {
        f"{APPS}/deployments/d": owned("d"),
        f"{APPS}/replicasets": listed(
            owned("d-1", "d", created="1"), owned("d-2", "d", created="2"), owned("e-1", "e")
        ),
        f"{LAB}/pods": listed(*pods),
        f"{LAB}/events": listed(
            event("B", "x", "ReplicaSet", "d-1", lastTimestamp="2"),
            event("A", "x", "Deployment", "d", lastTimestamp="1"),
            event("C", "x", "ReplicaSet", "e-1"),
            event("D", "x", "Pod", "d"),
        ),
    }


def read(answers: dict[str, Any], kind: str = "deploy", name: str = "d") -> Workload:
    """Read a controller."""
    return WorkloadReads(FakeCluster(answers), "lab").of(kinds_of(kind), name)


def test_pods_through_the_objects_between() -> None:
    """Those of other controllers are left out; the newest of each owner comes first."""
    pods = (
        owned("old-9", "d-1", created="1"),
        owned("new-10", "d-2", created="3"),
        owned("new-9", "d-2", created="3"),
        owned("stranger", "e-1", created="9"),
        owned("orphan", created="9"),
    )
    workload = read(deployment(*pods))
    assert workload.pods == ("new-9", "old-9", "new-10")
    assert [child.metadata.name for child in workload.intermediates] == ["d-2", "d-1"]
    assert workload.controller.title == "Deployment d"
    assert (workload.read_failures, workload.namespace, workload.newest) == ((), "lab", "3")


def test_events_where_there_are_no_pods() -> None:
    """They are about the controller and the intermediate objects, oldest first.

    An Event about an earlier object with the same name is left out.
    """
    answers = deployment()
    involved = {"kind": "Deployment", "name": "d", "uid": "of-an-earlier-one"}
    answers[f"{LAB}/events"]["items"].append(event("E", "x", involvedObject=involved))
    workload = read(answers)
    assert [warning.reason for warning in workload.events] == ["A", "B"]


def test_quotas_where_there_are_no_pods() -> None:
    """They are read for a controller without pods only."""
    quotas = {f"{LAB}/resourcequotas": listed(owned("q")), LAB: owned("lab")}
    assert [item.metadata.name for item in read(deployment() | quotas).quotas] == ["q"]
    workload = read(deployment() | {f"{LAB}/resourcequotas": 403, LAB: owned("lab")})
    assert [failure.subject for failure in workload.read_failures] == [
        "resourcequotas of namespace lab"
    ]
    assert read(deployment(owned("p", "d")) | quotas).quotas == ()


def test_the_namespace_where_there_are_no_pods() -> None:
    """It may be the reason; nobody needs the right to read it."""
    workload = read(deployment() | {LAB: owned("lab")})
    assert workload.namespace_object is not None
    assert workload.namespace_object.metadata.name == "lab"
    refused = read(deployment() | {LAB: 403, f"{LAB}/resourcequotas": listed()})
    assert refused.namespace_object is None
    assert [failure.subject for failure in refused.read_failures] == ["namespace lab"]
    assert read(deployment(owned("p", "d")) | {LAB: owned("lab")}).namespace_object is None


def test_pods_that_are_not_ready() -> None:
    """They are named in natural order, without those of other controllers."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    pods = (
        owned("p-10", "d"),
        {**owned("p-9", "d"), "status": {"conditions": []}},
        {**owned("p-8", "d"), "status": ready},
        owned("q", "e"),
    )
    assert read(deployment(*pods)).unready == ("p-9", "p-10")


def test_without_the_rights_for_the_rest() -> None:
    """What is missing is recorded, and the pods are still read."""
    answers = deployment(owned("p", "d"))
    answers[f"{APPS}/replicasets"] = 403
    workload = read(answers)
    assert workload.pods == ("p",)
    assert [failure.subject for failure in workload.read_failures] == [
        "replicasets of namespace lab"
    ]


def test_owners_in_a_circle() -> None:
    """They end."""
    answers = deployment(owned("p", "p", "d-1", "d"))
    answers[f"{APPS}/replicasets"] = listed(owned("d-1", "d-2", "d"), owned("d-2", "d-1"))
    assert read(answers).pods == ("p",)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({f"{APPS}/deployments/d": 403}, "you do not have the right to read Deployment d"),
        (
            {f"{APPS}/deployments/d": StatusError(404, 'deployments.apps "d" not found')},
            "there is no Deployment d in namespace lab; to list them: kubectl get deployments",
        ),
        ({f"{APPS}/deployments/d": 404}, "the cluster does not serve the kind Deployment"),
        ({f"{LAB}/pods": 403}, "you do not have the right to list the pods of lab"),
    ],
)
def test_what_cannot_be_read(changes: dict[str, Any], says: str) -> None:
    """The error names the right or the object."""
    with pytest.raises(NoPodError, match=says.replace("(", r"\(")):
        read({**deployment(), **changes})


@pytest.mark.parametrize("path", [f"{APPS}/deployments/d", f"{LAB}/pods"])
def test_another_error(path: str) -> None:
    """It ends the command as everywhere."""
    with pytest.raises(ClusterError, match="the API server answered 500: no"):
        read({**deployment(), path: 500})


def test_the_version_that_is_served() -> None:
    """An MPIJob has several; a version without the kind answers 404 without the name."""
    path = "/apis/kubeflow.org/v2beta1/namespaces/lab/mpijobs/m"
    answers = {
        path: owned("m"),
        f"{LAB}/pods": listed(owned("w", "m"), owned("l", "j")),
        "/apis/batch/v1/namespaces/lab/jobs": listed(owned("j", "m")),
    }
    workload = read(answers, "mpijob", "m")
    assert set(workload.pods) == {"w", "l"}
    assert workload.controller.manifest["apiVersion"] == "kubeflow.org/v2beta1"


@pytest.mark.parametrize(
    ("word", "versions"),
    [
        ("deploy", {"apps/v1"}),
        ("Deployments.apps", {"apps/v1"}),
        ("sts", {"apps/v1"}),
        ("rc", {"v1"}),
        ("lws", {"leaderworkerset.x-k8s.io/v1"}),
        ("mpijob.v2beta1.kubeflow.org", {"kubeflow.org/v2beta1"}),
        ("pytorchjob", {"kubeflow.org/v1"}),
        ("job.apps", set()),
        ("pod", set()),
        ("", set()),
    ],
)
def test_words_for_kinds(word: str, versions: set[str]) -> None:
    """As kubectl reads them."""
    assert {kind.api_version for kind in kinds_of(word)} == versions


def test_each_controller_of_the_table_has_a_word() -> None:
    """`KIND/NAME` works for every kind that a preview knows, stable versions first."""
    written = {f"{kind.api_version} {kind.kind}" for kind in KINDS}
    known = {kind for controller in CONTROLLERS for kind in controller.kinds}
    assert known - written == {"v1 Pod", "v1 PodTemplate"}
    versions = [kind.api_version for kind in kinds_of("raycluster")]
    assert versions == ["ray.io/v1", "ray.io/v1alpha1"]


def test_queries_of_the_reads() -> None:
    """Only warnings are read, and with pods as well: the controller may lack others."""
    api = FakeCluster(deployment())
    WorkloadReads(api, "lab").of(kinds_of("deploy"), "d")
    events: list[Query] = [query for path, query in api.asked if path.endswith("/events")]
    assert [query["fieldSelector"] for query in events] == ["type=Warning"]
    workload = read(deployment(owned("p", "d")))
    assert [warning.reason for warning in workload.events] == ["A", "B"]
