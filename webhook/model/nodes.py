"""Nodes as values: their labels and extended resources, and which fabrics they belong to.

An inventory is compiled from all nodes of a cluster, and a decision reads it in O(1). Nodes that
are the same to the fabrics form a group, so that what is done for each of ten thousand nodes is
little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from webhook.errors import ShapeError
from webhook.model.fabric import Fabric, Fabrics
from webhook.model.objects import ClusterNode
from webhook.model.pod import Path, dotted
from webhook.model.pod.reading import as_text
from webhook.model.quantity import to_integer

#: The label with which the kubelet says on which host it runs.
HOSTNAME = "kubernetes.io/hostname"
#: The label by which GPU feature discovery names the product, and `gpuProducts` of the fabrics.
PRODUCT = "nvidia.com/gpu.product"
#: The labels by which nodes name the model of their GPUs: GPU feature discovery, GKE, EKS's
#: autoscaler, Karpenter, CoreWeave.
GPU_MODEL_LABELS = (
    PRODUCT,
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "gpu.nvidia.com/model",
    "gpu.nvidia.com/class",
)
_LABELS: Path = ("metadata", "labels")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What a decision needs to know about one node."""

    labels: Mapping[str, str]
    resources: Mapping[str, int]  #: extended resource → how many are allocatable, above zero


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInventory:
    """Indexes from nodes, GPUs and resources to fabrics: compiled once, O(1) for each pod."""

    #: Node name, and kubernetes.io/hostname → names of the fabrics that the node may belong to.
    by_node: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: GPU resource → names of the fabrics with a node that offers it.
    by_gpu: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Extended resource → name of each fabric with a node that offers it → the most on one node.
    offering: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: Two extended resources → names of the fabrics with a node that offers both.
    together: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    #: Names of the fabrics with at least one node.
    inhabited: frozenset[str] = frozenset()
    #: Names of the fabrics with a node that offers one of their GPU resources.
    with_gpus: frozenset[str] = frozenset()
    #: Label in GPU_MODEL_LABELS, value → names of the fabrics with such a node.
    by_gpu_model: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    #: The keys of all labels that any node has.
    label_keys: frozenset[str] = frozenset()


class NodeGroup(NamedTuple):
    """Nodes with the same resources, and the same values of the labels that matter."""

    names: list[str]
    #: The labels that fabrics list, or that name a GPU model; those that the nodes have.
    labels: Mapping[str, str]
    resources: Mapping[str, int]
    #: Names of the fabrics that the nodes may belong to.
    homes: frozenset[str]


def node_of(item: Mapping[str, object]) -> Node:
    """Return the facts of a Node object; ShapeError if it did not come from an API server."""
    node = ClusterNode(item)
    labels = node.labels
    if not all(isinstance(value, str) for value in labels.values()):
        labels = {key: as_text(labels[key], (*_LABELS, key)) or "" for key in labels}
    field = "allocatable" if node.allocatable else "capacity"
    offered = node.allocatable or node.capacity
    where = ("status", field)
    amounts = {name: _amount(offered[name], (*where, name)) for name in offered if "/" in name}
    return Node(labels=labels, resources={name: many for name, many in amounts.items() if many})


def _amount(written: object, path: Path) -> int:
    try:
        return to_integer(written)
    except ValueError as error:
        raise ShapeError(f"{dotted(path)}: {error}") from None


def groups_of_nodes(nodes: Mapping[str, Node], fabrics: Fabrics) -> list[NodeGroup]:
    """Put nodes that are the same to the fabrics into groups, in the order of the nodes."""
    keys = tuple(dict.fromkeys((*fabrics.by_label, *GPU_MODEL_LABELS)))
    groups: dict[tuple[object, ...], NodeGroup] = {}
    for name, node in nodes.items():
        values = tuple(map(node.labels.get, keys))
        same = (values, tuple(node.resources.items()))
        group = groups.get(same)
        if group is None:
            labels = {
                key: value for key, value in zip(keys, values, strict=True) if value is not None
            }
            homes = _homes(labels, node.resources, fabrics)
            group = groups[same] = NodeGroup([], labels, node.resources, homes)
        group.names.append(name)
    return list(groups.values())


def inventory_of(nodes: Mapping[str, Node], fabrics: Fabrics) -> NodeInventory:
    """Map nodes, GPUs and resources to fabrics; call this once per change of either."""
    groups = groups_of_nodes(nodes, fabrics)
    by_node = {name: group.homes for group in groups for name in group.names}
    hosts = {node.labels.get(HOSTNAME, name): by_node[name] for name, node in nodes.items()}
    by_gpu: dict[str, frozenset[str]] = {}
    offering: dict[str, dict[str, int]] = {}
    together: dict[tuple[str, str], frozenset[str]] = {}
    by_model: dict[tuple[str, str], frozenset[str]] = {}
    for _, labels, resources, homes in groups:
        for gpu in resources.keys() & fabrics.by_gpu.keys():
            _add(by_gpu, gpu, homes & fabrics.by_gpu[gpu])
        for resource, many in resources.items():
            most = offering.setdefault(resource, {})
            most.update({home: max(many, most.get(home, 0)) for home in homes})
            for other in resources.keys() & fabrics.by_resource.keys():
                _add(together, (resource, other), homes)
        for key in labels.keys() & GPU_MODEL_LABELS:
            _add(by_model, (key, labels[key]), homes)
    return NodeInventory(
        by_node={**by_node, **hosts},
        by_gpu=by_gpu,
        offering=offering,
        together=together,
        by_gpu_model=by_model,
        inhabited=frozenset[str]().union(*(group.homes for group in groups)),
        with_gpus=frozenset[str]().union(*by_gpu.values()),
        label_keys=frozenset[str]().union(*(node.labels for node in nodes.values())),
    )


_Key = TypeVar("_Key")


def _add(index: dict[_Key, frozenset[str]], key: _Key, homes: frozenset[str]) -> None:
    index[key] = index.get(key, frozenset()) | homes


def _homes(
    labels: Mapping[str, str], resources: Mapping[str, int], fabrics: Fabrics
) -> frozenset[str]:
    """Return the fabrics whose `match` fits nodes, or else those whose own resource they offer.

    The resource replaces the fabric's GPUs, never its labels: these are what the site chose.
    """
    labelled = [one for one in fabrics.fabrics.values() if _labels_fit(labels, one, fabrics)]
    matching = frozenset(one.name for one in labelled if _matches(resources, one, fabrics))
    return matching or frozenset(
        one.name for one in labelled if not fabrics.own_resources[one.name].isdisjoint(resources)
    )


def _labels_fit(labels: Mapping[str, str], fabric: Fabric, fabrics: Fabrics) -> bool:
    return all(
        key in labels and fabrics.by_label[key][fabric.name].match(product_of(key, labels[key]))
        for key in fabric.node_labels
    )


def _matches(resources: Mapping[str, int], fabric: Fabric, fabrics: Fabrics) -> bool:
    """Return whether nodes match that the labels fit: by a GPU, or by labels alone.

    A `match` without GPUs and labels is for all nodes, unless the fabric has a resource of its own.
    """
    if fabric.gpu_resources:
        return not fabric.gpu_resources.isdisjoint(resources)
    return bool(fabric.node_labels) or not fabrics.own_resources[fabric.name]


def product_of(key: str, value: str) -> str:
    """Strip the suffixes that GPU feature discovery appends to a product: `-SHARED`, `-MIG-1g.5gb`.

    Source: k8s-device-plugin, internal/lm (gpu.product of shared and of MIG devices).
    """
    if key != PRODUCT:
        return value
    return value.split("-MIG-", 1)[0].removesuffix("-SHARED")
