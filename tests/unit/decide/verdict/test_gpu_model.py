from __future__ import annotations

from typing import Any

import pytest

from tests.builders import V100, decision_input, fabric, pod
from tests.case_names import case_name
from tests.unit.decide.verdict.judging import judged, verdict_on
from webhook.decide.analysis import DecisionInput
from webhook.model.fabric import RdmaResource
from webhook.model.nodes import FabricIndex

EQUIPPED = ("yes", "Equipped")
UNKNOWN = ("unsure", "GPUModelUnknown")
GKE = "cloud.google.com/gke-accelerator"
RESOURCES = (RdmaResource(name="rdma/x"),)
#: A fabric of all nodes that offer the GPU, of any model.
ANY = fabric("any", gpu_resources=V100.gpu_resources, resources=RESOURCES)
H100 = fabric(
    "h100",
    gpu_resources=V100.gpu_resources,
    node_labels={"nvidia.com/gpu.product": ("NVIDIA-H100-*", "NVIDIA-A100-SXM4-*")},
    resources=RESOURCES,
)


@pytest.mark.parametrize(
    "key",
    [
        *(GKE, "nvidia.com/gpu.product", "k8s.amazonaws.com/accelerator"),
        *("karpenter.k8s.aws/instance-gpu-name", "gpu.nvidia.com/model", "gpu.nvidia.com/class"),
    ],
)
def test_a_model_that_the_fabric_does_not_list_may_be_elsewhere(key: str) -> None:
    """The pod then stays pending: no node has both its GPU and its RDMA resource."""
    verdict = verdict_on(pod(nodeSelector={key: "nvidia-l4"}), decision_input(ANY))
    assert (verdict.rdma, verdict.because.code) == UNKNOWN
    assert verdict.message == (
        "GPU nvidia-l4 might not be on fabric any; if it is, set rdma.lab/fabric (the pod selects "
        f"that GPU by label {key})"
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("nvidia-h100-80gb", EQUIPPED),
        ("H100_NVLINK_80GB", EQUIPPED),
        ("nvidia-tesla-a100", EQUIPPED),
        ("nvidia-h200-141gb", UNKNOWN),
        ("a800-sxm4", UNKNOWN),
        ("xh100", UNKNOWN),
        ("", UNKNOWN),
    ],
    ids=case_name,
)
def test_products_of_the_fabric_are_recognized(value: str, expected: tuple[str, str]) -> None:
    """Clouds write the model in their own way; the kind of socket is not the model."""
    assert judged(pod(nodeSelector={GKE: value}), decision_input(H100)) == expected


def required(*values: str, operator: str = "In") -> dict[str, Any]:
    """Require one of these values by affinity."""
    expression = {"key": GKE, "operator": operator, "values": list(values)}
    terms = [{"matchExpressions": [expression]}]
    node_affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": node_affinity}


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (required("nvidia-l4"), UNKNOWN),
        (required("nvidia-l4", "nvidia-h100-80gb"), EQUIPPED),
        (required(operator="Exists"), EQUIPPED),
        (required("nvidia-l4", operator="NotIn"), EQUIPPED),
    ],
    ids=("other", "one of them", "any", "not"),
)
def test_affinity_counts_too(affinity: dict[str, Any], expected: tuple[str, str]) -> None:
    """A single matching value is enough, since the scheduler may choose it."""
    assert judged(pod(affinity=affinity), decision_input(H100)) == expected


@pytest.mark.parametrize(
    "cluster",
    [
        decision_input(fabric("x", gpu_resources=ANY.gpu_resources, resources=RESOURCES,
                       node_labels={GKE: ("nvidia-l4",)})),
        decision_input(fabric("x", gpu_resources=ANY.gpu_resources, resources=RESOURCES,
                       pin_selector={GKE: "nvidia-l4"})),
        decision_input(ANY, fabric_index=FabricIndex(
            by_gpu_model={(GKE, "nvidia-l4"): frozenset({"any"})})),
    ],
    ids=("listed", "pinned", "a node has it"),
)  # fmt: skip
def test_the_configuration_or_the_nodes_settle_it(cluster: DecisionInput) -> None:
    """Either shows that such nodes are on the fabric."""
    assert judged(pod(nodeSelector={GKE: "nvidia-l4"}), cluster) == EQUIPPED


def test_nodes_of_another_fabric_do_not() -> None:
    """They have the model, but not this fabric."""
    nodes = FabricIndex(by_gpu_model={(GKE, "nvidia-l4"): frozenset({"other"})})
    assert (
        judged(pod(nodeSelector={GKE: "nvidia-l4"}), decision_input(ANY, fabric_index=nodes))
        == UNKNOWN
    )


def test_a_named_fabric_settles_it() -> None:
    """The annotation means that the nodes are on it."""
    manifest = pod(nodeSelector={GKE: "nvidia-l4"}, annotations={"rdma.lab/fabric": "any"})
    assert judged(manifest, decision_input(ANY)) == EQUIPPED


def test_other_labels_are_no_model() -> None:
    """A pool may have any nodes."""
    assert judged(pod(nodeSelector={"pool": "nvidia-l4"}), decision_input(ANY)) == EQUIPPED
    assert judged(pod(affinity={}), decision_input(ANY)) == EQUIPPED
