"""The `match` of each planned fabric: resources, products and labels that no other group has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from webhook.config.names import intended_product, is_label_glob
from webhook.diagnose.discover.fabric_entry import MatchEntryForm
from webhook.diagnose.discover.gpu_products import AMD_LABEL, AMD_RESOURCE, NVIDIA_LABEL
from webhook.diagnose.discover.groups import Group

_HOSTNAME = "kubernetes.io/hostname"
_GPU = "nvidia.com/gpu"
#: Labels that distinguish pools of nodes, the deliberate ones first.
_POOLS = (
    "rdma.lab/fabric",
    AMD_LABEL,
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "eks.amazonaws.com/nodegroup",
    "node.kubernetes.io/instance-type",
    "nvidia.com/gpu.machine",
)


class Match(NamedTuple):
    """The `match` of a fabric."""

    #: None: the resources are unknown, and the file's default applies.
    gpu_resources: tuple[str, ...] | None
    product: str | None
    labels: Mapping[str, tuple[str, ...]]
    #: Field → the reason for its value.
    reason_by_field: Mapping[str, str]


def matches(groups: Sequence[Group], resources: Sequence[frozenset[str]]) -> list[Match]:
    """Return the match of each group; `resources` are the RDMA resources of each group's fabric.

    If neither GPUs nor unique resources identify a group, all groups get labels.
    """
    group_matches = [_by_gpus(group) for group in groups]
    if not _share_gpus(group_matches) and not _lacks_identity(group_matches, resources):
        return group_matches
    key, reason = _distinguishing_label(groups)
    return [
        match._replace(
            labels={key: _values(group, key)},
            reason_by_field={**match.reason_by_field, "nodeLabels": reason},
        )
        for match, group in zip(group_matches, groups, strict=True)
    ]


def _by_gpus(group: Group) -> Match:
    reason_by_field: dict[str, str] = {}
    resources = _resources(group)
    if resources is not None:
        reason_by_field["gpuResources"] = (
            _resources_reason(group) if resources else "the nodes have no GPUs"
        )
    # The field compares the label of GPU feature discovery, which nodes with GPUs of AMD lack.
    product = None if group.amd_gpus else group.product
    if product:
        reason_by_field["gpuProducts"] = f"as in the node label {NVIDIA_LABEL}"
    return Match(resources, product, {}, reason_by_field)


def _resources(group: Group) -> tuple[str, ...] | None:
    """Return the GPU resources of the nodes, () if they have no GPU; None if unknown."""
    if group.without_gpus:
        return ()
    cluster_nodes = [node_ports.node.cluster_node for node_ports in group.ports_of_nodes]
    names = {name for node in cluster_nodes if node for name in node.gpu_resources}
    if group.amd_gpus:
        return tuple(sorted(names)) or (AMD_RESOURCE,)
    if not all(cluster_nodes):
        return None
    if not names and any(node_ports.node.gpus for node_ports in group.ports_of_nodes):
        return None  # the GPU plugin is not ready, or not yet installed
    return tuple(sorted(names))


def _resources_reason(group: Group) -> str:
    """Return the reason for the GPU resources: nodes offer them, or AMD's plugin will."""
    nodes = [node_ports.node.cluster_node for node_ports in group.ports_of_nodes]
    if any(node and node.gpu_resources for node in nodes):
        return "offered by the nodes"
    return "the resource of AMD's device plugin"


def _share_gpus(group_matches: Sequence[Match]) -> bool:
    """Return whether two groups have the same GPU resource without distinct products."""
    products_by_resource: dict[str, list[str | None]] = {}
    for match in group_matches:
        for resource in _matched_gpu_resources(match):
            products_by_resource.setdefault(resource, []).append(match.product)
    return any(
        len(products) > 1 and (not all(products) or len(set(products)) < len(products))
        for products in products_by_resource.values()
    )


def _lacks_identity(group_matches: Sequence[Match], resources: Sequence[frozenset[str]]) -> bool:
    """Return whether nothing identifies a group: no GPU, and no RDMA resource of its own."""
    listed = Counter(name for names in resources for name in names)
    return any(
        not _matched_gpu_resources(match) and all(listed[name] > 1 for name in names)
        for match, names in zip(group_matches, resources, strict=True)
    )


def _matched_gpu_resources(match: Match) -> tuple[str, ...]:
    return (_GPU,) if match.gpu_resources is None else match.gpu_resources


def _distinguishing_label(groups: Sequence[Group]) -> tuple[str, str]:
    """Return a label with distinct values for all groups, and the reason for using it."""
    for key in _POOLS:
        values = [set(_values(group, key)) for group in groups]
        every = [label for labels in values for label in labels]
        if all(values) and "" not in every and len(every) == len(set(every)):
            return key, "the GPUs do not distinguish the fabrics, but this label does"
    return _HOSTNAME, (
        "the GPUs do not distinguish the fabrics; a label of your own on the nodes would be better "
        "than their names"
    )


def _values(group: Group, key: str) -> tuple[str, ...]:
    """Return the values of a label on the nodes of a group; "" for a node without it."""
    values: dict[str, None] = {}
    for node_ports in group.ports_of_nodes:
        cluster_node = node_ports.node.cluster_node
        value = cluster_node.labels.get(key, "") if cluster_node else ""
        if key == _HOSTNAME and not value:
            value = node_ports.node.name
        if value == "" or is_label_glob(value):
            values[value] = None
    return tuple(values)


def match_entry_form(match: Match) -> MatchEntryForm:
    """Return the fields of a match that are set."""
    entry: MatchEntryForm = {}
    if match.gpu_resources is not None:
        entry["gpuResources"] = list(match.gpu_resources)
    if match.product:
        entry["gpuProducts"] = [_as_glob(match.product)]
    if match.labels:
        entry["nodeLabels"] = {key: list(values) for key, values in match.labels.items()}
    return entry


def _as_glob(product: str) -> str:
    """Return a glob for a product; `[N]VIDIA-...` if it could pass for a misspelling."""
    return f"[{product[0]}]{product[1:]}" if intended_product(product) else product
