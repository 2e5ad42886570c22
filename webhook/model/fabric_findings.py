"""What is wrong with fabrics and their nodes, as findings.

The text of a finding only gives the number of nodes, since not everyone may see their names; the
names are in its location.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from webhook.model.fabric import CompiledConfiguration, Fabric
from webhook.model.finding import Code, Finding, Level, Location
from webhook.model.names import counted, natural_key
from webhook.model.node_availability import CORDONED, NOT_READY
from webhook.model.nodes import NodeGroup
from webhook.model.resources import is_gpu, is_rdma

_FABRIC_WITHOUT_NODES = Code(
    "FabricWithoutNodes",
    "No node belongs to the fabric.",
    "Compare the fabric's `match` with the nodes that should belong to it: their labels, and the "
    "GPUs and RDMA resources that they offer.",
)
_NO_NODE_TAKES_PODS = Code(
    "NoNodeTakesPods",
    "Nodes belong to the fabric, but each is cordoned, not ready or tainted by Kubernetes.",
    "Correct the problems that `rdma-webhook fabrics` lists for the fabric's nodes; until then, "
    "pods for the fabric stay pending.",
)
_NODE_CORDONED = Code(
    "NodeCordoned",
    "Nodes of the fabric are cordoned, so no new pods are placed on them.",
    "If the maintenance of a node is over, run `kubectl uncordon NODE`.",
)
_NODE_NOT_READY = Code(
    "NodeNotReady",
    "Nodes of the fabric are not ready, or their kubelets have never reported to the API server.",
    "Check whether the kubelet of each of these nodes is running and can reach the API server; "
    "`kubectl describe node NODE` shows the condition Ready with its reason.",
)
_NODE_TAINTED_BY_KUBERNETES = Code(
    "NodeTaintedByKubernetes",
    "Kubernetes has added a taint, such as `node.kubernetes.io/disk-pressure`, to nodes of the "
    "fabric, and keeps pods that do not tolerate it away from them.",
    "Correct the cause, which `kubectl describe node NODE` shows. Kubernetes then removes the "
    "taint.",
)
_NODE_TAINTED = Code(
    "NodeTainted",
    "Nodes of the fabric have a taint, so only pods that tolerate it run there. A taint whose key "
    "is the name of a GPU or RDMA resource is not reported.",
)
_RESOURCE_NOT_OFFERED = Code(
    "ResourceNotOffered",
    "One of the fabric's RDMA resources is offered by no node of the fabric, or only by nodes "
    "that take no pods.",
    "Check the name of the resource in the configuration, and whether the device plugin that "
    "offers it is running on nodes that take pods.",
)
_NODE_WITHOUT_RESOURCE = Code(
    "NodeWithoutResource",
    "Some nodes of the fabric lack one of its RDMA resources.",
    "Check that the device plugin that offers the resource is running on each of these nodes, "
    "which `rdma-webhook fabrics` names.",
)
_WHERE_NODES_ARE_NAMED = (
    "Check that the device plugin that offers the resource is running on each node named above."
)
NODE_WITHOUT_FABRIC = Code(
    "NodeWithoutFabric",
    "Some nodes offer GPUs or RDMA resources, or have a label that a fabric requires, but belong "
    "to no fabric.",
    "If a node should belong to the fabric that the finding names as nearest, correct its labels, "
    "or make it offer a resource that the finding names. If its labels and resources are right, "
    "extend that fabric's `match` instead.",
)
NODE_IN_SEVERAL_FABRICS = Code(
    "NodeInSeveralFabrics",
    "Some nodes match several fabrics.",
    "Give the fabrics `gpuProducts` or `nodeLabels` that distinguish their nodes.",
)
CODES = (
    _FABRIC_WITHOUT_NODES,
    _NO_NODE_TAKES_PODS,
    _NODE_CORDONED,
    _NODE_NOT_READY,
    _NODE_TAINTED_BY_KUBERNETES,
    _NODE_TAINTED,
    _RESOURCE_NOT_OFFERED,
    _NODE_WITHOUT_RESOURCE,
    NODE_WITHOUT_FABRIC,
    NODE_IN_SEVERAL_FABRICS,
)

_BY_CODE = {code.code: code for code in CODES}


def without_nodes(finding: Finding) -> Finding:
    """Return a finding for a reader who may not see the names of nodes."""
    return finding._replace(location=Location(), remedy=_BY_CODE[finding.code].remedy)


#: The verbs of one node, and of more.
_ARE, _HAVE = ("is", "are"), ("has", "have")


def findings_of(
    fabric: Fabric, groups: Sequence[NodeGroup], configuration: CompiledConfiguration
) -> Iterator[Finding]:
    """Yield what is wrong with a fabric whose nodes are these groups, and then their taints."""
    if not groups:
        yield _FABRIC_WITHOUT_NODES.finding("error", "no node belongs to the fabric")
        return
    yield from _unavailable_nodes(groups)
    for resource in fabric.resources:
        yield from _nodes_without(resource.name, groups, configuration)
    yield from _tainted_nodes(groups, configuration)


def _unavailable_nodes(groups: Sequence[NodeGroup]) -> Iterator[Finding]:
    if not any(group.takes_pods for group in groups):
        yield _NO_NODE_TAKES_PODS.finding("error", "no node of the fabric takes pods")
    obstacles = [(name, group) for group in groups for name in group.availability.obstacles]
    for obstacle, nodes in _nodes_by_cause(obstacles).items():
        if obstacle == CORDONED:
            yield _on_nodes(_NODE_CORDONED, "warning", nodes, _ARE, obstacle)
        elif obstacle == NOT_READY:
            yield _on_nodes(_NODE_NOT_READY, "error", nodes, _ARE, obstacle)
        else:
            state = f"the taint {obstacle}"
            yield _on_nodes(_NODE_TAINTED_BY_KUBERNETES, "error", nodes, _HAVE, state)


def _nodes_without(
    resource: str, groups: Sequence[NodeGroup], configuration: CompiledConfiguration
) -> Iterator[Finding]:
    lacking = [group for group in groups if resource not in group.resources]
    if len(lacking) == len(groups):
        yield _RESOURCE_NOT_OFFERED.finding("error", f"no node offers {resource}")
        return
    available = [group for group in groups if group.takes_pods]
    if available and not any(resource in group.resources for group in available):
        text = f"no node that takes pods offers {resource}"
        yield _RESOURCE_NOT_OFFERED.finding("error", text)
    defects = [(_defect(resource, group, configuration), group) for group in lacking]
    for defect, nodes in _nodes_by_cause(defects).items():
        finding = _on_nodes(_NODE_WITHOUT_RESOURCE, "error", nodes, _HAVE, defect)
        yield finding._replace(remedy=_WHERE_NODES_ARE_NAMED)


def _defect(resource: str, group: NodeGroup, configuration: CompiledConfiguration) -> str:
    gpus = sorted(gpu for gpu in group.resources if is_gpu(gpu, configuration))
    return f"the GPU {gpus[0]}, but not {resource}" if gpus else f"no {resource}"


#: The maximum number of taints with a finding of their own: there may be one for each node.
_MAX_TAINTS = 4


def _tainted_nodes(
    groups: Iterable[NodeGroup], configuration: CompiledConfiguration
) -> Iterator[Finding]:
    """Yield the taints for which pods need a toleration, such as those of dedicated nodes.

    Pods with GPUs or RDMA resources usually tolerate taints that have the names of these: the
    admission plugin ExtendedResourceToleration adds the tolerations, as clouds do.
    """
    tainted = [
        (key, group)
        for group in groups
        for key in group.availability.taint_keys
        if not is_gpu(key, configuration) and not is_rdma(key, configuration)
    ]
    own = [*dict.fromkeys(key for key, _ in tainted)][:_MAX_TAINTS]
    causes = [
        (f"the taint {key}, so only pods that tolerate it run there", group)
        if key in own
        else ("still other taints", group)
        for key, group in tainted
    ]
    for state, nodes in _nodes_by_cause(causes).items():
        yield _on_nodes(_NODE_TAINTED, "info", nodes, _HAVE, state)


def _nodes_by_cause(causes: Iterable[tuple[str, NodeGroup]]) -> dict[str, tuple[str, ...]]:
    """Return the nodes of each cause, in natural order."""
    nodes: dict[str, set[str]] = {}
    for cause, group in causes:
        nodes.setdefault(cause, set()).update(group.names)
    return {cause: tuple(sorted(names, key=natural_key)) for cause, names in nodes.items()}


def _on_nodes(
    code: Code, level: Level, nodes: tuple[str, ...], verbs: tuple[str, str], state: str
) -> Finding:
    """Return a finding on nodes: "2 nodes are cordoned"."""
    text = f"{counted(len(nodes), 'node')} {verbs[len(nodes) > 1]} {state}"
    return code.finding(level, text, location=Location(nodes=nodes))
