"""Nodes that belong to no fabric, or to several, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from webhook.model.fabric import Fabric, Fabrics
from webhook.model.nodes import NodeGroup, product_of
from webhook.model.resources import is_gpu, is_rdma


class Misfits(NamedTuple):
    """Nodes that do not belong to exactly one fabric, all for the same reason."""

    nodes: tuple[str, ...]
    #: Names of the fabrics that they fit; none, or at least two.
    fits: tuple[str, ...]
    #: The fabric that they come nearest to, "" if they fit several.
    nearest: str
    why: str


def misfits(groups: Iterable[NodeGroup], fabrics: Fabrics) -> tuple[Misfits, ...]:
    """Return the nodes that may be meant for a fabric, but do not belong to exactly one."""
    found: dict[tuple[tuple[str, ...], str, str], list[str]] = {}
    for group in groups:
        if len(group.homes) > 1:
            fits = tuple(name for name in fabrics.fabrics if name in group.homes)
            found.setdefault((fits, "", _common(group, fits, fabrics)), []).extend(group.names)
        elif not group.homes and is_meant(group, fabrics):
            nearest, why = _nearest(group, fabrics)
            found.setdefault(((), nearest, why), []).extend(group.names)
    return tuple(
        Misfits(tuple(names), fits, nearest, why) for (fits, nearest, why), names in found.items()
    )


def is_meant(group: NodeGroup, fabrics: Fabrics) -> bool:
    """Return whether nodes may be meant for a fabric: they offer GPUs or RDMA, or fit a label."""
    offers = any(is_gpu(name, fabrics) or is_rdma(name, fabrics) for name in group.resources)
    return offers or any(
        _fits_label(group, key, fabric, fabrics)
        for fabric in fabrics.fabrics.values()
        for key in fabric.node_labels
    )


def _nearest(group: NodeGroup, fabrics: Fabrics) -> tuple[str, str]:
    """Return the fabric for which the least is missing, and what; "" if there are no fabrics."""
    lacking = {name: [*_lacks(group, fabric, fabrics)] for name, fabric in fabrics.fabrics.items()}
    if not lacking:
        return "", "there are no fabrics"
    nearest = min(lacking, key=lambda name: (len(lacking[name]), -_matched(group, name, fabrics)))
    return nearest, "; ".join(lacking[nearest])


def _lacks(group: NodeGroup, fabric: Fabric, fabrics: Fabrics) -> Iterator[str]:
    """Yield each condition of a fabric that nodes do not fulfil."""
    for key, globs in fabric.node_labels.items():
        wanted = " or ".join(globs)
        if key not in group.labels:
            yield f"label {key} is missing ({wanted})"
        elif not _fits_label(group, key, fabric, fabrics):
            yield f"label {key} is {group.labels[key]}, not {wanted}"
    resources = _sufficient(fabric, fabrics)
    if resources and not _offers(group, resources):
        yield f"{' or '.join(resources)} is not offered"


def _matched(group: NodeGroup, name: str, fabrics: Fabrics) -> int:
    """Count the conditions of a fabric that nodes fulfil."""
    fabric = fabrics.fabrics[name]
    labels = sum(_fits_label(group, key, fabric, fabrics) for key in fabric.node_labels)
    return labels + _offers(group, _sufficient(fabric, fabrics))


def _sufficient(fabric: Fabric, fabrics: Fabrics) -> list[str]:
    """Return the resources of which nodes must offer any one; none if labels are enough."""
    if fabric.node_labels and not fabric.gpu_resources:
        return []
    return [*sorted(fabric.gpu_resources), *sorted(fabrics.own_resources[fabric.name])]


def _offers(group: NodeGroup, names: Iterable[str]) -> bool:
    return any(name in group.resources for name in names)


def _fits_label(group: NodeGroup, key: str, fabric: Fabric, fabrics: Fabrics) -> bool:
    value = group.labels.get(key)
    return value is not None and fabrics.by_label[key][fabric.name].match(product_of(key, value))


def _common(group: NodeGroup, fits: tuple[str, ...], fabrics: Fabrics) -> str:
    """Say what fits all of several fabrics."""
    members = [fabrics.fabrics[name] for name in fits]
    gpus = frozenset(group.resources).intersection(*(one.gpu_resources for one in members))
    keys = frozenset(group.labels).intersection(*(one.node_labels for one in members))
    shared = [*sorted(gpus), *(f"label {key}={group.labels[key]}" for key in sorted(keys))]
    if shared:
        return f"{' and '.join(shared)} {'fits' if len(shared) == 1 else 'fit'} all of them"
    offered = [sorted(fabrics.own_resources[name] & group.resources.keys()) for name in fits]
    if all(offered):
        return f"a resource of each is offered: {', '.join(names[0] for names in offered)}"
    return "nothing in their match tells them apart"
