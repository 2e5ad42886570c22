"""What another webhook or a policy added to a pod, and the verdict blames."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from tests.builders import decide_on, decision_input, env, gpu
from tests.builders import pod as new_pod
from tests.unit.diagnose.why.pods import OWNED, chapter_findings, event
from tests.unit.diagnose.why.test_bound_node import V100_NODE
from tests.unit.diagnose.why.test_comparison import KNOWN_CONFIGURATION, explain_with, main
from webhook.diagnose.why.explanation import Explanation
from webhook.model.fabric import CompiledConfiguration
from webhook.model.nodes import build_fabric_index

HARDENING = ("webhook harden.example of zzz-hardening",)
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
WITHOUT = new_pod()
OFF = gpu("trainer", env=env(NCCL_IB_DISABLE="1"))


def admitted(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a pod as the webhook leaves it after another one has changed it."""
    pod: dict[str, Any] = deepcopy(decide_on(manifest).pod)
    pod["kind"] = "Pod"
    return pod


def of_job(manifest: dict[str, Any], template: dict[str, Any], **evidence: Any) -> Explanation:
    """Explain a pod of a Job with another template."""
    pod = admitted(manifest)
    pod["metadata"].update(OWNED)
    spec = {"template": {"metadata": template["metadata"], "spec": template["spec"]}}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": spec}
    fields = {"cluster_configuration": KNOWN_CONFIGURATION, "other_mutators": HARDENING, **evidence}
    return explain_with(pod, fields.pop("cluster_configuration"), owners=[owner], **fields)


@pytest.mark.parametrize(
    "cluster_configuration", [KNOWN_CONFIGURATION, None], ids=["known", "unknown"]
)
def test_a_variable(cluster_configuration: CompiledConfiguration | None) -> None:
    """It is named, with what may have added it; nobody is sent to the template."""
    warning = event("NoRDMA", "remove the variable", "Job", "train")
    explanation = of_job(
        new_pod(OFF), WITHOUT, cluster_configuration=cluster_configuration, events=[warning]
    )
    assert (explanation.rdma, explanation.answer.code) == ("no", "NcclIbDisabled")
    sentence = (
        "NCCL_IB_DISABLE=1 in container trainer: not in the pod template of Job train, so another "
        "webhook or a policy added it when the pod was created."
    )
    assert explanation.answer.text.endswith(f" {sentence}")
    remedy = (
        f"Check what changes pods at admission: {HARDENING[0]}. Correct the one that added it, and "
        "create the pod again."
    )
    assert explanation.answer.remedy == remedy
    finding = chapter_findings(explanation, "applied")[-1]
    assert (finding.code, finding.level, finding.text) == ("AddedAtAdmission", "error", sentence)
    reported = chapter_findings(explanation, "podStatus")[-1]
    assert (reported.code, reported.remedy) == ("NoRdma", remedy)


def test_a_variable_beside_config_maps() -> None:
    """What they have changes nothing: the message to remove the variable stays out."""
    answers = [
        of_job(new_pod(OFF), WITHOUT, config_maps=config_maps).answer
        for config_maps in ({}, {"tuning": {"NCCL_DEBUG": "INFO"}})
    ]
    assert answers[0] == answers[1]


def test_a_runtime_class_adds_no_variable() -> None:
    """The API server takes only labels, tolerations and the overhead from it."""
    isolated = new_pod(OFF, runtimeClassName="kata")
    answer = of_job(isolated, new_pod(runtimeClassName="kata"), runtime_class="kata").answer
    assert "so another webhook or a policy added it" in answer.text
    assert "kata" not in answer.text + answer.remedy


def test_what_is_in_the_template() -> None:
    """Then the remedy of the verdict is right."""
    explanation = of_job(new_pod(OFF), new_pod(OFF))
    assert explanation.answer.remedy.startswith(
        "If the job uses NCCL between nodes, remove NCCL_IB_DISABLE"
    )
    assert chapter_findings(explanation, "applied")[-1].code != "AddedAtAdmission"


@pytest.mark.parametrize(
    ("manifest", "template", "title"),
    [
        (
            new_pod(gpu("trainer", env=env(NCCL_IB_HCA="=mlx5_7"))),
            new_pod(gpu("trainer", env=env(NCCL_IB_HCA="=mlx5_0"))),
            "NCCL_IB_HCA==mlx5_7 in container trainer",
        ),
        (
            new_pod(gpu("trainer", securityContext={"runAsUser": 1000})),
            new_pod(gpu("trainer", securityContext={"privileged": False})),
            "securityContext.runAsUser: 1000 in container trainer",
        ),
        (
            new_pod(securityContext={"runAsUser": 1000}),
            new_pod(securityContext={"runAsUser": 0}),
            "securityContext.runAsUser: 1000 in the pod",
        ),
        (new_pod(hostUsers=False), WITHOUT, "hostUsers: false in the pod"),
        (
            new_pod(gpu("trainer", env=env(NCCL_DEBUG="INFO", NCCL_NET="Socket", UCX_TLS="tcp"))),
            new_pod(gpu("trainer", env=env(UCX_TLS="rc"))),
            "NCCL_NET=Socket in container trainer",
        ),
    ],
    ids=str,
)
def test_leaves(manifest: dict[str, Any], template: dict[str, Any], title: str) -> None:
    """Only what decides is named, not all that differs."""
    explanation = of_job(manifest, template)
    assert explanation.rdma in ("no", "unsure")
    assert chapter_findings(explanation, "applied")[-1].text.startswith(f"{title}: not in the pod")


def test_two_that_decide_together() -> None:
    """Without either, the verdict would be the same: both are named."""
    user = {"runAsUser": 1000}
    manifest = new_pod(gpu("trainer", securityContext=user), hostUsers=False)
    text = chapter_findings(of_job(manifest, WITHOUT), "applied")[-1].text
    assert text.startswith(
        "hostUsers: false in the pod, securityContext.runAsUser: 1000 in container trainer: not in"
    )


def test_a_variable_without_a_value() -> None:
    """It is named without its source."""
    source = {"configMapKeyRef": {"name": "a", "key": "b"}}
    item = {"name": "NCCL_NET", "valueFrom": source}
    text = chapter_findings(of_job(new_pod(gpu("trainer", env=[item])), WITHOUT), "applied")[-1]
    assert text.text.startswith("NCCL_NET in container trainer: not in the pod template")


def test_a_pod_that_was_applied() -> None:
    """Kubectl apply leaves the manifest in an annotation; without it, nothing is compared."""
    pod = admitted(new_pod(OFF))
    pod["metadata"]["annotations"][LAST_APPLIED] = json.dumps(WITHOUT)
    explanation = explain_with(pod, KNOWN_CONFIGURATION)
    assert "container trainer: not in the manifest that was applied, so" in explanation.answer.text
    assert explanation.answer.remedy.startswith(
        "Find out which webhook or policy made the addition"
    )
    for written in ("", "{", "[" * 9999, "[]", '{"spec": {"containers": [5]}}'):
        pod["metadata"]["annotations"][LAST_APPLIED] = written
        assert "another webhook" not in explain_with(pod, KNOWN_CONFIGURATION).answer.text
    pod["metadata"]["annotations"][LAST_APPLIED] = json.dumps(WITHOUT)
    pod["metadata"].update(OWNED)
    assert "another webhook" not in explain_with(pod, KNOWN_CONFIGURATION).answer.text


def test_verdicts_that_nothing_was_added_for() -> None:
    """A good verdict needs no author, and a changed pod has another explanation."""
    assert "another" not in of_job(WITHOUT, new_pod(OFF)).answer.text
    pod = admitted(new_pod(gpu("trainer", securityContext={"runAsUser": 1000})))
    pod["metadata"]["annotations"][LAST_APPLIED] = json.dumps(WITHOUT)
    main(pod)["env"].append({"name": "NCCL_IB_DISABLE", "value": "1"})
    explanation = explain_with(pod, KNOWN_CONFIGURATION)
    assert explanation.answer.code == "ChangedAfterwards"
    assert "AddedAtAdmission" not in [
        finding.code for finding in chapter_findings(explanation, "applied")
    ]


def test_many_leaves() -> None:
    """No more than thirty-two are examined."""
    containers = [OFF, *(gpu(f"c{number}", env=env(NCCL_NET="IB")) for number in range(20))]
    template = new_pod(*(gpu(item["name"]) for item in containers))
    explanation = of_job(new_pod(*containers), template)
    assert "NCCL_IB_DISABLE=1 in container trainer: not in" in explanation.answer.text
    containers.append(containers.pop(0))
    template = new_pod(*(gpu(item["name"]) for item in containers))
    late = of_job(new_pod(*containers), template)
    assert (late.rdma, "not in the pod template" in late.answer.text) == ("no", False)


def test_a_node_label() -> None:
    """The nodes are not compared again, but the nodeSelector is with the template."""
    nodes = build_fabric_index({"node-1": V100_NODE}, KNOWN_CONFIGURATION)
    manifest = new_pod(nodeSelector={"team": "a", "pool": "cpu"})
    pod = deepcopy(decide_on(manifest, decision_input(fabric_index=nodes)).pod) | {"kind": "Pod"}
    assert '"FabricNotSelected"' in pod["metadata"]["annotations"]["rdma.lab/status"]
    applied = new_pod(nodeSelector={"team": "a"})
    pod["metadata"]["annotations"][LAST_APPLIED] = json.dumps(applied)
    explanation = explain_with(pod, KNOWN_CONFIGURATION, other_mutators=HARDENING)
    assert explanation.answer.code == "FabricNotSelected"
    assert explanation.answer.text.endswith(
        "now. pool=cpu in nodeSelector: not in the manifest that was applied, so another webhook "
        "or a policy added it when the pod was created."
    )
    assert explanation.answer.remedy.startswith("Check what changes pods at admission")
    isolated = {**pod, "spec": {**pod["spec"], "runtimeClassName": "kata"}}
    of_class = explain_with(
        isolated, KNOWN_CONFIGURATION, other_mutators=HARDENING, runtime_class="kata"
    ).answer
    assert "so its RuntimeClass, another webhook or a policy added it" in of_class.text
    assert f"at admission: kata; {HARDENING[0]}. Correct" in of_class.remedy
    alone = explain_with(isolated, KNOWN_CONFIGURATION, runtime_class="kata").answer
    assert "at admission: kata. Correct" in alone.remedy
    remedies = {
        finding.code: finding.remedy for finding in chapter_findings(explanation, "applied")
    }
    assert remedies["SelectorUnknown"] == explanation.answer.remedy
    pod["metadata"]["annotations"][LAST_APPLIED] = json.dumps(manifest)
    own = explain_with(pod, KNOWN_CONFIGURATION, other_mutators=HARDENING)
    assert own.answer.remedy.startswith("Correct the pod's nodeSelector")
    remedies = {finding.code: finding.remedy for finding in chapter_findings(own, "applied")}
    assert remedies["SelectorUnknown"].startswith(
        "If `kubectl get nodes --show-labels` shows no node"
    )


def test_the_message_of_the_verdict_is_left_out() -> None:
    """It may ask to remove what the template does not have; the addition is named instead."""
    assert "remove the variable" not in of_job(new_pod(OFF), WITHOUT).answer.text
    assert "remove the variable" in of_job(new_pod(OFF), new_pod(OFF)).answer.text


@pytest.mark.parametrize(
    ("manifest", "code"),
    [
        (new_pod(gpu("trainer", securityContext={"runAsUser": 1000})), "NonRoot"),
        (new_pod(hostUsers=False), "UserNamespace"),
    ],
)
def test_remarks_on_an_addition(manifest: dict[str, Any], code: str) -> None:
    """Their remedy is that of the addition, too."""
    explanation = of_job(manifest, WITHOUT)
    remedies = {
        finding.code: finding.remedy for finding in chapter_findings(explanation, "applied")
    }
    assert remedies[code] == explanation.answer.remedy
    assert remedies[code].startswith("Check what changes pods at admission")
