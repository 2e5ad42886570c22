"""The decision that the webhook would make today, on the template of the pod."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.builders import V100, fabrics
from tests.unit.diagnose.why.pods import (
    ASKED,
    CONFIG,
    OWNED,
    chapter_findings,
    explain,
    job,
    namespace,
    pod_in_cluster,
    pod_without_call,
    status,
)
from webhook.diagnose.why.reasons import REASONS
from webhook.model.facts import Facts
from webhook.model.finding import Finding

GPU: dict[str, Any] = {"resources": {"limits": {"nvidia.com/v100": "1"}}}
CONFIGURATION = fabrics(V100)
CHANGED = replace(CONFIGURATION, config_hash="ba9876543210")


def today(pod: Any, *objects: Any, **evidence_fields: Any) -> Finding:
    """Return the finding; `objects` are facts of the cluster."""
    facts = Facts().with_objects(objects, "lab")
    (finding,) = chapter_findings(
        explain(pod, configuration=CONFIGURATION, facts=facts, **evidence_fields), "redecision"
    )
    return finding


def test_only_with_fabrics() -> None:
    """Without a fabrics file nothing is decided."""
    assert chapter_findings(explain(pod_in_cluster()), "redecision") == []


def test_the_cluster_has_other_fabrics_now() -> None:
    """They may equip a pod that has no certain RDMA, if it is created again."""

    def codes(annotations: dict[str, str], cluster_configuration: Any = CHANGED) -> list[str]:
        explanation = explain(
            pod_in_cluster(annotations), cluster_configuration=cluster_configuration
        )
        return [finding.code for finding in chapter_findings(explanation, "redecision")]

    doubtful = status("unsure", "FabricWithoutNodes")
    assert codes(doubtful) == codes(status("no", "FabricUnknown")) == ["ConfigurationChanged"]
    assert codes(doubtful, CONFIGURATION) == codes(doubtful, None) == []
    assert codes(status()) == codes(ASKED) == []
    unnamed = doubtful["rdma.lab/status"].replace(CONFIG, "")
    assert codes({**doubtful, "rdma.lab/status": unnamed}) == []


def test_other_fabrics_may_settle_a_reason_about_fabrics() -> None:
    """Then to create the pod again is the first remedy; it settles nothing that the pod sets."""

    def remedy(reason: str, cluster_configuration: Any = CHANGED) -> str:
        return explain(
            pod_in_cluster(status("unsure", reason)), cluster_configuration=cluster_configuration
        ).answer.remedy

    start = "Create the pod again: the fabrics of the cluster have changed since its admission. If "
    for reason in ("ResourceNotOffered", "FabricUnknown", "FabricAmbiguous", "GPUNotOnFabric"):
        usual = remedy(reason, CONFIGURATION)
        assert remedy(reason) == f"{start}the answer stays the same: {usual}"
        assert not usual.startswith(start)
    assert remedy("SettingPossible") == remedy("SettingPossible", CONFIGURATION)


def test_a_patched_pod_without_a_template() -> None:
    """A new decision on it would count our values as the user's."""
    finding = today(pod_in_cluster())
    assert finding.code == "NotComparable"
    assert "rdma-webhook preview" in finding.remedy


def test_a_pod_whose_status_cannot_be_read() -> None:
    """It may be patched, so only its template can be decided on; a copied status does not count."""
    unreadable = {**ASKED, "rdma.lab/status": "green"}
    assert today(pod_in_cluster(unreadable)).code == "NotComparable"
    owned = today(pod_in_cluster(unreadable, metadata=OWNED), owners=(job(asked=ASKED, **GPU),))
    assert owned.code == "WouldBe"
    assert today(pod_in_cluster({"rdma.lab/status": "green"})).code == "WouldBe"


def test_the_same() -> None:
    """The decision on the template equals the status."""
    finding = today(pod_in_cluster(metadata=OWNED), owners=(job(asked=ASKED, **GPU),))
    assert finding.text == (
        "As at admission, a pod from the template of Job train would be equipped for RDMA over "
        "v100-ib."
    )


def test_the_libraries_are_named() -> None:
    """As in a preview."""
    env = [{"name": "VLLM_NIXL_SIDE_CHANNEL_PORT", "value": "5600"}]
    finding = today(pod_in_cluster(metadata=OWNED), owners=(job(asked=ASKED, env=env, **GPU),))
    assert finding.text.endswith("would be equipped for RDMA over v100-ib with NIXL.")


def test_another_decision() -> None:
    """After a change of template or fabrics, a new pod would get another decision."""
    annotations = status("no", "FabricUnknown")
    finding = today(pod_in_cluster(annotations, metadata=OWNED), owners=(job(asked=ASKED, **GPU),))
    assert (finding.code, finding.level) == ("OtherToday", "ok")
    assert finding.text.startswith(
        "Unlike at admission, a pod from the template of Job train would be equipped for RDMA"
    )
    assert finding.remedy == "Create the pod again to get a new decision."
    worse = today(pod_in_cluster(metadata=OWNED), owners=(job(asked=ASKED),))
    assert worse.level == "error"
    assert worse.text.startswith(
        "Unlike at admission, a pod from the template of Job train would have no RDMA: no "
    )
    assert worse.remedy.startswith("Create the pod again to get a new decision. Request a GPU")
    container_fields = {**GPU, "securityContext": {"runAsUser": 1000}}
    unsure = today(pod_in_cluster(metadata=OWNED), owners=(job(asked=ASKED, **container_fields),))
    assert unsure.level == "unsure"
    assert "Job train might have no RDMA: " in unsure.text


def test_a_pod_that_was_not_seen() -> None:
    """It is decided on unchanged, as if it had opted in."""
    pod = pod_without_call(limits={"nvidia.com/v100": "1"})
    finding = today(pod, namespace=namespace({}))
    assert finding.code == "WouldBe"
    assert finding.text == (
        "If the webhook were called for this pod, the pod would be equipped for RDMA over v100-ib."
    )
    assert today(pod_in_cluster({}, limits={"nvidia.com/v100": "1"})).code == "WouldBe"


def test_a_pod_with_rdma_of_its_own() -> None:
    """It is on no fabric that could be named."""
    pod = pod_without_call()
    volume = {"name": "ib", "hostPath": {"path": "/dev/infiniband"}}
    pod["spec"] |= {"hostNetwork": True, "volumes": [volume]}
    pod["spec"]["containers"][0] |= {
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "ib", "mountPath": "/dev/infiniband"}],
    }
    assert today(pod).text == (
        "If the webhook were called for this pod, the pod would be equipped for RDMA."
    )


def test_a_pod_that_would_be_denied() -> None:
    """The finding has the denial."""
    pod = pod_without_call()
    pod["metadata"]["annotations"]["rdma.lab/fabric"] = "nowhere"
    finding = today(pod)
    assert "were called for this pod, the pod would be denied: " in finding.text
    assert finding.remedy == REASONS["InvalidAnnotation"][0].reason.remedy
    assert "InvalidAnnotation" not in finding.text


def test_facts_count() -> None:
    """The fabric of the namespace and the resources of the nodes influence the decision."""
    labeled = namespace()
    labeled["metadata"]["annotations"] = {"rdma.lab/fabric": "v100-ib"}
    pod = pod_without_call(limits={"nvidia.com/gpu": "1"})
    assert "which no known node of fabric v100-ib offers" in today(pod, labeled).text
    assert "equipped" not in today(pod).text
    both = {"nvidia.com/gpu": "8", "rdma/v100": "1"}
    metadata = {"name": "node-1", "labels": {"nvidia.com/gpu.product": "Tesla-V100-SXM2"}}
    node = {"kind": "Node", "metadata": metadata, "status": {"allocatable": both}}
    assert "equipped" in today(pod, labeled, node).text


def test_a_template_of_other_containers() -> None:
    """A pod is compared only with a template that it matches."""
    other = job(asked=ASKED, **GPU)
    other["spec"]["template"]["spec"]["containers"][0]["name"] = "other"
    assert today(pod_in_cluster(metadata=OWNED), owners=(other,)).code == "NotComparable"
    labeled = job(asked=ASKED, **GPU)
    labeled["spec"]["template"]["metadata"]["labels"] = {"role": "launcher"}
    assert today(pod_in_cluster(metadata=OWNED), owners=(labeled,)).code == "NotComparable"
