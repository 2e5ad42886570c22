"""Short ways to build pods and fabrics, and to read the outcomes of a mutation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.api_server import defaulted, patched
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.decide.mutations import MUTATIONS
from webhook.decide.reasons import REASONS_OUTSIDE_MUTATIONS
from webhook.model.decision import REQUEST_CHECK, Decision, PatchOp
from webhook.model.fabric import (
    CompiledConfiguration,
    Defaults,
    Fabric,
    FabricEnv,
    RdmaResource,
    build_configuration,
)
from webhook.model.facts import NamespaceFacts
from webhook.model.nodes import FabricIndex
from webhook.model.pod import PodManifest

__all__ = [
    "H100",
    "V100",
    "container",
    "decide_on",
    "decision_input",
    "defaulted",
    "env",
    "fabric",
    "fabrics",
    "gpu",
    "ops",
    "outcomes_of",
    "patched",
    "pod",
    "quantities",
]

HASH = "0123456789ab"
#: The conditions of a node whose kubelet reports that it is ready.
READY = [{"type": "Ready", "status": "True"}]

V100 = Fabric(
    name="v100-ib",
    gpu_resources=frozenset({"nvidia.com/v100"}),
    node_labels={"nvidia.com/gpu.product": ("Tesla-V100-*",)},
    resources=(RdmaResource(name="rdma/v100", aliases=("rdma/hca",)),),
    env=FabricEnv(
        library_variables=(("NCCL_IB_HCA", "=mlx5_0,mlx5_1"),), ucx_devices="mlx5_0:1,mlx5_1:1"
    ),
    socket_interface="eth0",
    host_socket_interface="bond0",
)
H100 = Fabric(
    name="h100-roce",
    mode="sr-iov",
    link_layer="Ethernet",
    gpu_resources=frozenset({"nvidia.com/h100"}),
    node_labels={"nvidia.com/gpu.product": ("NVIDIA-H100-*",)},
    resources=(RdmaResource(name="nvidia.com/rail0", count=None, network="rails/rail0@net1"),),
)


def fabric(name: str = "plain", **fields: Any) -> Fabric:
    """Make a fabric with these fields, and defaults for the others."""
    return Fabric(name=name, **fields)


def fabrics(
    *members: Fabric, defaults: Mapping[str, Any] | None = None, **fields: Any
) -> CompiledConfiguration:
    """Make a configuration; without members, it has V100 and H100."""
    given = Defaults(**(defaults or {}))
    return build_configuration(members or (V100, H100), defaults=given, config_hash=HASH, **fields)


def decision_input(
    *members: Fabric,
    defaults: Mapping[str, Any] | None = None,
    namespace: NamespaceFacts | None = None,
    fabric_index: FabricIndex | None = None,
    assume_opted_in: bool = False,
    **fields: Any,
) -> DecisionInput:
    """Make the input of a decision: everything that it depends on besides the pod."""
    return DecisionInput(
        configuration=fabrics(*members, defaults=defaults, **fields),
        namespace=namespace or NamespaceFacts(name="lab"),
        fabric_index=fabric_index or FabricIndex(),
        assume_opted_in=assume_opted_in,
    )


def container(name: str = "trainer", **fields: Any) -> dict[str, Any]:
    """Make a container."""
    return {"name": name, "image": "lab/train", **fields}


def quantities(limits: Any = None, requests: Any = None) -> dict[str, Any]:
    """Write `resources` without a section that is not given."""
    sections = {"limits": limits, "requests": requests}
    return {section: written for section, written in sections.items() if written is not None}


def gpu(name: str = "trainer", count: Any = "1", **fields: Any) -> dict[str, Any]:
    """Make a container with a GPU of the fabric V100, and with further limits if given."""
    limits = {"nvidia.com/v100": count, **fields.pop("limits", {})}
    return container(name, **{"resources": quantities(limits), **fields})


def pod(
    *containers: dict[str, Any],
    annotations: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> PodManifest:
    """Make a pod that has opted in; without `containers`, it has one with a GPU."""
    written = {"rdma.lab/enable": "true", **(annotations or {})}
    metadata = {"name": "job", "namespace": "lab", "annotations": written}
    return {
        "metadata": {**metadata, **({"labels": labels} if labels else {})},
        "spec": {"containers": list(containers or (gpu(),)), **spec},
    }


def env(**values: str) -> list[dict[str, str]]:
    """Write the `env` of a container."""
    return [{"name": name, "value": value} for name, value in values.items()]


def decide_on(manifest: Any, cluster: DecisionInput | None = None) -> Decision:
    """Decide; check that the patch gives the decision's pod and that all reasons are declared."""
    decision = decide(manifest, cluster or decision_input())
    assert all(outcome.reason in _DECLARED[outcome.mutation] for outcome in decision.outcomes)
    if decision.patch:
        assert patched(manifest, list(decision.patch)) == decision.pod
    return decision


_DECLARED = {
    REQUEST_CHECK: REASONS_OUTSIDE_MUTATIONS,
    **{mutation.name: (*mutation.reasons, *REASONS_OUTSIDE_MUTATIONS) for mutation in MUTATIONS},
}


def outcomes_of(decision: Decision, mutation: str) -> list[tuple[str, str, str, str]]:
    """List the outcomes of one mutation: container, status, reason code, sentence."""
    return [
        (outcome.container, outcome.status, outcome.reason.code, outcome.message)
        for outcome in decision.outcomes
        if outcome.mutation == mutation
    ]


def ops(decision: Decision, mutation: str) -> list[PatchOp]:
    """List the patch operations of one mutation."""
    return [
        op for outcome in decision.outcomes if outcome.mutation == mutation for op in outcome.ops
    ]
