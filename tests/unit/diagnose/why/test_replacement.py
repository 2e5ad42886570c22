"""How a corrected template reaches a pod: what keeps its controller from replacing it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.why.pods import OWNED, Item, job, pod_in_cluster
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.replacement import (
    has_old_template,
    replacement_obstacle,
    replacement_remedy,
)
from webhook.kube.objects import KubernetesObject, PodRecord

READY = [{"type": "Ready", "status": "True"}]
PATCH = (
    "`kubectl patch statefulset a -n lab --patch "
    """'{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}'`"""
)
CONTROLLER = [{"kind": "LeaderWorkerSet", "name": "l", "controller": True}]


def owner(kind: str, *, metadata: Item | None = None, **fields: Any) -> KubernetesObject:
    """Return a controller with the name `a`."""
    identity = {"name": "a", "namespace": "lab", **(metadata or {})}
    return KubernetesObject.read({"kind": kind, "metadata": identity, **fields})


def evidence(*owners: KubernetesObject, labels: Item | None = None, **pod: Any) -> PodEvidence:
    """Return a pod `train-0` that is ready, with its owners."""
    state = {"conditions": READY, **pod}
    manifest = pod_in_cluster(
        metadata={**OWNED, "labels": labels or {}, **state.pop("metadata", {})}
    )
    manifest["status"].update(state)
    return PodEvidence(pod=PodRecord.read(manifest), owners=owners)


def partitioned(partition: object, start: int = 0, **fields: Any) -> KubernetesObject:
    """Return a StatefulSet that updates its pods from an ordinal on."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    spec = {"updateStrategy": strategy, "ordinals": {"start": start}}
    return owner("StatefulSet", spec=spec, **fields)


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_pods_that_people_delete(kind: str) -> None:
    """With OnDelete, no pod is replaced before it is deleted."""
    controller = owner(kind, spec={"updateStrategy": {"type": "OnDelete"}})
    obstacle = replacement_obstacle(controller, evidence(controller))
    assert obstacle is not None
    assert obstacle.cause == f"the updateStrategy of {kind} a is OnDelete"
    assert obstacle.step == "delete the pod: `kubectl delete pod train-0 -n lab`"
    remedy = (
        "Delete the pod: `kubectl delete pod train-0 -n lab`. The "
        f"{kind} then creates it from its present template."
    )
    assert obstacle.remedy == replacement_remedy(controller, evidence(controller)) == remedy


def test_a_partition() -> None:
    """A pod below it is created from the old template, so the partition must go first."""
    obstacle = replacement_obstacle(partitioned(1), evidence())
    assert obstacle is not None
    assert obstacle.cause == "updateStrategy.rollingUpdate.partition of StatefulSet a is 1"
    assert obstacle.remedy == (
        f"Set the partition to 0: {PATCH}. The StatefulSet then creates the pod from its present "
        "template."
    )
    unready = replacement_obstacle(partitioned(1), evidence(conditions=[]))
    assert unready is not None
    assert unready.step == (
        f"set the partition to 0: {PATCH}. Then delete the pod: `kubectl delete pod train-0 -n lab`"
    )


def test_a_partition_that_another_controller_sets() -> None:
    """It would undo a change of the partition."""
    obstacle = replacement_obstacle(
        partitioned(1, metadata={"ownerReferences": CONTROLLER}), evidence()
    )
    assert obstacle is not None
    assert obstacle.remedy == (
        "Wait until LeaderWorkerSet l, which sets the partition, has rolled out its template."
    )


@pytest.mark.parametrize(
    ("name", "partition", "start", "is_held"),
    [
        ("a-0", 0, 0, False),
        ("a-0", 1, 0, True),
        ("a-1", 1, 0, False),
        ("a-10", 11, 0, True),
        ("a-10", 10, 0, False),
        ("a-5", 0, 5, False),
        ("a-5", 1, 5, True),
        ("a-6", 1, 5, False),
        ("a-0", "1", 0, False),
        ("a", 1, 0, False),
        ("a-x", 1, 0, False),
        ("a-1234567890", 9999999999, 0, False),
        ("a-" + "1" * 5000, 1, 0, False),
    ],
)
def test_ordinals_below_a_partition(
    name: str, partition: object, start: int, is_held: bool
) -> None:
    """The partition counts from the first ordinal of the StatefulSet."""
    pod = evidence(metadata={"name": name})
    assert (replacement_obstacle(partitioned(partition, start), pod) is not None) is is_held


def test_a_paused_deployment() -> None:
    """It replaces no pods until somebody resumes it."""
    controller = owner("Deployment", spec={"paused": True})
    assert replacement_remedy(controller, evidence()) == (
        "Resume it: `kubectl rollout resume deployment/a -n lab`. The Deployment then replaces the "
        "pod."
    )
    obstacle = replacement_obstacle(controller, evidence())
    assert obstacle is not None
    assert obstacle.cause == "Deployment a is paused"


def test_a_cron_job_that_allows_one_job() -> None:
    """While its Job runs, no other starts."""
    controller = owner("CronJob", spec={"concurrencyPolicy": "Forbid"})
    running = KubernetesObject.read(job())
    obstacle = replacement_obstacle(controller, evidence(running, controller))
    assert obstacle is not None
    assert obstacle.cause == "the concurrencyPolicy of CronJob a is Forbid, and Job train runs"
    assert obstacle.remedy == (
        "Delete that Job: `kubectl delete job train -n lab`. The CronJob then starts the next one, "
        "with its present template, when it is due."
    )
    for end in ("Complete", "Failed"):
        conditions = {"conditions": [{"type": end, "status": "True"}]}
        ended = KubernetesObject.read({**job(), "status": conditions})
        assert replacement_obstacle(controller, evidence(ended, controller)) is None
    suspended = {"conditions": [{"type": "Complete", "status": "False"}]}
    still = KubernetesObject.read({**job(), "status": suspended})
    assert replacement_obstacle(controller, evidence(still, controller)) == obstacle
    assert replacement_obstacle(controller, evidence(controller)) is None
    allowing = owner("CronJob", spec={"concurrencyPolicy": "Replace"})
    assert replacement_obstacle(allowing, evidence(running, allowing)) is None


def test_a_suspended_cron_job() -> None:
    """Its next Job never comes, so people start one."""
    controller = owner("CronJob", spec={"suspend": True, "concurrencyPolicy": "Forbid"})
    running = KubernetesObject.read(job())
    obstacle = replacement_obstacle(controller, evidence(running, controller))
    assert obstacle is not None
    assert obstacle.cause == "CronJob a is suspended"
    assert replacement_remedy(controller, evidence(controller)) == obstacle.remedy
    assert obstacle.remedy == (
        "Start a Job: `kubectl create job --from=cronjob/a a-again -n lab`. It has the present "
        "template."
    )


@pytest.mark.parametrize(
    "controller",
    [
        owner("StatefulSet", spec={"updateStrategy": {"type": "RollingUpdate"}}),
        owner("DaemonSet"),
        owner("DaemonSet", spec={"updateStrategy": {"rollingUpdate": {"partition": 9}}}),
        owner("Deployment", spec={"paused": "true", "updateStrategy": {"type": "OnDelete"}}),
        owner("Job", spec={"paused": True, "concurrencyPolicy": "Forbid"}),
        owner("CronJob", spec=5, status=5),
    ],
    ids=str,
)
def test_controllers_that_nothing_holds(controller: KubernetesObject) -> None:
    """They replace the pod by themselves, or never do."""
    assert (
        replacement_obstacle(controller, evidence(KubernetesObject.read(job()), controller)) is None
    )


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("CronJob", "Wait for the next Job of CronJob a."),
        (
            "Deployment",
            (
                "Wait until the Deployment replaces the pod: `kubectl rollout status deployment/a "
                "-n lab`."
            ),
        ),
        (
            "StatefulSet",
            (
                "Wait until the StatefulSet replaces the pod: `kubectl rollout status "
                "statefulset/a -n lab`. If it does not, delete the pod: "
                "`kubectl delete pod train-0 -n lab`."
            ),
        ),
    ],
)
def test_a_rollout_that_nothing_holds(kind: str, remedy: str) -> None:
    """A rollout may wait for a pod that is never ready; then to delete that pod helps."""
    assert replacement_remedy(owner(kind), evidence()) == remedy


def test_names_in_commands() -> None:
    """They are quoted."""
    controller = owner("StatefulSet", metadata={"name": "a;b"})
    remedy = replacement_remedy(controller, evidence(metadata={"name": "c;d"}))
    assert "status 'statefulset/a;b' -n lab`." in remedy
    assert "delete pod 'c;d' -n lab`." in remedy


@pytest.mark.parametrize(
    ("of_pod", "of_set", "is_old"),
    [("a-1", "a-2", True), ("a-1", "a-1", False), ("", "a-2", False), ("a-1", "", False)],
)
def test_the_revision_of_a_stateful_set(of_pod: str, of_set: str, is_old: bool) -> None:
    """A pod carries the name of its revision, and the status that of the present one."""
    controller = owner("StatefulSet", status={"updateRevision": of_set})
    labels = {"controller-revision-hash": of_pod}
    assert has_old_template(evidence(controller, labels=labels)) is is_old
    above = owner("LeaderWorkerSet")
    assert has_old_template(evidence(controller, above, labels=labels)) is is_old


def daemon_set(
    generation: object, observed: int = 2, current: int = 2, updated: int = 1
) -> KubernetesObject:
    """Return a DaemonSet with the number of its template, which is updating its pods."""
    annotations = {"deprecated.daemonset.template.generation": generation}
    status = {
        "observedGeneration": observed,
        "currentNumberScheduled": current,
        "updatedNumberScheduled": updated,
    }
    metadata = {"generation": 2, "annotations": annotations}
    return owner("DaemonSet", metadata=metadata, status=status)


@pytest.mark.parametrize(
    ("controller", "is_old"),
    [
        (daemon_set("2"), True),
        (daemon_set("1"), False),
        (daemon_set(None), False),
        # The template is what it was before: the controller takes all pods for up to date.
        (daemon_set("2", updated=2), False),
        (daemon_set("2", updated=3), False),
        (daemon_set("2", observed=1, updated=2), True),
        (daemon_set("2", current=0, updated=0), True),
    ],
    ids=str,
)
def test_the_template_of_a_daemon_set(controller: KubernetesObject, is_old: bool) -> None:
    """The API server counts the templates, and a pod carries the number of its own."""
    labels = {"pod-template-generation": "1"}
    assert has_old_template(evidence(controller, labels=labels)) is is_old
    assert not has_old_template(evidence(controller))


def test_controllers_whose_templates_do_not_change() -> None:
    """A ReplicaSet and a Job keep theirs; without the controller, nothing is known."""
    labels = {"controller-revision-hash": "a-1", "pod-template-generation": "1"}
    assert not has_old_template(evidence(labels=labels))
    metadata = {"annotations": {"deprecated.daemonset.template.generation": "2"}}
    for kind in ("ReplicaSet", "Job"):
        controller = owner(kind, status={"updateRevision": "a-2"}, metadata=metadata)
        assert not has_old_template(evidence(controller, labels=labels))
