"""A pod whose controller has another template by now."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.builders import decide_on, decision_input, gpu
from tests.builders import pod as new_pod
from tests.unit.diagnose.why.pods import (
    OWNED,
    REFERENCE,
    Item,
    chapter_findings,
    codes,
    event,
    explain,
    job,
    pod_in_cluster,
    status,
)
from tests.unit.diagnose.why.test_additions import OFF, WITHOUT, admitted
from tests.unit.diagnose.why.test_bound_node import V100_NODE
from tests.unit.diagnose.why.test_comparison import KNOWN_CONFIGURATION, explain_with
from webhook.diagnose.why.additions import added_selectors, depends_on_mutators
from webhook.diagnose.why.comparison import compare
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.explanation import Explanation
from webhook.kube.objects import KubernetesObject, PodRecord
from webhook.model.finding import Finding
from webhook.model.nodes import build_fabric_index

PARTITIONED = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
DELETION = "Delete the pod: `kubectl delete pod train-0 -n lab`."
PRESENT = "The StatefulSet then creates it from its present template."


def stateful_set(
    template: Item, strategy: Item | None = None, revision: str = "train-2"
) -> dict[str, Any]:
    """Return a StatefulSet with another revision than its pod; by default, pods are deleted."""
    parts = {"metadata": template["metadata"], "spec": template["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "train", "namespace": "lab"},
        "spec": {"template": parts, "updateStrategy": strategy or {"type": "OnDelete"}},
        "status": {"updateRevision": revision},
    }


def of_old_template(pod: Item, template: Item, **evidence: Any) -> Explanation:
    """Explain a pod of an older revision of a StatefulSet."""
    fields = {
        "cluster_configuration": KNOWN_CONFIGURATION,
        "other_mutators": ("webhook x",),
        **evidence,
    }
    revision = fields.pop("revision", "train-2")
    controller = stateful_set(template, fields.pop("strategy", None), revision)
    reference = {**REFERENCE, "apiVersion": "apps/v1", "kind": "StatefulSet"}
    labels = {**pod["metadata"].get("labels", {}), "controller-revision-hash": "train-1"}
    pod["metadata"].update(name="train-0", ownerReferences=[reference], labels=labels)
    pod["metadata"]["namespace"] = "lab"
    return explain_with(pod, fields.pop("cluster_configuration"), owners=[controller], **fields)


def test_a_variable_that_was_removed_from_the_template() -> None:
    """Nobody else added it: the pod is older than the template."""
    warning = event("NoRDMA", "remove the variable", "StatefulSet", "train")
    explanation = of_old_template(admitted(new_pod(OFF)), WITHOUT, events=[warning])
    assert (explanation.rdma, explanation.answer.code) == ("no", "NcclIbDisabled")
    sentence = (
        "NCCL_IB_DISABLE=1 in container trainer: not in the present pod template of StatefulSet "
        "train, which has been changed since the pod was created; the StatefulSet has not replaced "
        "the pod, since the updateStrategy of StatefulSet train is OnDelete."
    )
    assert explanation.answer.text.endswith(f" {sentence}")
    assert explanation.answer.remedy == f"{DELETION} {PRESENT}"
    finding = chapter_findings(explanation, "applied")[-1]
    assert (finding.code, finding.level, finding.text) == ("OldTemplate", "error", sentence)
    (reported,) = [
        other for other in chapter_findings(explanation, "podStatus") if other.code == "NoRdma"
    ]
    assert reported.remedy == explanation.answer.remedy
    assert "OldTemplate" not in codes(explanation, "podStatus")


def test_a_variable_that_is_in_the_template_still() -> None:
    """The change may settle the verdict or not; the remedy of the verdict stays."""
    pod = admitted(new_pod(OFF))
    explanation = of_old_template(pod, new_pod(OFF), strategy=PARTITIONED)
    sentence = (
        "The pod template of StatefulSet train has been changed since the pod was created; the "
        "StatefulSet has not replaced the pod, since updateStrategy.rollingUpdate.partition of "
        "StatefulSet train is 1."
    )
    assert explanation.answer.text.endswith(f" {sentence}")
    assert "remove the variable" in explanation.answer.text
    assert explanation.answer.remedy.startswith(
        "If the change settles this: Set the partition to 0: `kubectl patch statefulset train"
    )
    assert "present template. Otherwise: If the job uses NCCL" in explanation.answer.remedy
    finding = chapter_findings(explanation, "podStatus")[-1]
    assert (finding.code, finding.level, finding.text) == ("OldTemplate", "info", sentence)


@pytest.mark.parametrize(("revision", "depends"), [("train-2", False), ("train-1", True)])
def test_webhooks_are_read_only_where_they_may_be_to_blame(revision: str, depends: bool) -> None:
    """Not for a pod with an old template, nor for the labels of its nodeSelector."""
    controller = KubernetesObject.read(stateful_set(WITHOUT, revision=revision))
    pod = admitted(new_pod(OFF, nodeSelector={"pool": "cpu"}))
    pod["metadata"].update(OWNED, labels={"controller-revision-hash": "train-1"})
    evidence = PodEvidence(
        pod=PodRecord.read(pod), owners=(controller,), cluster_configuration=KNOWN_CONFIGURATION
    )
    assert depends_on_mutators(evidence, compare(evidence)) is depends
    assert added_selectors(evidence) == (["pool"] if depends else [])


def test_a_revision_that_did_not_change() -> None:
    """Then the template is what the pod was created from, and somebody else added the rest."""
    explanation = of_old_template(admitted(new_pod(OFF)), WITHOUT, revision="train-1")
    assert "so another webhook or a policy added it" in explanation.answer.text
    assert codes(explanation, "applied")[-1] == "AddedAtAdmission"
    assert "OldTemplate" not in codes(explanation, "podStatus")


def test_a_tick_stays() -> None:
    """A pod with RDMA is well, whatever its template has become."""
    explanation = of_old_template(admitted(WITHOUT), WITHOUT)
    assert (explanation.rdma, explanation.well, explanation.answer.level) == ("yes", True, "ok")
    assert "template" not in explanation.answer.text
    finding = chapter_findings(explanation, "podStatus")[-1]
    assert (finding.code, finding.level) == ("OldTemplate", "info")
    assert finding.remedy == f"{DELETION} {PRESENT}"


def test_an_answer_for_another_reason() -> None:
    """What was changed in the pod itself is not about its template."""
    pod = admitted(WITHOUT)
    pod["spec"]["containers"][0]["env"].append({"name": "NCCL_IB_DISABLE", "value": "1"})
    explanation = of_old_template(pod, WITHOUT)
    assert explanation.answer.code == "ChangedAfterwards"
    assert "template" not in explanation.answer.remedy


def test_a_nodeselector_that_was_changed_in_the_template() -> None:
    """A label with another value counts, too; the webhooks are not to blame."""
    nodes = build_fabric_index({"node-1": V100_NODE}, KNOWN_CONFIGURATION)
    manifest = new_pod(nodeSelector={"team": "a", "pool": "cpu", "zone": "z"})
    pod = deepcopy(decide_on(manifest, decision_input(fabric_index=nodes)).pod) | {"kind": "Pod"}
    assert '"FabricNotSelected"' in pod["metadata"]["annotations"]["rdma.lab/status"]
    present = new_pod(nodeSelector={"team": "a", "pool": "gpu"})
    explanation = of_old_template(pod, present)
    assert (
        "now. pool=cpu in nodeSelector, zone=z in nodeSelector: not in the present pod template of "
        "StatefulSet train, which" in explanation.answer.text
    )
    assert explanation.answer.remedy == f"{DELETION} {PRESENT}"
    unchanged = of_old_template(deepcopy(pod), present, revision="train-1").answer.text
    assert "zone=z in nodeSelector: not in the pod template" in unchanged
    assert "pool=cpu" not in unchanged
    other_containers = new_pod(gpu("other"), nodeSelector={"team": "a"})
    unknown = of_old_template(pod, other_containers).answer.text
    assert "not in the present" not in unknown
    assert "has been changed since the pod was created; the" in unknown


@pytest.mark.parametrize(("applied", "is_named"), [([], True), (["placement"], False), (2, False)])
def test_labels_that_the_webhook_may_have_added(applied: object, is_named: bool) -> None:
    """The template never had them, so its change is not to blame."""
    annotations = status("no", "FabricNotSelected", applied=applied)
    manifest = new_pod(nodeSelector={"pool": "cpu"})
    pod = deepcopy(decide_on(manifest).pod) | {"kind": "Pod"}
    pod["metadata"]["annotations"].update(annotations)
    text = of_old_template(pod, WITHOUT, cluster_configuration=None).answer.text
    assert ("pool=cpu in nodeSelector: not in the present pod template" in text) is is_named


def test_today_from_the_present_template() -> None:
    """A partition must be changed before the pod is created again."""
    pod = admitted(new_pod(OFF))
    explanation = of_old_template(
        pod, WITHOUT, configuration=KNOWN_CONFIGURATION, strategy=PARTITIONED
    )
    (finding,) = chapter_findings(explanation, "redecision")
    assert finding.code == "OtherToday"
    assert finding.text.startswith("Unlike at admission, a pod from the template of StatefulSet")
    assert finding.remedy.startswith("Set the partition to 0: `kubectl patch statefulset train")
    explanation = of_old_template(
        pod, WITHOUT, configuration=KNOWN_CONFIGURATION, strategy=PARTITIONED, revision="train-1"
    )
    (finding,) = chapter_findings(explanation, "redecision")
    assert finding.remedy.startswith("Create the pod again to get a new decision.")


def call(*owners: Item, annotations: dict[str, str] | None = None, **metadata: Any) -> Finding:
    """Return the finding on the call of a pod without the annotation."""
    pod = pod_in_cluster(annotations or {}, metadata={**OWNED, **metadata})
    (finding,) = chapter_findings(explain(pod, owners=owners), "webhookCall")
    return finding


ANNOTATED = new_pod(annotations={"rdma.lab/enable": "true"})
OLD = {"controller-revision-hash": "train-1"}


def test_an_annotation_that_the_template_has_since() -> None:
    """The remedy is not to set it a second time."""
    finding = call(stateful_set(ANNOTATED), labels=OLD)
    assert (finding.code, finding.level) == ("NotOptedIn", "error")
    assert finding.text == (
        "No: the pod has no annotation rdma.lab/enable. StatefulSet train has rdma.lab/enable in "
        "spec.template.metadata.annotations now, but has not replaced the pod, since the "
        "updateStrategy of StatefulSet train is OnDelete."
    )
    assert finding.remedy == f"{DELETION} {PRESENT}"
    opted_out = call(stateful_set(ANNOTATED), labels=OLD, annotations={"rdma.lab/enable": "false"})
    assert opted_out.code == "OptedOut"
    assert opted_out.text.startswith('No: the pod sets rdma.lab/enable: "false". StatefulSet train')


def test_an_annotation_that_the_template_lacks() -> None:
    """It must be set, and the pod replaced in the way of its controller."""
    finding = call(stateful_set(WITHOUT | {"metadata": {}}), labels=OLD)
    assert finding.remedy == (
        'Set rdma.lab/enable: "true" under metadata.annotations of the pod template of StatefulSet '
        "train. Then, since the updateStrategy of StatefulSet train is OnDelete, delete the pod: "
        f"`kubectl delete pod train-0 -n lab`. {PRESENT}"
    )
    unchanged = call(stateful_set(ANNOTATED, revision="train-1"), labels=OLD)
    assert "the pod was created from another template, or before" in unchanged.text


def test_a_partition_that_another_controller_sets() -> None:
    """The remedy ends there: nobody else can roll out the template."""
    controller = stateful_set(WITHOUT | {"metadata": {}}, PARTITIONED)
    reference = {**REFERENCE, "kind": "LeaderWorkerSet", "name": "l"}
    controller["metadata"]["ownerReferences"] = [reference]
    assert call(controller, labels=OLD).remedy.endswith(
        "wait until LeaderWorkerSet l, which sets the partition, has rolled out its template."
    )


def cron_job(template: Item) -> Item:
    """Return the CronJob of the Job `train`."""
    spec = {"concurrencyPolicy": "Forbid", "jobTemplate": {"spec": {"template": template}}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": spec}


def test_a_cron_job_whose_job_is_older() -> None:
    """Its Job still has the old template, and keeps the next one from starting."""
    finding = call(job(), cron_job(ANNOTATED))
    assert finding.text == (
        "No: the pod has no annotation rdma.lab/enable. CronJob c has rdma.lab/enable in "
        "spec.jobTemplate.spec.template.metadata.annotations now, but has not replaced the pod, "
        "since the concurrencyPolicy of CronJob c is Forbid, and Job train runs."
    )
    assert finding.remedy.startswith("Delete that Job: `kubectl delete job train -n lab`.")
    before = call(job(), cron_job(WITHOUT | {"metadata": {}}))
    assert before.remedy.endswith(
        "of CronJob c. Then, since the concurrencyPolicy of CronJob c is Forbid, and Job train "
        "runs, delete that Job: `kubectl delete job train -n lab`. The CronJob then starts the "
        "next one, with its present template, when it is due."
    )


def test_a_deployment_that_has_not_rolled_out() -> None:
    """Its older ReplicaSet has the old template."""
    deployment = {**stateful_set(ANNOTATED), "kind": "Deployment"}
    replicas = {**job(), "kind": "ReplicaSet", "metadata": {"name": "train-1"}}
    finding = call(replicas, deployment)
    assert "now, but has not replaced the pod." in finding.text
    assert finding.remedy == (
        "Wait until the Deployment replaces the pod: `kubectl rollout status deployment/train -n "
        "lab`."
    )


@pytest.mark.parametrize(
    "owners",
    [
        (job(asked={"rdma.lab/enable": "true"}), cron_job(ANNOTATED)),
        (job(), {**cron_job(ANNOTATED), "kind": "JobSet"}),
        ({**stateful_set(ANNOTATED), "kind": "ReplicaSet"},),
        ({"kind": "StatefulSet", "metadata": {"name": "train"}},),
        (),
    ],
    ids=["same", "other kind", "no rollout", "no template", "unread"],
)
def test_templates_that_are_not_known_to_be_newer(owners: tuple[Item, ...]) -> None:
    """The pod may have lost the annotation, or was created from another template."""
    assert "now, but has not replaced" not in call(*owners, labels=OLD).text
