from __future__ import annotations

from typing import Any

import pytest

from tests.builders import V100, container, decision_input, gpu, pod, quantities
from tests.case_names import case_name
from webhook.decide.analysis import RdmaAccess
from webhook.decide.examine import (
    FABRIC_NOT_NEEDED,
    MIRROR_POD,
    WINDOWS_POD,
    Applicability,
    Examination,
    examine,
    ineligible,
)
from webhook.decide.examine.fabric_choice import FABRIC_UNKNOWN
from webhook.decide.examine.foreign_nic import FOREIGN_NIC, FOREIGN_REMEDY
from webhook.decide.examine.targets import NO_TARGET
from webhook.model.annotations import UserAnnotations
from webhook.model.decision import Denial
from webhook.model.nodes import FabricIndex
from webhook.model.pod import Pod, PodManifest

PRODUCT = "nvidia.com/gpu.product"
PRODUCT_ELSEWHERE = f"no fabric lists the label nvidia.com/gpu; a GPU's product is in {PRODUCT}"

CLAIMED_BY_NONE = f"a NIC that no fabric lists; {FOREIGN_REMEDY}"


def examined(manifest: PodManifest, annotations: UserAnnotations | None = None) -> Examination:
    """Examine a pod with the two fabrics."""
    return examine(Pod(manifest), annotations or UserAnnotations(), decision_input())


@pytest.mark.parametrize(
    ("annotations", "spec", "reason"),
    [
        ({}, {}, None),
        ({}, {"os": {"name": "linux"}, "nodeSelector": {"kubernetes.io/os": "linux"}}, None),
        ({"kubernetes.io/config.mirror": ""}, {"os": {"name": "windows"}}, MIRROR_POD),
        ({}, {"os": {"name": "windows"}}, WINDOWS_POD),
        ({}, {"nodeSelector": {"kubernetes.io/os": "windows"}}, WINDOWS_POD),
        ({}, {"nodeSelector": {"beta.kubernetes.io/os": "windows"}}, WINDOWS_POD),
    ],
    ids=case_name,
)
def test_some_pods_are_none_for_us(annotations: Any, spec: Any, reason: Any) -> None:
    """These are mirrors of static pods, and Windows pods."""
    exclusion = ineligible(Pod(pod(annotations=annotations, **spec)))
    assert (exclusion and exclusion.reason) is reason


def test_a_scope_holds_what_mutations_may_know() -> None:
    """The analysis has the targets, the fabric, the namespace and the incoming pod."""
    manifest = pod(gpu(), container("proxy"), hostNetwork=True)
    examination = examined(manifest)
    analysis = examination.analysis
    applicability, evidence = (
        Applicability(RdmaAccess.FABRIC),
        "nvidia.com/v100 in container trainer",
    )
    assert examination == Examination(analysis, applicability, FabricIndex(), evidence)
    assert [target.name for target in analysis.targets] == ["trainer"]
    assert [app.name for app in analysis.original.containers] == ["trainer", "proxy"]
    assert (analysis.fabric, analysis.launchers, analysis.original.host_network) == (V100, (), True)
    assert analysis.original.manifest is manifest
    assert analysis.namespace.name == "lab"


@pytest.mark.parametrize("written", [None, False, "true", 1], ids=repr)
def test_only_true_is_the_host_network(written: Any) -> None:
    """Values that the API server rejects do not count as hostNetwork."""
    assert examined(pod(hostNetwork=written)).analysis.original.host_network is False


def test_a_gpu_outside_the_targets_is_evidence_too() -> None:
    """A GPU in a container that is not a target counts: all containers run on one node."""
    manifest = pod(gpu("a"), container("b"))
    examination = examined(manifest, UserAnnotations(containers=("b",)))
    assert (examination.analysis.fabric, examination.fabric_evidence) == (
        V100,
        "nvidia.com/v100 in container a",
    )
    with pytest.raises(Denial, match="implies fabric h100-roce, but"):
        examined(manifest, UserAnnotations(containers=("b",), fabric="h100-roce"))


def test_a_foreign_nic_counts_in_targets_only() -> None:
    """A sidecar's own NIC does not matter."""
    nic = container("b", resources=quantities({"vpc.amazonaws.com/efa": "1"}))
    assert examined(pod(gpu("a"), nic)).applicability.reason is None
    examination = examined(pod(gpu("a"), nic), UserAnnotations(containers=("a", "b")))
    assert (examination.fabric_evidence, examination.applicability) == (
        "",
        Applicability(
            RdmaAccess.ANY_NIC,
            FOREIGN_NIC,
            f"vpc.amazonaws.com/efa in container b is {CLAIMED_BY_NONE}",
        ),
    )


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (pod(container()), NO_TARGET),
        (pod(container(), nodeSelector={PRODUCT: "NVIDIA-H100-80GB"}), NO_TARGET),
        (pod(container(resources=quantities({"nvidia.com/gpu": "1"}))), FABRIC_UNKNOWN),
    ],
    ids=case_name,
)
def test_no_target_is_reported_before_no_fabric(manifest: PodManifest, reason: Any) -> None:
    """A pod that gets nothing needs no fabric, so the missing target is reported."""
    examination = examined(manifest)
    assert (
        examination.analysis.fabric,
        examination.fabric_evidence,
        examination.applicability.reason,
    ) == (
        None,
        "",
        reason,
    )
    assert examination.applicability.message


def test_a_device_that_no_fabric_claims_is_named() -> None:
    """A site that forgot to list a GPU resource learns its name."""
    manifest = pod(container(resources=quantities({"example.com/h200": "8", "cpu": "1"})))
    assert examined(manifest).applicability.message == (
        "container trainer requests example.com/h200, which no fabric lists; if "
        "example.com/h200 is a GPU, add it to gpuResources of the fabric that has it"
    )


def test_an_annotation_of_another_vendor_counts_even_alone() -> None:
    """It counts even without other annotations, as in a preview of a pod that did not opt in."""
    manifest = pod(gpu())
    manifest["metadata"]["annotations"] = {"networking.gke.io/interfaces": "[{}]"}
    assert examined(manifest).applicability.reason is FOREIGN_NIC


def test_a_launcher_without_a_fabric_has_no_problem() -> None:
    """The reason for its unknown fabric only closes the mutations that need one."""
    applicability = examined(pod(container(command=["mpirun", "-H", "a,b", "x"]))).applicability
    assert applicability == Applicability(RdmaAccess.NONE, not_needed=True)
    assert applicability.skip_reason is FABRIC_NOT_NEEDED


@pytest.mark.parametrize(
    ("fields", "sentences"),
    [
        ({}, ()),
        (
            {"nodeSelector": {"nvidia.com/gpu": "NVIDIA-H100-80GB"}},
            (PRODUCT_ELSEWHERE,),
        ),
    ],
    ids=case_name,
)
def test_labels_that_lead_nowhere_are_reported(fields: Any, sentences: tuple[str, ...]) -> None:
    """They are reported for pods with targets whose fabric is not known otherwise."""
    unclaimed = container(resources=quantities({"nvidia.com/gpu": "1"}))
    assert examined(pod(unclaimed, **fields)).unknown_label_messages == sentences
    assert examined(pod(gpu(), **fields)).unknown_label_messages == ()
    assert examined(pod(container(), **fields)).unknown_label_messages == ()
