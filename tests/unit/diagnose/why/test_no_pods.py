"""Why a controller has no pods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.unit.diagnose.why.pods import chapter_findings, event
from webhook.diagnose.why.explanation import Explanation
from webhook.diagnose.why.no_pods import explain_without_pods
from webhook.diagnose.why.workload_reads import Workload
from webhook.kube.cluster_reads import ReadFailure
from webhook.kube.objects import Event, KubernetesObject
from webhook.model.finding import Finding

DENIED = 'admission webhook "pods.rdma.lab" denied the request: no fabric nowhere'
QUOTA = (
    'pods "a-b" is forbidden: exceeded quota: nics, requested: requests.rdma/a=1, used: '
    "requests.rdma/a=4, limited: requests.rdma/a=4"
)


def controller(kind: str, name: str = "a", **fields: Any) -> KubernetesObject:
    """Return a controller."""
    metadata = {"name": name, "namespace": "lab"}
    return KubernetesObject.read({"kind": kind, "metadata": metadata, **fields})


def without_pods(
    kind: str,
    *between: KubernetesObject,
    events: Iterable[dict[str, Any]] = (),
    unread: tuple[ReadFailure, ...] = (),
    **fields: Any,
) -> Explanation:
    """Explain a controller that has no pods."""
    about = tuple(map(Event.model_validate, events))
    subject = controller(kind, **fields)
    return explain_without_pods(Workload("lab", subject, between, events=about, unread=unread))


def now(kind: str, *between: KubernetesObject, **fields: Any) -> list[Finding]:
    """Return the findings, the answer first; the controller is never well."""
    explanation = without_pods(kind, *between, **fields)
    assert (explanation.rdma, explanation.well, explanation.pod) == ("no", False, "")
    assert explanation.owners == (f"{kind} a",)
    return [explanation.answer, *chapter_findings(explanation, "podStatus")]


def failing(message: str) -> dict[str, Any]:
    """Return the status of a controller that cannot create pods."""
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
    return {"conditions": [{**condition, "message": message}]}


def test_a_quota_on_the_replica_set() -> None:
    """The Event is on the ReplicaSet, and the condition on both; one finding names the quota."""
    replicas = controller("ReplicaSet", "a-1", status=failing(QUOTA))
    events = [
        event("FailedCreate", "old", "ReplicaSet", "a-1"),
        event("FailedCreate", QUOTA, "ReplicaSet", "a-1"),
        event("Other", "x", "ReplicaSet", "a-1"),
    ]
    for evidence in ({"events": events}, {}, {"status": failing(QUOTA)}):
        (finding,) = now("Deployment", replicas, **evidence)
        assert (finding.code, finding.level) == ("QuotaExceeded", "error")
        assert finding.text == (
            "Deployment a has no pods: ReplicaSet a-1 could not create one, since the "
            "ResourceQuota nics is used up: requested: requests.rdma/a=1, used: "
            "requests.rdma/a=4, limited: requests.rdma/a=4."
        )
        assert "kubectl describe quota nics -n lab" in finding.remedy


def test_another_refusal() -> None:
    """It is quoted."""
    events = [event("FailedCreate", DENIED, "Job", "a")]
    (finding,) = now("Job", events=events, status=failing("older"))
    assert finding.code == "FailedCreate"
    assert finding.text == f"Job a has no pods: Job a could not create one: {DENIED}"


@pytest.mark.parametrize(
    ("kind", "fields", "code", "says"),
    [
        (
            "Job",
            {"spec": {"suspend": True}},
            "Suspended",
            "Job a is suspended (spec.",
        ),
        ("Deployment", {"spec": {"replicas": 0}}, "ScaledToZero", "asks for none (replicas: 0)"),
        (
            "DaemonSet",
            {"status": {"desiredNumberScheduled": 0}},
            "ScaledToZero",
            "no node matches its nodeSelector",
        ),
        (
            "Job",
            {"status": {"conditions": [{"type": "Complete", "status": "True"}]}},
            "Ended",
            "Job a has no pods: Job a is Complete.",
        ),
        (
            "Job",
            {
                "status": {
                    "conditions": [{"type": "Failed", "status": "True", "message": "too many"}]
                }
            },
            "Ended",
            "Job a is Failed: too many.",
        ),
        ("Job", {}, "NoPods", "Job a has no pods, and reports no reason."),
        ("Job", {"spec": {"suspend": False}}, "NoPods", "reports no reason"),
        ("DaemonSet", {}, "NoPods", "reports no reason"),
        ("Deployment", {"spec": {"replicas": 1}}, "NoPods", "reports no reason"),
        ("Job", {"spec": "x", "status": []}, "NoPods", "reports no reason"),
        (
            "Job",
            {"status": {"conditions": [{"type": "Complete", "status": "False"}]}},
            "NoPods",
            "reports no reason",
        ),
        ("Job", {"status": failing("")}, "NoPods", "reports no reason"),
    ],
    ids=str,
)
def test_its_own_state(kind: str, fields: dict[str, Any], code: str, says: str) -> None:
    """The controller itself shows why it creates no pods."""
    (finding,) = now(kind, **fields)
    assert (finding.code, finding.level) == (code, "error")
    assert says in finding.text


def test_the_newest_object_between() -> None:
    """The newest Job of a CronJob counts; an old ReplicaSet has no replicas by design."""
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    newest, older = controller("Job", "a-2", status=done), controller("Job", "a-1", status=done)
    (finding,) = now("CronJob", newest, older)
    assert finding.text == "CronJob a has no pods: Job a-2 is Complete."
    old = controller("ReplicaSet", "a-1", spec={"replicas": 0})
    (finding,) = now("Deployment", old)
    assert finding.code == "NoPods"


def test_reads_that_failed() -> None:
    """Each has a line."""
    explanation = without_pods("Job", unread=(ReadFailure("events", 403, "no"),))
    (finding,) = chapter_findings(explanation, "unread")
    assert finding.text == "You do not have the right to read events."
