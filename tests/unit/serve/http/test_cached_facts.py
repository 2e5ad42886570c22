"""A changed fact about the cluster counts at once for a pod whose equal was decided before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders import container, gpu, pod, quantities
from tests.server_state import configured, learn, use
from tests.unit.serve.client import Lines
from webhook.config.load import parse_fabrics
from webhook.decide import decide
from webhook.model.decision import Decision
from webhook.model.fabric import CompiledConfiguration
from webhook.model.facts import Facts
from webhook.model.nodes import build_fabric_index
from webhook.serve.http.decision_cache import Answered
from webhook.serve.http.mutate import Mutate
from webhook.serve.metrics import Metrics
from webhook.serve.state import NodesChanged

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
_FABRICS = """\
apiVersion: rdma.lab/v1alpha1
kind: FabricConfiguration
spec:
  fabrics:
  - name: a
    match: {gpuResources: [nvidia.com/v100, nvidia.com/gpu]}
    resources: [{name: rdma/a}]
    hcas: [HCA]
  - name: b
    match: {gpuResources: [nvidia.com/gpu]}
    resources: [{name: rdma/b}]
"""
POD = pod(gpu(limits={"memory": "1Gi"}))


def fabrics(hca: str) -> CompiledConfiguration:
    """Read a configuration whose first fabric has this HCA."""
    return parse_fabrics(_FABRICS.replace("HCA", hca), "fabrics.yaml").compiled


def rule(kind: str, spec: Any, namespace: str = "lab") -> dict[str, Any]:
    """Make an object in a namespace."""
    return {"kind": kind, "metadata": {"name": "site", "namespace": namespace}, "spec": spec}


def space(name: str = "lab", **metadata: Any) -> dict[str, Any]:
    """Make a namespace with these labels and annotations."""
    return {"kind": "Namespace", "metadata": {"name": name, **metadata}}


def device(device_class: str) -> dict[str, Any]:
    """Make the spec of a claim of a device."""
    requests = [{"name": "any", "exactly": {"deviceClassName": device_class}}]
    return {"devices": {"requests": requests}}


def node(**amounts: str) -> dict[str, Any]:
    """Make a node that offers these amounts of RDMA, and GPUs."""
    offered = {f"rdma/{name}": amount for name, amount in amounts.items()}
    allocatable = {"nvidia.com/v100": "8", **offered}
    return {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": allocatable}}


class Server:
    """A replica that keeps decisions."""

    def __init__(self, *objects: Any) -> None:
        self.state = configured(fabrics("mlx5_0"), Facts.from_objects(objects))
        self.metrics = Metrics()
        self._app = self._application(self.metrics, 8)

    def _application(self, metrics: Metrics, max_decisions: int) -> Mutate:
        return Mutate(self.state, metrics, Lines().log, decide, max_decisions=max_decisions)

    def decision(self, manifest: Any = POD, namespace: str = "lab") -> Decision:
        """Return the decision on a pod, which is that of a replica that keeps nothing."""
        body = review(manifest, namespace)
        cached, new = (app.answer(body) for app in (self._app, self._application(Metrics(), 0)))
        assert json.loads(cached.body) == json.loads(new.body)
        assert cached.decision is not None
        assert new.decision is not None
        assert (
            Answered.of(cached.decision).copy_to_keep.decision
            == Answered.of(new.decision).copy_to_keep.decision
        )
        return new.decision

    def counts(self) -> tuple[float, ...]:
        """Return the number of decisions that were made and kept, and of hits."""
        value = self.metrics.registry.get_sample_value
        counter = "rdma_webhook_decision_cache_{}_total"
        return tuple(value(counter.format(event)) or 0 for event in ("misses", "hits"))


def review(manifest: Any, namespace: str) -> bytes:
    """Write the request for a pod."""
    request = {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": namespace,
        "object": manifest,
    }
    kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return json.dumps({**kind, "request": request}).encode()


AMBIGUOUS = pod(container(resources=quantities({"nvidia.com/gpu": "1"})))
BY_TEMPLATE, BY_NAME = (
    pod(gpu(), resourceClaims=[{"name": "any", field: "site"}])
    for field in ("resourceClaimTemplateName", "resourceClaimName")
)
BY_B = {"rdma.lab/fabric": "b"}
COUNTED = {"hard": {"limits.memory": "4Ti"}}
BOUNDED = {"limits": [{"type": "Container", "max": {"memory": "1Ti"}}]}
DEVICES = [device(name) for name in ("gpu.nvidia.com", "dranet")]
#: What changes in a cluster: a pod that depends on it, and the objects before and after.
CHANGES: dict[str, tuple[Any, ...]] = {
    "a namespace": (POD, [], [space()]),
    "a label": (POD, [space()], [space(labels=RESTRICTED)]),
    "an annotation": (AMBIGUOUS, [space()], [space(annotations=BY_B)]),
    "a LimitRange": (POD, [space()], [space(), rule("LimitRange", BOUNDED)]),
    "a ResourceQuota": (POD, [space()], [space(), rule("ResourceQuota", COUNTED)]),
    "a ResourceClaimTemplate": (
        BY_TEMPLATE,
        *([rule("ResourceClaimTemplate", {"spec": spec})] for spec in DEVICES),
    ),
    "a ResourceClaim": (BY_NAME, *([rule("ResourceClaim", spec)] for spec in DEVICES)),
}


@pytest.mark.parametrize(("manifest", "before", "after"), CHANGES.values(), ids=list(CHANGES))
def test_an_object_of_the_namespace(manifest: Any, before: Any, after: Any) -> None:
    """The next pod gets another decision, and the first one again after the change back."""
    server = Server(*before)
    decisions = [server.decision(manifest)]
    for objects in (after, before):
        learn(server.state, Facts.from_objects(objects))
        decisions += [server.decision(manifest), server.decision(manifest)]
    check(server, decisions)


def test_the_nodes() -> None:
    """The only node with RDMA gets it, and loses it."""
    server = Server(space(), node())
    configuration = fabrics("mlx5_0")

    def change(**amounts: str) -> None:
        nodes = Facts.from_objects([node(**amounts)]).nodes
        index = build_fabric_index(nodes, configuration)
        server.state.send(NodesChanged(nodes, {configuration.config_hash: index}))

    decisions = [server.decision()]
    for amounts in ({"a": "8"}, {}):
        change(**amounts)
        decisions += [server.decision(), server.decision()]
    check(server, decisions)


def test_the_configuration() -> None:
    """A new one counts, and so does the earlier one when it is restored."""
    server = Server(space())
    decisions = [server.decision()]
    for hca in ("mlx5_1", "mlx5_0"):
        use(server.state, fabrics(hca))
        decisions += [server.decision(), server.decision()]
    check(server, decisions)


@pytest.mark.parametrize(
    ("manifest", "other"),
    [
        (POD, space("other", labels=RESTRICTED)),
        (AMBIGUOUS, space("other", annotations=BY_B)),
        (POD, rule("ResourceQuota", COUNTED, "other")),
    ],
    ids=["Pod Security", "annotation", "quota"],
)
def test_equal_pods_of_two_namespaces(manifest: Any, other: Any) -> None:
    """Each pod gets the decision of its own namespace, in any order."""
    server = Server(space(), space("other"), other)
    decisions = [server.decision(manifest, name) for name in ("lab", "other", "other", "lab")]
    assert decisions[0] == decisions[3] != decisions[1] == decisions[2]
    assert server.counts() == (2, 2)


def check(server: Server, decisions: list[Decision]) -> None:
    """Check the decisions on five equal pods: after the first and the third, a fact changed."""
    assert decisions[0] == decisions[3] == decisions[4] != decisions[1] == decisions[2]
    assert server.counts() == (3, 2)
