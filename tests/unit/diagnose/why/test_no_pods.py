"""Why a controller has no pods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.unit.diagnose.why.pods import CREATED, EARLIER, LATER, chapter_findings, event
from webhook.admission.registration import NO_FABRICS_MESSAGE
from webhook.diagnose.why.explanation import Explanation
from webhook.diagnose.why.no_pods import explain_missing_pods, explain_without_pods
from webhook.diagnose.why.workload_reads import Workload
from webhook.kube.cluster_reads import ReadFailure
from webhook.kube.objects import Event, KubernetesObject
from webhook.model.finding import Finding

DENIED = 'admission webhook "pods.rdma.lab" denied the request: no fabric nowhere'
QUOTA = (
    'pods "a-b" is forbidden: exceeded quota: nics, requested: requests.rdma/a=1, used: '
    "requests.rdma/a=4, limited: requests.rdma/a=4"
)


SHOWN = "kubectl get services,endpointslices,pods"
SILENT = (
    'Internal error occurred: failed calling webhook "pods.rdma.lab": failed to call webhook: Post '
    '"https://rdma-webhook.rdma-system.svc:443/mutate?timeout=5s": dial tcp: connection refused'
)
VIOLATES = 'pods "a-b" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true'
TOO_MUCH = 'pods "a-b" is forbidden: maximum nvidia.com/v100 usage per Pod is 2, but limit is 4'


def controller(kind: str, name: str = "a", **fields: Any) -> KubernetesObject:
    """Return a controller."""
    metadata = {"name": name, "namespace": "lab"}
    return KubernetesObject.read({"kind": kind, "metadata": metadata, **fields})


def without_pods(
    kind: str,
    *intermediates: KubernetesObject,
    events: Iterable[dict[str, Any]] = (),
    read_failures: tuple[ReadFailure, ...] = (),
    **fields: Any,
) -> Explanation:
    """Explain a controller that has no pods."""
    about = tuple(map(Event.model_validate, events))
    subject = controller(kind, **fields)
    return explain_without_pods(
        Workload("lab", subject, intermediates, events=about, read_failures=read_failures)
    )


def now(kind: str, *intermediates: KubernetesObject, **fields: Any) -> list[Finding]:
    """Return the findings, the answer first; the controller is never well."""
    explanation = without_pods(kind, *intermediates, **fields)
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
            "Deployment a has no pods; ReplicaSet a-1 could not create one, since the "
            "ResourceQuota nics is used up: requested: requests.rdma/a=1, used: "
            "requests.rdma/a=4, limited: requests.rdma/a=4."
        )
        assert "kubectl describe quota nics -n lab" in finding.remedy


def refused(message: str, kind: str = "Job", **fields: Any) -> Finding:
    """Return the finding on a refusal of its pods."""
    (finding,) = now(kind, events=[event("FailedCreate", message, kind, "a")], **fields)
    assert finding.level == "error"
    assert finding.text.startswith(f"{kind} a has no pods; it could not create one")
    return finding


def test_another_refusal() -> None:
    """It is quoted. A Job must be created again, since its template cannot be changed."""
    finding = refused(DENIED, status=failing("older"))
    assert finding.code == "FailedCreate"
    assert finding.text == f"Job a has no pods; it could not create one: {DENIED}"
    assert finding.remedy == (
        "Correct the problem that the message reports. If that is in the pod template, "
        "delete Job a and create it again: a Job's template cannot be changed. Otherwise, the Job "
        "creates the pod automatically."
    )
    assert refused(DENIED, "StatefulSet").remedy == (
        "Correct the problem that the message reports. StatefulSet a then creates the "
        "pod automatically."
    )
    of_each_node = refused(DENIED, "DaemonSet").remedy
    assert "If that is the node, select others with nodeSelector" in of_each_node
    assert of_each_node.endswith("selects. DaemonSet a then creates the pod automatically.")


def test_the_template_of_a_copy() -> None:
    """The Job of a CronJob is not created again by people."""
    owner = {"kind": "CronJob", "name": "c", "controller": True}
    metadata = {"name": "a", "ownerReferences": [owner]}
    owned = controller("Job", metadata=metadata, status=failing(DENIED))
    finding = explain_without_pods(Workload("lab", owned)).answer
    assert finding.remedy.endswith("CronJob c then creates the pod automatically.")


@pytest.mark.parametrize(
    ("message", "subject", "command"),
    [
        (SILENT, "rdma-webhook", f": `{SHOWN} -n rdma-system`."),
        (
            'failed calling webhook "a.example": Post "https://a.b.svc:443/": EOF',
            "the webhook a.example",
            f": `{SHOWN} -n b`.",
        ),
        (
            'failed calling webhook "a.example": Post "https://10.0.0.1/": EOF',
            "the webhook a.example",
            ".",
        ),
        ('failed calling webhook "a.example": no', "the webhook a.example", "."),
    ],
)
def test_a_webhook_that_does_not_answer(message: str, subject: str, command: str) -> None:
    """Users can correct nothing then."""
    finding = refused(message)
    assert finding.code == "WebhookSilent"
    assert finding.text.endswith(f": {message}")
    removed = ""
    if subject != "rdma-webhook":
        removed = (
            " If that program was removed from the cluster, delete its webhook configuration, too: "
            "`kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations`."
        )
    assert finding.remedy == (
        f"The API server must call {subject}, and got no answer. Ask the cluster administrator to "
        f"check its Service and pods{command}{removed} Once the webhook answers, the controller "
        "creates the pod automatically."
    )


def test_a_webhook_without_fabrics() -> None:
    """It did answer: the message has the reason and the command."""
    problem = f"{NO_FABRICS_MESSAGE}there is no object; run `kubectl apply -f fabrics.yaml`"
    finding = refused(f'failed calling webhook "pods.rdma.lab": failed to call webhook: {problem}')
    assert finding.code == "FailedCreate"
    assert finding.text.endswith("run `kubectl apply -f fabrics.yaml`")


def test_pod_security() -> None:
    """To do what the message asks would cost the pod its IPC_LOCK."""
    finding = refused(VIOLATES)
    assert finding.code == "PodSecurityRefused"
    assert (
        f"since the namespace enforces the Pod Security level restricted: {VIOLATES}"
        in finding.text
    )
    assert "namespace lab pod-security.kubernetes.io/enforce=privileged`." in finding.remedy
    assert "meets the level restricted has no IPC_LOCK" in finding.remedy


@pytest.mark.parametrize(
    "message",
    [
        TOO_MUCH,
        "minimum cpu usage per Container is 1, but request is 0",
        "memory max limit to request ratio per Pod is 1",
    ],
)
def test_a_limit_range(message: str) -> None:
    """The message does not name it."""
    finding = refused(message)
    assert finding.code == "LimitRangeExceeded"
    assert f"since a LimitRange of the namespace does not allow it: {message}" in finding.text
    assert finding.remedy.startswith("See `kubectl describe limitrange -n lab`;")
    assert "delete Job a and create it again" in finding.remedy


def test_one_refusal_is_told_once() -> None:
    """The condition of a Deployment repeats that of its ReplicaSet, in other words."""
    replicas = controller("ReplicaSet", "a-1", status=failing("pods a-1-x: no"))
    events = [event("FailedCreate", "Error creating: pods a-1-y: no", "ReplicaSet", "a-1")]
    status = failing("pods a-1-z: no")
    (finding,) = now("Deployment", replicas, events=events, status=status)
    assert finding.text.endswith("; ReplicaSet a-1 could not create one: pods a-1-y: no")
    twin = event("FailedCreate", "pods a-1-y: no", "ReplicaSet", "a-2")
    (finding,) = now("Deployment", events=[*events, twin])
    assert "ReplicaSet a-2 could not" in finding.text


def with_pods(
    subject: KubernetesObject,
    *intermediates: KubernetesObject,
    events: Iterable[dict[str, Any]] = (),
) -> Explanation | None:
    """Explain why a controller with a pod, created at CREATED, cannot create more."""
    about = tuple(map(Event.model_validate, events))
    return explain_missing_pods(
        Workload("lab", subject, intermediates, ("a-0",), newest=CREATED, events=about)
    )


def test_a_controller_that_cannot_create_more_pods() -> None:
    """The condition of a ReplicaSet counts, or a newer Event about another kind."""
    for kind in ("ReplicaSet", "Deployment"):
        intermediates = [controller("ReplicaSet", "a-1", status=failing(QUOTA))]
        subject = controller(kind, status={} if kind == "Deployment" else failing(QUOTA))
        explanation = with_pods(subject, *(intermediates if kind == "Deployment" else []))
        assert explanation is not None
        assert (explanation.rdma, explanation.well, explanation.pod) == ("no", False, "")
        assert explanation.answer.code == "QuotaExceeded"
        refused = "it" if kind == "ReplicaSet" else "ReplicaSet a-1"
        start = f"{kind} a lacks pods; {refused} could not create one"
        assert explanation.answer.text.startswith(start)
    late = event("FailedCreate", DENIED, "Job", "a", lastTimestamp=LATER)
    explanation = with_pods(controller("Job"), events=[late])
    assert explanation is not None
    assert explanation.answer.text == f"Job a lacks pods; it could not create one: {DENIED}"
    assert (explanation.owners, explanation.chapters) == (("Job a",), ())
    both = with_pods(controller("Job", status=failing("x")), controller("Job", "b"), events=[late])
    assert both is not None
    assert both.chapters == ()
    twice = [late, event("FailedCreate", "other", "Job", "b", lastTimestamp=LATER)]
    explanation = with_pods(controller("Job"), controller("Job", "b"), events=twice)
    assert explanation is not None
    assert [finding.code for finding in chapter_findings(explanation, "podStatus")] == [
        "FailedCreate"
    ]


@pytest.mark.parametrize(
    ("kind", "time"),
    [("Job", EARLIER), ("Job", CREATED), ("ReplicaSet", LATER), ("ReplicationController", LATER)],
)
def test_a_refusal_that_is_over(kind: str, time: str) -> None:
    """The controller has created a pod since, or has no such condition."""
    old = event("FailedCreate", DENIED, kind, "a", lastTimestamp=time)
    assert with_pods(controller(kind), events=[old]) is None


def quota(**amounts: tuple[Any, Any]) -> KubernetesObject:
    """Return a ResourceQuota: resource → used and hard."""
    used, hard = ({key: pair[index] for key, pair in amounts.items()} for index in (0, 1))
    return controller("ResourceQuota", "nics", status={"used": used, "hard": hard})


def test_a_quota_without_an_event() -> None:
    """A quota with nothing left may be the reason, where nothing else is known."""
    full = quota(gpus=("4", "4"), pods=("1", "9"), memory=("2Gi", "1024Mi"))
    workload = Workload("lab", controller("Job"), quotas=(full, quota(pods=("1", "9"))))
    explanation = explain_without_pods(workload)
    assert chapter_findings(explanation, "podStatus") == []
    assert explanation.answer.code == "QuotaExceeded"
    assert explanation.answer.text == (
        "Job a has no pods, perhaps because the ResourceQuota nics is used up: gpus: 4 of 4, "
        "memory: 2Gi of 1024Mi."
    )
    assert "kubectl describe quota nics -n lab" in explanation.answer.remedy
    suspended = workload._replace(controller=controller("Job", spec={"suspend": True}))
    assert explain_without_pods(suspended).answer.code == "Suspended"
    for odd in (quota(pods=("x", "1")), quota(pods=(None, None)), quota(pods=([], 1))):
        assert explain_without_pods(workload._replace(quotas=(odd,))).answer.code == "NoPods"


@pytest.mark.parametrize(
    ("kind", "fields", "code", "says"),
    [
        (
            "Job",
            {"spec": {"suspend": True}},
            "Suspended",
            "Job a has no pods, since it is suspended (spec.",
        ),
        ("Deployment", {"spec": {"replicas": 0}}, "ScaledToZero", "asks for none (replicas: 0)"),
        ("Job", {"spec": {"parallelism": 0}}, "ScaledToZero", "asks for none (parallelism: 0)"),
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
            "Job a has no pods, since it is Complete.",
        ),
        (
            "Job",
            {
                "status": {
                    "conditions": [{"type": "Failed", "status": "True", "message": "too many"}]
                }
            },
            "Ended",
            "Job a has no pods, since it is Failed: too many.",
        ),
        (
            "Job",
            {"status": {"failed": 1}},
            "WaitsToRetry",
            (
                "Job a has no pods now, since its last pod failed or was deleted, and the Job is "
                "waiting before it creates the next one."
            ),
        ),
        (
            "Job",
            {
                "status": {
                    "failed": 1,
                    "conditions": [{"type": "Failed", "status": "True"}],
                }
            },
            "Ended",
            "Job a has no pods, since it is Failed.",
        ),
        (
            "Deployment",
            {"spec": {"paused": True}},
            "Paused",
            "Deployment a has no pods, since it is paused (spec.paused: true).",
        ),
        (
            "CronJob",
            {"spec": {"schedule": "0 3 31 1 *"}},
            "NotDue",
            "CronJob a has no pods: it has no Job, and its schedule is '0 3 31 1 *'.",
        ),
        ("Deployment", {"spec": {"paused": False}}, "NoPods", "reports no reason"),
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


def test_a_job_that_took_too_long() -> None:
    """Created again, it would end in the same way."""
    late = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}
    (finding,) = now("Job", status={"conditions": [late]})
    assert (
        finding.remedy
        == "Raise activeDeadlineSeconds, or remove it. Then create the controller again."
    )
    (finding,) = now("Job", status={"conditions": [late | {"reason": "BackoffLimitExceeded"}]})
    assert finding.remedy.startswith("Read the controller's conditions with `kubectl describe`")


def test_commands_in_remedies() -> None:
    """They can be copied."""
    (finding,) = now("Deployment", spec={"paused": True})
    assert finding.remedy == "To resume it, run `kubectl rollout resume deployment/a -n lab`."
    (finding,) = now("CronJob", spec={"schedule": "* * * * *"})
    assert finding.remedy == (
        "Wait until a run is due. To start a Job now, run `kubectl create job --from=cronjob/a "
        "a-now -n lab`."
    )


def test_the_newest_object_between() -> None:
    """The newest Job of a CronJob counts; an old ReplicaSet has no replicas by design."""
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    newest, older = controller("Job", "a-2", status=done), controller("Job", "a-1", status=done)
    (finding,) = now("CronJob", newest, older)
    assert finding.text == "CronJob a has no pods, since Job a-2 is Complete."
    waiting = controller("Job", "a-2", status={"failed": 1})
    (finding,) = now("CronJob", waiting, older)
    assert finding.text == (
        "CronJob a has no pods now, since the last pod of Job a-2 failed or was deleted, and the "
        "Job is waiting before it creates the next one."
    )
    old = controller("ReplicaSet", "a-1", spec={"replicas": 0})
    (finding,) = now("Deployment", old)
    assert finding.code == "NoPods"


def test_reads_that_failed() -> None:
    """Each has a line."""
    explanation = without_pods("Job", read_failures=(ReadFailure("events", 403, "no"),))
    (finding,) = chapter_findings(explanation, "unread")
    assert finding.text == "You do not have the right to read events."


COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "lacks"),
    [
        ("StatefulSet", {"replicas": 3}, {"replicas": 2}, True),
        ("StatefulSet", {"replicas": 2}, {"replicas": 2}, False),
        (
            "DaemonSet",
            {},
            {"desiredNumberScheduled": 3, "currentNumberScheduled": 2},
            True,
        ),
        (
            "DaemonSet",
            {},
            {"desiredNumberScheduled": 2, "currentNumberScheduled": 2},
            False,
        ),
        ("Job", {"parallelism": 2}, {"active": 1}, True),
        ("Job", {"parallelism": 2}, {"active": 2}, False),
        ("Job", {"parallelism": 2}, COMPLETE, False),
        ("RayCluster", {"replicas": 1}, {"replicas": 1}, True),
    ],
)
def test_a_controller_that_counts_its_pods(
    kind: str, spec: dict[str, Any], status: dict[str, Any], lacks: bool
) -> None:
    """Once it has them all, or was asked for fewer, a refusal is over, however new its Event."""
    late = event("FailedCreate", DENIED, kind, "a", lastTimestamp=LATER)
    subject = controller(kind, spec=spec, status=status)
    assert (with_pods(subject, events=[late]) is not None) is lacks
    parent = controller("CronJob", "c")
    assert (with_pods(parent, subject, events=[late]) is not None) is lacks
    assert "could not create one" in now(kind, spec=spec, status=status, events=[late])[0].text


@pytest.mark.parametrize(
    ("kind", "spec", "status"),
    [
        ("StatefulSet", {"replicas": 0}, {"replicas": 0}),
        ("DaemonSet", {}, {"desiredNumberScheduled": 0, "currentNumberScheduled": 0}),
        ("ReplicaSet", {"replicas": 0}, {}),
        ("Job", {"parallelism": 0}, {}),
        ("Job", {"suspend": True}, {}),
    ],
)
def test_a_controller_that_wants_no_pods(
    kind: str, spec: dict[str, Any], status: dict[str, Any]
) -> None:
    """A refusal is from before its correction."""
    late = event("FailedCreate", DENIED, kind, "a", lastTimestamp=LATER)
    (finding,) = now(kind, spec=spec, status=status, events=[late])
    assert finding.code == ("Suspended" if "suspend" in spec else "ScaledToZero")
    if kind == "Job":
        (of_child,) = now("CronJob", controller(kind, spec=spec), events=[late])
        clause = finding.text.removeprefix("Job a has no pods, since it ")
        assert of_child.text == f"CronJob a has no pods, since Job a {clause}"


def test_a_deployment_that_was_scaled_to_zero() -> None:
    """It scales its ReplicaSet, which is what was refused pods before."""
    replicas = controller("ReplicaSet", "a-1", spec={"replicas": 0})
    late = event("FailedCreate", QUOTA, "ReplicaSet", "a-1", lastTimestamp=LATER)
    (finding,) = now("Deployment", replicas, spec={"replicas": 0}, events=[late])
    assert finding.code == "ScaledToZero"
    assert finding.text == ("Deployment a has no pods, since it asks for none (replicas: 0).")


def test_an_old_template_that_was_refused() -> None:
    """The refusal of the present one is the reason."""
    old = controller("ReplicaSet", "a-1", spec={"replicas": 0})
    new = controller("ReplicaSet", "a-2", spec={"replicas": 1})
    refusals = [
        event("FailedCreate", message, "ReplicaSet", name, lastTimestamp=LATER)
        for name, message in (("a-1", QUOTA), ("a-2", DENIED))
    ]
    (finding,) = now("Deployment", new, old, events=refusals)
    assert finding.text.endswith(f"ReplicaSet a-2 could not create one: {DENIED}")


def waiting_for_ready(
    count: object, *unready: str, kind: str = "StatefulSet", **spec: object
) -> Explanation | None:
    """Explain a StatefulSet with `count` of two pods; by default, its only pod is not ready."""
    subject = controller(kind, spec={"replicas": 2, **spec}, status={"replicas": count})
    workload = Workload("lab", subject, pods=("a-0",), unready=unready or ("a-0",))
    return explain_missing_pods(workload)


def test_a_stateful_set_that_waits_for_its_first_pod() -> None:
    """The next pod is not created before it is ready; whether it just starts is unknown."""
    explanation = waiting_for_ready(1, "a-0", "a-1")
    assert explanation is not None
    assert (explanation.rdma, explanation.well) == ("unsure", False)
    assert explanation.answer.level == "unsure"
    assert (explanation.answer.code, explanation.answer.text) == (
        "WaitsForReady",
        (
            "StatefulSet a lacks pods: it has 1 of 2, and creates the next one only when pod a-0 "
            "is ready (podManagementPolicy: OrderedReady)."
        ),
    )
    assert explanation.answer.remedy == (
        "Unless the pod has just started, find out why it is not ready. If it waits for the "
        "others, as the ranks of a job do, set spec.podManagementPolicy: Parallel in the manifest. "
        "An existing StatefulSet does not accept that change, so delete the StatefulSet but keep "
        "its pods (kubectl delete statefulset a -n lab --cascade=orphan), and apply the manifest."
    )
    assert waiting_for_ready(1, podManagementPolicy="OrderedReady") == waiting_for_ready(1)


def test_a_stateful_set_of_another_controller() -> None:
    """That one would create it again as it is."""
    owner = {"kind": "LeaderWorkerSet", "name": "l", "controller": True}
    subject = controller(
        "StatefulSet",
        metadata={"name": "a", "ownerReferences": [owner]},
        spec={"replicas": 2},
        status={"replicas": 1},
    )
    explanation = explain_missing_pods(Workload("lab", subject, pods=("a-0",), unready=("a-0",)))
    assert explanation is not None
    assert explanation.answer.remedy.endswith(
        "as the ranks of a job do, see whether LeaderWorkerSet l, which owns the StatefulSet, can "
        "start them together."
    )


def test_pods_that_do_not_wait_for_each_other() -> None:
    """With all its pods, with ready pods, or with another policy, a StatefulSet lacks none."""
    assert waiting_for_ready(2) is None
    assert waiting_for_ready(1, podManagementPolicy="Parallel") is None
    assert waiting_for_ready(1, kind="ReplicaSet") is None
    assert waiting_for_ready(1, replicas="2") is None
    subject = controller("StatefulSet", spec={"replicas": 2}, status={"replicas": 1})
    assert explain_missing_pods(Workload("lab", subject, pods=("a-0",))) is None


def test_a_refusal_comes_before_a_pod_that_is_not_ready() -> None:
    """It is the reason; both are listed."""
    late = Event.model_validate(event("FailedCreate", DENIED, "StatefulSet", "a"))
    subject = controller("StatefulSet", spec={"replicas": 2}, status={"replicas": 1})
    workload = Workload("lab", subject, pods=("a-0",), unready=("a-0",), events=(late,))
    explanation = explain_missing_pods(workload)
    assert explanation is not None
    assert explanation.answer.code == "FailedCreate"
    (finding,) = chapter_findings(explanation, "podStatus")
    assert finding.code == "WaitsForReady"


def test_a_job_of_another_controller() -> None:
    """The Job controller leaves it alone, so spec.managedBy is the reason."""
    (finding,) = now("Job", spec={"managedBy": "a.example/b"})
    assert (finding.code, finding.level, finding.text) == (
        "ManagedElsewhere",
        "error",
        (
            "Job a has no pods, since it is left to another controller (spec.managedBy: "
            "a.example/b)."
        ),
    )
    assert finding.remedy.startswith("Check that the controller that spec.managedBy names")
    child = controller("Job", "a-1", spec={"managedBy": "kueue.x-k8s.io/multikueue"})
    (finding,) = now("CronJob", child)
    assert "CronJob a has no pods, since Job a-1 is left" in finding.text
    assert finding.remedy == (
        "MultiKueue creates the pods in another cluster; ask `rdma-webhook why` there. The "
        "Workload of the Job names the cluster: `kubectl get workloads -n lab -o yaml`. If the "
        "Job should run in this cluster, create the Job again without spec.managedBy."
    )


@pytest.mark.parametrize(
    ("kind", "manager"),
    [("Job", "kubernetes.io/job-controller"), ("Job", ""), ("JobSet", "a.example/b")],
)
def test_a_controller_of_its_own_kind(kind: str, manager: str) -> None:
    """The default controller creates pods; other kinds have other defaults."""
    (finding,) = now(kind, spec={"managedBy": manager})
    assert finding.code == "NoPods"


def test_a_controller_that_is_being_deleted() -> None:
    """It creates no pods, and its finalizers keep it."""
    metadata = {"name": "a", "deletionTimestamp": LATER, "finalizers": ["x/y"]}
    (finding,) = now("Deployment", metadata=metadata)
    assert (finding.code, finding.level, finding.text) == (
        "BeingDeleted",
        "error",
        (
            "Deployment a has no pods, since it is being deleted, and is waiting for "
            "the removal of its finalizers (x/y)."
        ),
    )
    assert finding.remedy.startswith(
        "Wait until the deletion is complete, then create the controller again"
    )
    metadata = {"name": "a-1", "deletionTimestamp": LATER}
    (finding,) = now("CronJob", controller("Job", metadata=metadata))
    assert finding.text == "CronJob a has no pods, since Job a-1 is being deleted."
    assert finding.remedy == (
        "Wait until it is gone: CronJob a then creates the next Job when it is due."
    )
    child = controller("ReplicaSet", metadata={**metadata, "finalizers": ["x/y"]})
    (finding,) = now("Deployment", child)
    assert finding.remedy == (
        "Wait until it is gone: Deployment a then creates the next ReplicaSet. If it stays, find "
        "out what should remove the finalizers, and does not."
    )
    (finding,) = now("CronJob", controller("Job"), controller("Job", metadata=metadata))
    assert finding.code == "NoPods"


def test_a_namespace_that_is_being_deleted() -> None:
    """It comes before the refusals that it causes, with what keeps it."""
    conditions = [
        {"type": "NamespaceContentRemaining", "status": "True", "message": "1 configmap remains."},
        {"type": "NamespaceFinalizersRemaining", "status": "True", "message": "x/y in 1 instance"},
        {"type": "NamespaceDeletionDiscoveryFailure", "status": "True", "message": "no"},
        {"type": "NamespaceContentRemaining", "status": "False", "message": "no"},
    ]
    ending = KubernetesObject.read(
        {
            "kind": "Namespace",
            "metadata": {"name": "lab", "deletionTimestamp": LATER},
            "status": {"conditions": conditions},
        }
    )
    late = Event.model_validate(event("FailedCreate", "is being terminated", "Job", "a"))
    workload = Workload("lab", controller("Job"), events=(late,), namespace_object=ending)
    explanation = explain_without_pods(workload)
    assert (explanation.answer.code, explanation.answer.level) == ("BeingDeleted", "error")
    assert explanation.answer.text == (
        "Job a has no pods, since namespace lab is being deleted. 1 configmap remains. x/y in 1 "
        "instance."
    )
    assert explanation.answer.remedy == (
        "Create the workload in another namespace, or in this one when it is gone and has been "
        "created again. To see what keeps it, run `kubectl describe namespace lab`."
    )
    (refused_pod,) = chapter_findings(explanation, "podStatus")
    assert refused_pod.code == "FailedCreate"
    present = KubernetesObject.read({"kind": "Namespace", "metadata": {"name": "lab"}})
    unhindered = explain_without_pods(workload._replace(namespace_object=present))
    assert unhindered.answer.code == "FailedCreate"
