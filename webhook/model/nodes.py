"""Nodes: their labels, their extended resources and their fabrics.

An index is compiled from all nodes of a cluster, and a decision reads it in O(1). Nodes that
the fabrics do not distinguish form a group, so that the work per node stays small even with ten
thousand nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from webhook.errors import ShapeError
from webhook.model.equivalent_nodes import NO_CLASSES, EquivalenceClasses, EquivalentNodes, refine
from webhook.model.fabric import CompiledConfiguration, Fabric
from webhook.model.node_availability import AVAILABLE, Availability, availability_of
from webhook.model.objects import ClusterNode
from webhook.model.pod import Path, dotted
from webhook.model.pod.node_selection import HOSTNAME
from webhook.model.pod.reading import as_string
from webhook.model.quantity import to_integer

#: GPU feature discovery's label for the product, to which the fabrics' `gpuProducts` refer.
PRODUCT = "nvidia.com/gpu.product"
#: The node labels that name a GPU model: GPU feature discovery, GKE, EKS's autoscaler, Karpenter,
#: CoreWeave.
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
    """The facts about one node that a decision uses."""

    labels: Mapping[str, str]
    resources: Mapping[str, int]  #: extended resource → allocatable amount, above zero
    availability: Availability = AVAILABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricIndex:
    """Indexes from nodes, GPUs and resources to fabrics: compiled once, O(1) for each pod."""

    #: Node name, and kubernetes.io/hostname → names of the fabrics that the node may belong to.
    by_node: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: GPU resource → names of the fabrics with a node that offers it.
    by_gpu: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Extended resource → name of a fabric with a node that offers it → the largest amount that one
    #: of its nodes offers.
    offering: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: Extended resource, RDMA resource → names of the fabrics with a node that offers both.
    offering_with_rdma: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    #: Names of the fabrics with at least one node.
    inhabited_fabrics: frozenset[str] = frozenset()
    #: Names of the fabrics with a node that offers one of their GPU resources.
    fabrics_with_gpus: frozenset[str] = frozenset()
    #: Label in GPU_MODEL_LABELS, value → names of the fabrics with such a node.
    by_gpu_model: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    #: The keys of all labels that any node has.
    label_keys: frozenset[str] = frozenset()
    #: The nodes of the fabrics, in classes that a decision compares with the pod's node selection.
    node_classes: EquivalenceClasses = NO_CLASSES


class NodeGroup(NamedTuple):
    """Nodes with equal resources and availability, and the same values of labels that matter."""

    names: list[str]
    #: The node labels whose keys a fabric lists, or that name a GPU model.
    labels: Mapping[str, str]
    resources: Mapping[str, int]
    #: Names of the fabrics that the nodes may belong to.
    fabric_names: frozenset[str]
    availability: Availability = AVAILABLE

    @property
    def takes_pods(self) -> bool:
        """Whether the scheduler places pods on the nodes, perhaps only pods with tolerations."""
        return not self.availability.obstacles


def node_of(item: Mapping[str, object]) -> Node:
    """Return the facts of a Node; raise ShapeError if no API server could have written it."""
    node = ClusterNode(item)
    labels = node.labels
    if not all(isinstance(value, str) for value in labels.values()):
        labels = {key: as_string(labels[key], (*_LABELS, key)) or "" for key in labels}
    field = "allocatable" if node.allocatable else "capacity"
    offered = node.allocatable or node.capacity
    path = ("status", field)
    amounts = {name: _amount(offered[name], (*path, name)) for name in offered if "/" in name}
    return Node(
        labels=labels,
        resources={name: amount for name, amount in amounts.items() if amount},
        availability=availability_of(node),
    )


def _amount(written: object, path: Path) -> int:
    try:
        return to_integer(written)
    except ValueError as error:
        raise ShapeError(f"{dotted(path)}: {error}") from None


def groups_of_nodes(
    nodes: Mapping[str, Node], configuration: CompiledConfiguration
) -> list[NodeGroup]:
    """Group the nodes that the fabrics do not distinguish, in the order of the nodes."""
    keys = tuple(dict.fromkeys((*configuration.by_label, *GPU_MODEL_LABELS)))
    groups: dict[tuple[object, ...], NodeGroup] = {}
    for name, node in nodes.items():
        values = tuple(map(node.labels.get, keys))
        signature = (values, tuple(node.resources.items()), node.availability)
        group = groups.get(signature)
        if group is None:
            labels = {
                key: value for key, value in zip(keys, values, strict=True) if value is not None
            }
            fabric_names = _fabric_names(labels, node.resources, configuration)
            group = groups[signature] = NodeGroup(
                [], labels, node.resources, fabric_names, node.availability
            )
        group.names.append(name)
    return list(groups.values())


def build_fabric_index(
    nodes: Mapping[str, Node], configuration: CompiledConfiguration
) -> FabricIndex:
    """Map nodes, GPUs and resources to fabrics.

    Call it once after each change of the nodes or the fabrics.
    """
    groups = groups_of_nodes(nodes, configuration)
    by_node = {name: group.fabric_names for group in groups for name in group.names}
    hosts = {node.labels.get(HOSTNAME, name): by_node[name] for name, node in nodes.items()}
    by_gpu: dict[str, frozenset[str]] = {}
    offering: dict[str, dict[str, int]] = {}
    offering_with_rdma: dict[tuple[str, str], frozenset[str]] = {}
    by_model: dict[tuple[str, str], frozenset[str]] = {}
    for _, labels, resources, fabric_names, _ in groups:
        for gpu in resources.keys() & configuration.by_gpu.keys():
            _add(by_gpu, gpu, fabric_names & configuration.by_gpu[gpu])
        for resource, amount in resources.items():
            largest = offering.setdefault(resource, {})
            largest.update({name: max(amount, largest.get(name, 0)) for name in fabric_names})
            for rdma_resource in resources.keys() & configuration.by_rdma_resource.keys():
                _add(offering_with_rdma, (resource, rdma_resource), fabric_names)
        for key in labels.keys() & GPU_MODEL_LABELS:
            _add(by_model, (key, labels[key]), fabric_names)
    return FabricIndex(
        by_node={**hosts, **by_node},  # a kubelet may give its node the hostname of another
        by_gpu=by_gpu,
        offering=offering,
        offering_with_rdma=offering_with_rdma,
        by_gpu_model=by_model,
        inhabited_fabrics=frozenset[str]().union(*(group.fabric_names for group in groups)),
        fabrics_with_gpus=frozenset[str]().union(*by_gpu.values()),
        label_keys=frozenset[str]().union(*(node.labels for node in nodes.values())),
        node_classes=refine(
            [
                EquivalentNodes(frozenset(names), {}, resources, availability, fabric_names)
                for names, _, resources, fabric_names, availability in groups
            ],
            {name: node.labels for name, node in nodes.items()},
        ),
    )


_Key = TypeVar("_Key")


def _add(index: dict[_Key, frozenset[str]], key: _Key, fabric_names: frozenset[str]) -> None:
    index[key] = index.get(key, frozenset()) | fabric_names


def _fabric_names(
    labels: Mapping[str, str], resources: Mapping[str, int], configuration: CompiledConfiguration
) -> frozenset[str]:
    """Return the fabrics that nodes with these labels and resources may belong to.

    These are the fabrics whose `match` fits. If none fits, they are the fabrics whose labels fit
    and whose unique RDMA resource the nodes offer: the resource replaces the GPUs of a `match`,
    but never its labels, which the site chose.
    """
    labeled = [
        fabric
        for fabric in configuration.fabrics.values()
        if _labels_fit(labels, fabric, configuration)
    ]
    matching = frozenset(
        fabric.name for fabric in labeled if _matches(resources, fabric, configuration)
    )
    return matching or frozenset(
        fabric.name
        for fabric in labeled
        if not configuration.unique_rdma_resources[fabric.name].isdisjoint(resources)
    )


def _labels_fit(
    labels: Mapping[str, str], fabric: Fabric, configuration: CompiledConfiguration
) -> bool:
    return all(
        key in labels
        and configuration.by_label[key][fabric.name].match(comparable_value(key, labels[key]))
        for key in fabric.node_labels
    )


def _matches(
    resources: Mapping[str, int], fabric: Fabric, configuration: CompiledConfiguration
) -> bool:
    """Return whether nodes with fitting labels match: by a GPU, or by labels alone.

    A `match` without GPUs and labels fits all nodes, unless the fabric has a unique RDMA resource.
    """
    if fabric.gpu_resources:
        return not fabric.gpu_resources.isdisjoint(resources)
    return bool(fabric.node_labels) or not configuration.unique_rdma_resources[fabric.name]


def comparable_value(key: str, value: str) -> str:
    """Return the value of a label without the suffixes of shared GPUs and MIG devices.

    GPU feature discovery appends `-SHARED` or `-MIG-1g.5gb` to a product; other labels have none.

    Source: k8s-device-plugin, internal/lm (gpu.product of shared and of MIG devices).
    """
    if key != PRODUCT:
        return value
    return value.split("-MIG-", 1)[0].removesuffix("-SHARED")
