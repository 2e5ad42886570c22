"""Say how pods and nodes show that they belong to a group, so that no two groups are confused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from webhook.config.names import is_label_glob
from webhook.diagnose.discover.groups import Group

_HOSTNAME = "kubernetes.io/hostname"
_GPU = "nvidia.com/gpu"
#: Labels that tell pools of nodes apart, the ones that people set on purpose first.
_POOLS = (
    "rdma.lab/fabric",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "eks.amazonaws.com/nodegroup",
    "node.kubernetes.io/instance-type",
    "nvidia.com/gpu.machine",
)


class Match(NamedTuple):
    """The `match` of a fabric."""

    #: None: nothing is known of the resources, and the file's default holds.
    gpu_resources: tuple[str, ...] | None
    product: str | None
    labels: Mapping[str, tuple[str, ...]]
    #: Field → why it is so.
    reasons: Mapping[str, str]


def matches(groups: Sequence[Group], resources: Sequence[frozenset[str]]) -> list[Match]:
    """Return the match of each group, whose fabric lists the RDMA resources at the same place.

    Labels are added to all where neither GPUs nor resources of its own tell a group.
    """
    found = [_by_gpus(group) for group in groups]
    if not _share_gpus(found) and not _nameless(found, resources):
        return found
    key, because = _telling_label(groups)
    return [
        match._replace(
            labels={key: _values(group, key)},
            reasons={**match.reasons, "nodeLabels": because},
        )
        for match, group in zip(found, groups, strict=True)
    ]


def _by_gpus(group: Group) -> Match:
    reasons: dict[str, str] = {}
    resources = _resources(group)
    if resources is not None:
        reasons["gpuResources"] = (
            "what the nodes offer" if resources else "the nodes offer no GPU, so GPUs say nothing"
        )
    if group.product:
        reasons["gpuProducts"] = "the label nvidia.com/gpu.product of GPU feature discovery"
    return Match(resources, group.product, {}, reasons)


def _resources(group: Group) -> tuple[str, ...] | None:
    """Return what the nodes offer, () if they have no GPU; None if that is unknown."""
    if group.without_gpus:
        return ()
    kubes = [choice.node.kube for choice in group.choices]
    if not all(kubes):
        return None
    found = {name for kube in kubes if kube for name in kube.gpu_resources}
    if not found and any(choice.node.gpus for choice in group.choices):
        return None  # the GPU plugin is not ready, or not yet installed
    return tuple(sorted(found))


def _share_gpus(found: Sequence[Match]) -> bool:
    """Return whether two groups claim the same GPU resource, and no product tells them apart."""
    products: dict[str, list[str | None]] = {}
    for one in found:
        for resource in _claimed(one):
            products.setdefault(resource, []).append(one.product)
    return any(len(of) > 1 and (not all(of) or len(set(of)) < len(of)) for of in products.values())


def _nameless(found: Sequence[Match], resources: Sequence[frozenset[str]]) -> bool:
    """Return whether nothing leads to a group: no GPU, and no RDMA resource but those of others."""
    listed = Counter(name for names in resources for name in names)
    return any(
        not _claimed(match) and all(listed[name] > 1 for name in names)
        for match, names in zip(found, resources, strict=True)
    )


def _claimed(match: Match) -> tuple[str, ...]:
    return (_GPU,) if match.gpu_resources is None else match.gpu_resources


def _telling_label(groups: Sequence[Group]) -> tuple[str, str]:
    """Return a label whose values tell all groups apart, and why it is used."""
    for key in _POOLS:
        values = [set(_values(group, key)) for group in groups]
        every = [one for of in values for one in of]
        if all(values) and "" not in every and len(every) == len(set(every)):
            return key, "GPUs alone do not tell the fabrics apart, and this label does"
    return _HOSTNAME, (
        "GPUs alone do not tell the fabrics apart; better label the nodes yourself and write that "
        "label here"
    )


def _values(group: Group, key: str) -> tuple[str, ...]:
    """Return the values of a label on the nodes of a group; "" for a node without it."""
    found: dict[str, None] = {}
    for choice in group.choices:
        kube = choice.node.kube
        value = kube.labels.get(key, "") if kube else ""
        if key == _HOSTNAME and not value:
            value = choice.node.name
        if value == "" or is_label_glob(value):
            found[value] = None
    return tuple(found)
