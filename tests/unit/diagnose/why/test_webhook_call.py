"""Whether the webhook was called for a pod, or the reason why not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.why.pods import (
    ASKED,
    CREATED,
    CREATION,
    EARLIER,
    LATER,
    OWNED,
    REFERENCE,
    Item,
    chapter_findings,
    configuration,
    explain,
    job,
    namespace,
    pod_in_cluster,
    pod_without_call,
    status,
)
from webhook.admission.registration import WEBHOOK_NAME
from webhook.model.finding import Finding
from webhook.serve.options import POD_WEBHOOK

INSTALLED = (configuration(),)
IGNORING = (configuration("Ignore"),)


def called(pod: Item, **evidence: Any) -> Finding:
    """Return the finding."""
    (finding,) = chapter_findings(explain(pod, **evidence), "webhookCall")
    return finding


def test_the_webhook_has_its_name() -> None:
    """The collector and the server use the same name for it."""
    assert WEBHOOK_NAME == POD_WEBHOOK


def test_a_pod_with_a_status() -> None:
    """The webhook was called, as far as the namespace's label is known not to contradict it."""
    assert called(pod_in_cluster()).code == "Called"
    assert called(pod_in_cluster(), namespace=namespace(), webhooks=()).level == "ok"


CAPABLE = {"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}
APPLIED = status(applied=["ipc-lock"])


@pytest.mark.parametrize(
    ("pod", "known", "level", "text", "remedy"),
    [
        (
            pod_in_cluster(APPLIED),
            {},
            "error",
            (
                "No: rdma.lab/status was copied from another pod, or written by hand, or all that "
                "it names was removed, since nothing of it is left in the pod."
            ),
            "Remove rdma.lab/status from the pod, and create the pod again.",
        ),
        (
            pod_in_cluster(APPLIED),
            {"namespace": namespace({})},
            "error",
            (
                "No: rdma.lab/status was copied from another pod, or written by hand, since "
                'namespace lab lacks the label rdma.lab/enable: "true".'
            ),
            (
                "`kubectl label --overwrite namespace lab rdma.lab/enable=true`. Then create the "
                "pod again. Remove rdma.lab/status from the pod, and create the pod again."
            ),
        ),
        (
            pod_in_cluster(APPLIED, spec={"containers": [{"name": "main", **CAPABLE}]}),
            {"namespace": namespace({})},
            "unsure",
            (
                'Not certain: namespace lab lacks the label rdma.lab/enable: "true". The label was '
                "removed later, or rdma.lab/status was copied from another pod, or written by hand."
            ),
            "rdma.lab/enable=true`. Then create the pod again.",
        ),
        (
            pod_in_cluster({**ASKED, "rdma.lab/status": '{"rdma":"yes","because":"Equipped"}'}),
            {},
            "error",
            (
                "No: rdma.lab/status was copied from another pod, or written by hand, since it "
                "lacks fields that the webhook writes."
            ),
            "Remove rdma.lab/status from the pod, and create the pod again.",
        ),
    ],
    ids=["nothing left", "unlabeled", "all there", "incomplete"],
)
def test_a_status_that_proves_nothing(
    pod: Item, known: dict[str, Any], level: str, text: str, remedy: str
) -> None:
    """Anybody can copy a status with a manifest, or write one."""
    finding = called(pod, **known)
    assert (finding.code, finding.level, finding.text) == ("StatusNotOurs", level, text)
    assert finding.remedy.endswith(remedy)


@pytest.mark.parametrize(
    ("pod", "known", "code", "says", "remedy"),
    [
        (
            pod_in_cluster({}),
            {},
            "NotOptedIn",
            "No: the pod has no annotation rdma.lab/enable.",
            (
                'Set rdma.lab/enable: "true" under metadata.annotations of the pod, '
                "and create the pod again."
            ),
        ),
        (
            pod_in_cluster({}, metadata=OWNED),
            {},
            "NotOptedIn",
            "No: the pod has no annotation rdma.lab/enable.",
            "of the pod template of Job train, and",
        ),
        (
            pod_in_cluster({"rdma.lab/status": '{"rdma":"yes","because":"Equipped"}'}),
            {},
            "NotOptedIn",
            "Its rdma.lab/status was copied or set by hand.",
            "",
        ),
        (
            pod_in_cluster({"rdma.lab/enable": "false"}),
            {},
            "OptedOut",
            'No: metadata.annotations sets rdma.lab/enable: "false".',
            "",
        ),
        (
            pod_in_cluster({"rdma.lab/enabled": "true"}),
            {},
            "AnnotationMisspelled",
            (
                "'rdma.lab/enabled' in metadata.annotations has no effect (did you mean "
                "rdma.lab/enable?)"
            ),
            "",
        ),
        (
            pod_in_cluster({}, metadata={"labels": ASKED}),
            {},
            "AnnotationMisspelled",
            "No: rdma.lab/enable is in metadata.labels, but on a pod it must be an annotation.",
            "",
        ),
        (
            pod_in_cluster({}, metadata=OWNED),
            {"owners": (job(ASKED),)},
            "AnnotationMisspelled",
            (
                "No: rdma.lab/enable is in metadata.annotations of Job "
                "train, where it reaches no pod"
            ),
            "under metadata.annotations of the pod template of Job train",
        ),
        (
            pod_in_cluster({}, metadata=OWNED),
            {"owners": (job(asked=ASKED),)},
            "NotOptedIn",
            (
                "No: the pod has no annotation rdma.lab/enable; Job train has it in "
                "spec.template.metadata.annotations, but the pod was created from another "
                "template, or before."
            ),
            "under metadata.annotations of each pod template of Job train",
        ),
        (
            pod_in_cluster({**ASKED, "kubernetes.io/config.mirror": "x"}),
            {},
            "MirrorPod",
            "static pod",
            "the static pod's file on the node",
        ),
        (
            pod_without_call(spec={"os": {"name": "windows"}}),
            {},
            "WindowsPod",
            "runs on Windows",
            "Linux",
        ),
        (
            pod_without_call(metadata={"namespace": "kube-system"}),
            {},
            "NamespaceExcluded",
            "never calls the webhook for namespace kube-system",
            "another namespace",
        ),
        (
            pod_without_call(),
            {"namespace": namespace({})},
            "NamespaceNotLabeled",
            'No: namespace lab lacks the label rdma.lab/enable: "true".',
            "kubectl label --overwrite namespace lab rdma.lab/enable=true",
        ),
        (
            pod_without_call(),
            {"namespace": namespace({"rdma.lab/enable": "True"}), "webhooks": ()},
            "NamespaceNotLabeled",
            "(its value is 'True').",
            "",
        ),
        (
            pod_without_call(),
            {"namespace": namespace(), "webhooks": ()},
            "NotInstalled",
            "the cluster has no webhook pods.rdma.lab",
            "docs/installation.md",
        ),
        (
            pod_without_call(),
            {"namespace": namespace(), "webhooks": (configuration(bundle=""),)},
            "NoCaBundle",
            "no caBundle",
            "certs status",
        ),
        (
            pod_without_call(),
            {"namespace": namespace(), "webhooks": (configuration(created=LATER),)},
            "CreatedBeforeWebhook",
            f"created at {CREATED}, before the webhook was installed, at {LATER}",
            "Create the pod again",
        ),
        (
            pod_without_call(),
            {"namespace": namespace(written=LATER), "webhooks": IGNORING},
            "CreatedBeforeLabel",
            (
                f"created at {CREATED}, before namespace lab got the label rdma.lab/enable "
                f"(its labels were last changed at {LATER})"
            ),
            "Create the pod again; the webhook will then be called.",
        ),
        (
            pod_without_call(),
            {"namespace": namespace(), "webhooks": IGNORING},
            "DidNotAnswer",
            "the webhook did not respond when the pod was created. With failurePolicy: Ignore",
            "Ask the cluster administrator to check that the webhook is ready",
        ),
        (
            pod_without_call(),
            {"namespace": namespace(), "webhooks": INSTALLED},
            "CreatedEarlier",
            "created before one of them",
            "and create the pod again",
        ),
        (
            pod_without_call(),
            {},
            "NotCalled",
            "since rdma-webhook did not read the labels of namespace lab or the webhook",
            "kubectl get namespace lab --show-labels",
        ),
        (
            pod_without_call(),
            {"namespace": namespace()},
            "NotCalled",
            "unknown, since rdma-webhook did not read the webhook configuration.",
            "",
        ),
    ],
)
def test_why_not(pod: Item, known: dict[str, Any], code: str, says: str, remedy: str) -> None:
    """The finding has the most certain reason, and its remedy."""
    finding = called(pod, **known)
    assert (finding.code, finding.level) == (code, "error")
    assert says in finding.text
    assert remedy in finding.remedy
    assert finding.remedy.endswith(".")


@pytest.mark.parametrize("order", [(EARLIER, LATER), (LATER, EARLIER)], ids=str)
def test_a_webhook_that_was_installed_twice(order: tuple[str, str]) -> None:
    """The first installation counts: a pod created after it was not too early."""
    webhooks = tuple(configuration(created=time) for time in order)
    finding = called(pod_without_call(), namespace=namespace(), webhooks=webhooks)
    assert finding == called(pod_without_call(), namespace=namespace(), webhooks=INSTALLED)
    assert finding.code == "CreatedEarlier"


def test_the_template_to_edit() -> None:
    """The outermost owner has it, since a controller would undo a change to an inner owner."""
    outer = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "set"},
    }
    outer["spec"] = {"replicatedJobs": [{"template": job()["spec"]}]}
    for owners in ((job(), outer), (job(), outer, {"kind": "Workload", "metadata": {"name": "w"}})):
        finding = called(pod_in_cluster({}, metadata=OWNED), owners=owners)
        assert finding.remedy.endswith("template of JobSet set, and create JobSet set again.")


@pytest.mark.parametrize(("kind", "above"), [("ReplicaSet", "Deployment"), ("Job", "CronJob")])
def test_a_copy_is_not_the_template_to_edit(kind: str, above: str) -> None:
    """The remedy names the controller of a ReplicaSet or a Job, even if it was not read."""
    reference = {**REFERENCE, "kind": above, "name": "a"}
    copy = {**job(), "kind": kind, "metadata": {"name": "a-1", "ownerReferences": [reference]}}
    finding = called(pod_in_cluster({}, metadata=OWNED), owners=(copy,))
    effects = {
        "Deployment": "; the Deployment then replaces the pod.",
        "CronJob": "; the next Job of the CronJob then has it.",
    }
    assert finding.remedy.endswith(f"of the pod template of {above} a{effects[above]}")


IF_NOT_REPLACED = "If it does not, delete the pod: `kubectl delete pod train-0 -n lab`."


@pytest.mark.parametrize(
    ("kind", "effect"),
    [
        (
            "Job",
            ". A Job's template cannot be changed, so delete Job train and create it again.",
        ),
        ("DaemonSet", f"; the DaemonSet then replaces the pod. {IF_NOT_REPLACED}"),
        ("StatefulSet", f"; the StatefulSet then replaces the pod. {IF_NOT_REPLACED}"),
        ("ReplicaSet", ", and delete the pod: the ReplicaSet creates it again."),
        ("MPIJob", ", and create MPIJob train again."),
    ],
)
def test_how_a_correction_reaches_the_pod(kind: str, effect: str) -> None:
    """Only where it is possible, the remedy is to change the template of the object as it is."""
    owner = {**job(), "kind": kind}
    remedies = [
        called(pod_in_cluster({}, metadata=OWNED), owners=(owner,)).remedy,
        called(pod_in_cluster({"rdma.lab/enable": "yes"}), owners=(owner,)).remedy,
        called(pod_in_cluster({**ASKED, "rdma.lab/status": "x"}), owners=(owner,)).remedy,
    ]
    title = f"the pod template of {kind} train"
    assert remedies[0].endswith(f"under metadata.annotations of {title}{effect}")
    assert remedies[1] == f'Set rdma.lab/enable: "true" in {title}{effect}'
    assert remedies[2] == f"Remove rdma.lab/status from {title}{effect}"


def test_an_annotation_outside_of_several_templates() -> None:
    """The pod may come from any of them, so each needs the annotation that it lacks."""
    template = job()["spec"]["template"]
    training: Item = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "p", "annotations": {"rdma.lab/enable": "true"}},
        "spec": {
            "pytorchReplicaSpecs": {
                "Master": {"template": template},
                "Worker": {"template": template},
            }
        },
    }
    finding = called(pod_in_cluster({}, metadata=OWNED), owners=(training,))
    place = "spec.pytorchReplicaSpecs.{}.template.metadata.annotations"
    assert finding.text == (
        "No: rdma.lab/enable is in metadata.annotations of PyTorchJob p, where it reaches no pod; "
        f"move it to {place.format('Master')} and {place.format('Worker')}."
    )
    assert "metadata.annotations of each pod template of PyTorchJob p, and" in finding.remedy
    annotated = {**template, "metadata": {"annotations": {"rdma.lab/enable": "true"}}}
    training["spec"]["pytorchReplicaSpecs"]["Master"]["template"] = annotated
    finding = called(pod_in_cluster({}, metadata=OWNED), owners=(training,))
    assert f"move it to {place.format('Worker')}" in finding.text
    training["spec"]["pytorchReplicaSpecs"].pop("Master")
    finding = called(pod_in_cluster({}, metadata=OWNED), owners=(training,))
    assert "metadata.annotations of the pod template of PyTorchJob p, and" in finding.remedy


def test_a_controller_that_is_not_read() -> None:
    """A ReplicaSet is named together with its Deployment, which usually has the template."""
    owned_by_replicas = {"ownerReferences": [{**REFERENCE, "kind": "ReplicaSet", "name": "a-1"}]}
    replicas = {**job(), "kind": "ReplicaSet", "metadata": {"name": "a-1"}}
    for owners, title in (
        ((replicas,), "ReplicaSet a-1, and delete the pod"),
        ((), "ReplicaSet a-1 or of its Deployment, and create the pod again."),
    ):
        finding = called(pod_in_cluster({}, metadata=owned_by_replicas), owners=owners)
        assert f"of the pod template of {title}" in finding.remedy


def test_an_annotation_that_came_later() -> None:
    """An annotation on a pod that exists has no effect, which its managedFields show."""
    fields: Item = {"f:metadata": {"f:annotations": {"f:rdma.lab/enable": {}}}}
    pod = pod_without_call(
        metadata={"managedFields": [{"time": LATER, "fieldsV1": fields}], **OWNED}
    )
    finding = called(pod, namespace=namespace(), webhooks=INSTALLED)
    assert finding.code == "AnnotatedLater"
    assert f"set at {LATER}, after the pod was created at {CREATED}" in finding.text
    assert finding.remedy == "Set it in the pod template of Job train, and create the pod again."


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("TRUE", 'No: annotation rdma.lab/enable is \'TRUE\', but it must be "true" or "false".'),
        (
            True,
            (
                "No: annotation rdma.lab/enable is a boolean (true), but "
                'it must be "true" or "false", in quotes'
            ),
        ),
        (["x"], "No: annotation rdma.lab/enable is a list"),
    ],
    ids=str,
)
def test_other_values(value: object, says: str) -> None:
    """The webhook denies them, so it cannot have been called."""
    pod = pod_without_call(metadata=OWNED)
    pod["metadata"]["annotations"] = {"rdma.lab/enable": value}
    finding = called(pod, namespace=namespace({}))
    assert (finding.code, finding.level) == ("InvalidAnnotation", "error")
    assert finding.text.startswith(says)
    assert finding.remedy == (
        'Set rdma.lab/enable: "true" in the pod template of Job train, and create the pod again.'
    )


def test_a_manifest_without_a_status() -> None:
    """Its pod was never created, so the webhook cannot have been called."""
    pod = pod_in_cluster(ASKED)
    del pod["status"]
    finding = called(pod, namespace=None, webhooks=None)
    assert (finding.code, finding.level) == ("NoStatus", "error")
    assert "rdma-webhook preview" in finding.remedy


def test_a_status_that_cannot_be_read() -> None:
    """It does not count as a status of the webhook."""
    finding = called(pod_in_cluster({**ASKED, "rdma.lab/status": "green"}))
    assert (finding.code, finding.level) == ("StatusUnreadable", "unsure")
    assert finding.remedy == "Remove rdma.lab/status from the pod, and create the pod again."


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"namespaceSelector": {"matchLabels": {"tier": "gpu"}}},
            "tier",
        ),
        ({"objectSelector": {"matchLabels": {"team": "ml"}}}, "team"),
        ({"rules": [{**CREATION, "operations": ["UPDATE"]}]}, "covers the creation of pods"),
    ],
    ids=str,
)
def test_a_webhook_that_does_not_select_the_pod(fields: Item, reason: str) -> None:
    """An edited webhook configuration: to create the pod again would change nothing."""
    edited = configuration()
    edited["webhooks"][1] |= fields
    finding = called(pod_without_call(), namespace=namespace(), webhooks=(edited,))
    assert (finding.code, finding.level) == ("NotSelected", "error")
    assert finding.text.startswith("No: ")
    assert reason in finding.text
    assert "and to apply the manifests of rdma-webhook again" in finding.remedy


def managed(pod: Item, written: str = CREATED) -> Item:
    """Return the pod with the time at which its annotation was set."""
    fields: Item = {"f:metadata": {"f:annotations": {"f:rdma.lab/enable": {}}}}
    pod["metadata"]["managedFields"] = [{"time": written, "fieldsV1": fields}]
    return pod


def test_all_that_is_needed_was_there() -> None:
    """Then the webhook did not answer, though the policy may be another one now."""
    finding = called(managed(pod_without_call()), namespace=namespace(), webhooks=INSTALLED)
    assert (finding.code, finding.level) == ("DidNotAnswer", "error")
    assert finding.text == (
        "No: the annotation, the label of its namespace and the webhook configuration are older "
        "than the pod. The webhook probably did not respond when the pod was created, while its "
        "failurePolicy was Ignore."
    )
    assert finding.remedy == (
        "Ask the cluster administrator to check that the webhook is ready (`rdma-webhook "
        "check-install`). Then create the pod again."
    )
    old = namespace()
    del old["metadata"]["managedFields"]
    for pod, space in ((managed(pod_without_call()), old), (pod_without_call(), namespace())):
        assert called(pod, namespace=space, webhooks=INSTALLED).code == "CreatedEarlier"


@pytest.mark.parametrize(
    ("labels", "hint"),
    [
        ({"rdma.lab/enabled": "true"}, " (did you mean rdma.lab/enable by 'rdma.lab/enabled'?)"),
        ({"team": "a", "rdma-lab/enable": "true"}, " by 'rdma-lab/enable'?)"),
        ({"rdma.lab/enable": "True", "rdma.lab/enabled": "true"}, " (its value is 'True')"),
        ({"team": "a"}, '"true"'),
    ],
)
def test_a_similar_label(labels: dict[str, str], hint: str) -> None:
    """A misspelled label of the namespace is named."""
    finding = called(pod_without_call(), namespace=namespace(labels), webhooks=INSTALLED)
    assert finding.code == "NamespaceNotLabeled"
    assert finding.text.endswith(f"{hint}.")


def test_the_controller_that_people_write() -> None:
    """A Deployment copies its annotations to its ReplicaSets; the Deployment is named."""
    above = {**job(ASKED), "kind": "Deployment", "metadata": {"name": "d", "annotations": ASKED}}
    reference = {**REFERENCE, "kind": "Deployment", "name": "d"}
    copied = {"name": "d-1", "annotations": ASKED, "ownerReferences": [reference]}
    replicas = {**job(), "kind": "ReplicaSet", "metadata": copied}
    finding = called(pod_in_cluster({}, metadata=OWNED), owners=(replicas, above))
    assert finding.text == (
        "No: rdma.lab/enable is in metadata.annotations of Deployment d, where it reaches no pod; "
        "move it to spec.template.metadata.annotations."
    )
    inner = {**job(), "metadata": {"name": "train", "ownerReferences": [reference]}}
    inner["spec"]["template"]["metadata"]["annotations"] = {"rdma.lab/enabled": "true"}
    other = {"kind": "Deployment", "metadata": {"name": "d"}}
    finding = called(pod_in_cluster({}, metadata=OWNED), owners=(inner, other))
    assert finding.text.startswith("No: in Job train: 'rdma.lab/enabled' in spec.template.metadata")


def test_times_that_are_not_known() -> None:
    """Without them nothing is compared."""
    pod = pod_without_call(metadata={"creationTimestamp": None})
    finding = called(pod, namespace=namespace(written=LATER), webhooks=INSTALLED)
    assert finding.code == "CreatedEarlier"


def test_a_condition_that_cannot_be_evaluated() -> None:
    """An administrator added it, and it may be why; to create the pod again may change nothing."""
    edited = configuration("Ignore")
    edited["webhooks"][1]["matchConditions"] = [{"name": "ml", "expression": "object.x == 1"}]
    finding = called(pod_without_call(), namespace=namespace(), webhooks=(edited,))
    assert (finding.code, finding.level) == ("NotSelected", "error")
    assert finding.text == (
        "No: the matchCondition ml of the webhook in zz-rdma-webhook cannot be evaluated here, and "
        "may leave the pod out."
    )
    assert finding.remedy.startswith("Compare its expression with the pod: `kubectl get mutating")
    assert called(pod_without_call(), webhooks=(edited,)).code != "NotSelected"
