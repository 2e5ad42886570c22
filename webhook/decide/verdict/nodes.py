"""The nodes: whether a node of the pod's fabric can run it, according to the known nodes.

The nodes are those that the pod's own nodeSelector, required affinity and nodeName leave. If none
is left, or none of these offers what the pod requests, nodes may be added, and a device plugin that
restarts offers nothing for a while. So the verdict is `unsure`, unless the site's nodes are
configured as static. A cordon, a node that is not ready and a taint are temporary, so they are
never a `no`. Without known nodes there is no verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from webhook.decide.verdict.gpu_model import is_resource_label
from webhook.decide.verdict.node_reasons import (
    ALWAYS_EXCLUDED,
    ALWAYS_TOO_MANY,
    EXCLUDED,
    FABRIC_NOWHERE,
    MANY_DEVICES,
    NEVER_TOGETHER,
    NO_NODES,
    NOT_OFFERED,
    NOT_TOGETHER,
    NOT_TOLERATED,
    RESOURCE_NOWHERE,
    TOO_MANY,
    UNAVAILABLE,
)
from webhook.decide.verdict.patched_pod import PatchedPod
from webhook.model.annotations import DEVICES_ANNOTATION
from webhook.model.decision import Reason, Verdict
from webhook.model.equivalent_nodes import EquivalentNodes
from webhook.model.fabric import Fabric
from webhook.model.names import counted
from webhook.model.node_availability import is_of_kubernetes, state_of
from webhook.model.nodes import PRODUCT, FabricIndex
from webhook.model.placement import Placement
from webhook.model.resources import is_accelerator, scheduler_requests


class _Lack(NamedTuple):
    """What a fabric's nodes lack: the reason if nodes come and go, the reason if not, a message."""

    elastic: Reason
    static: Reason
    message: str


class _Demand(NamedTuple):
    """The amounts that a pod requests of one node."""

    #: RDMA resource of the fabric → amount.
    rdma: dict[str, int]
    #: GPU or other accelerator → amount.
    gpus: dict[str, int]
    #: All extended resources that the pod requests.
    names: frozenset[str]

    @classmethod
    def of(cls, pod: PatchedPod, fabric: Fabric) -> _Demand:
        """Return the demand of a pod after the patch."""
        reserved = scheduler_requests(pod.view)
        requested = {name: amount for name, amount in reserved.items() if amount}
        names = (resource.name for resource in fabric.resources)
        configuration = pod.analysis.configuration
        return cls(
            {name: requested[name] for name in names if name in requested},
            {name: requested[name] for name in requested if is_accelerator(name, configuration)},
            frozenset(requested),
        )

    def is_met_by(self, nodes: EquivalentNodes) -> bool:
        """Return whether a free node of a class has all; without RDMA resources, any has."""
        amounts = {**self.rdma, **self.gpus} if self.rdma else {}
        return all(nodes.resources.get(name, 0) >= amount for name, amount in amounts.items())


def judge_node_capacity(pod: PatchedPod) -> Verdict | None:
    """Return the verdict on what the fabric's nodes lack, or None, also if that is unknown."""
    fabric, fabric_index = pod.used_fabric, pod.fabric_index
    if fabric is None:
        return None
    if not fabric_index.by_node:
        return _many_devices(pod, fabric)
    if fabric.name not in fabric_index.inhabited_fabrics:
        lack = _Lack(NO_NODES, FABRIC_NOWHERE, f"no node belongs to fabric {fabric.name}")
        return _verdict(pod, lack)
    demand = _Demand.of(pod, fabric)
    classes = fabric_index.node_classes.by_fabric.get(fabric.name)
    if classes is None:  # too many classes to compare with the pod's selection
        shortage = _shortage_of_index(demand, fabric.name, fabric_index)
        return _verdict(pod, shortage) if shortage else None
    return _compared_with_classes(pod, demand, fabric.name, classes)


def _compared_with_classes(
    pod: PatchedPod, demand: _Demand, fabric: str, classes: Sequence[EquivalentNodes]
) -> Verdict | None:
    placement = Placement(pod.view, pod.fabric_index.node_classes.individual_label_keys)
    selected: list[EquivalentNodes] = []
    sufficient: list[EquivalentNodes] = []
    for nodes in classes:
        if not placement.selects(nodes):
            continue
        selected.append(nodes)
        if demand.is_met_by(nodes):
            if not placement.repelling(nodes, demand.names):
                return None
            sufficient.append(nodes)
    if sufficient:
        return _repelled(placement, demand, fabric, sufficient)
    if not selected:
        lack = _Lack(EXCLUDED, ALWAYS_EXCLUDED, _exclusion(pod, placement, fabric, classes))
        return _verdict(pod, lack, _added_later(pod))
    scope = "" if len(selected) == len(classes) else " that the pod selects"
    lack = _shortage(demand, selected, f"no node of fabric {fabric}{scope}")
    return _verdict(pod, lack, _added_later(pod) if scope else "")


def _verdict(pod: PatchedPod, lack: _Lack, added_later: str = "") -> Verdict:
    """Return the verdict on a lack; `added_later`: what may still change the node selection."""
    if pod.analysis.configuration.defaults.nodes != "static":
        return Verdict.of(lack.elastic, f"{lack.message} now")
    if added_later:
        return Verdict.of(lack.elastic, f"{lack.message}; {added_later} may change the selection")
    return Verdict.of(lack.static, f"{lack.message}, and the configuration sets `nodes: static`")


_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def _added_later(pod: PatchedPod) -> str:
    """Return what may add to a pod's node selection and tolerations after admission, or "".

    Kueue adds those of the ResourceFlavor when it admits the pod, other queues likewise, and a
    RuntimeClass has its own.
    """
    spec = pod.view.spec
    if _QUEUE_LABEL in pod.view.labels or spec.get("schedulingGates"):
        return "the pod's queue"
    if spec.get("schedulerName") not in (None, "", "default-scheduler"):
        return "the pod's scheduler"
    return "the pod's RuntimeClass" if pod.view.runtime_class else ""


# What the selected nodes lack.


def _shortage(demand: _Demand, selected: Sequence[EquivalentNodes], subject: str) -> _Lack:
    """Return what no class has of a demand that none meets."""
    for name, amount in demand.rdma.items():
        offering = [nodes for nodes in selected if name in nodes.resources]
        if not offering:
            return _Lack(NOT_OFFERED, RESOURCE_NOWHERE, f"{subject} offers {name}")
        for gpu in demand.gpus:
            if not any(gpu in nodes.resources for nodes in offering):
                return _apart(subject, gpu, name)
        largest = max(nodes.resources[name] for nodes in offering)
        if amount > largest:
            return _too_many(subject, name, amount, largest)
    for name, amount in demand.gpus.items():
        largest = max(nodes.resources.get(name, 0) for nodes in selected)
        if amount > largest:
            return _too_many(subject, name, amount, largest)
    amounts = {**demand.gpus, **demand.rdma}
    listed = " and ".join(f"{amount} of {name}" for name, amount in amounts.items())
    return _Lack(TOO_MANY, ALWAYS_TOO_MANY, f"{subject} offers {listed} together")


def _shortage_of_index(demand: _Demand, fabric: str, fabric_index: FabricIndex) -> _Lack | None:
    """Return what all nodes of a fabric lack, whatever the pod selects."""
    subject = f"no node of fabric {fabric}"
    for name, amount in demand.rdma.items():
        offered = fabric_index.offering.get(name, {}).get(fabric, 0)
        if not offered:
            return _Lack(NOT_OFFERED, RESOURCE_NOWHERE, f"{subject} offers {name}")
        for gpu in demand.gpus:
            if fabric not in fabric_index.offering_with_rdma.get((gpu, name), ()):
                return _apart(subject, gpu, name)
        if amount > offered:
            return _too_many(subject, name, amount, offered)
    return None


def _apart(subject: str, gpu: str, resource: str) -> _Lack:
    return _Lack(NOT_TOGETHER, NEVER_TOGETHER, f"{subject} offers both {gpu} and {resource}")


def _too_many(subject: str, resource: str, amount: int, largest: int) -> _Lack:
    message = f"the pod requests {amount} of {resource}, but {subject} offers more than {largest}"
    return _Lack(TOO_MANY, ALWAYS_TOO_MANY, message)


def _many_devices(pod: PatchedPod, fabric: Fabric) -> Verdict | None:
    """Compare rdma.lab/devices with the fabric's HCAs, where no nodes are known."""
    devices, available = pod.analysis.annotations.devices, len(fabric.hcas)
    if not available or devices is None or devices <= available:
        return None
    have = f"fabric {fabric.name} has {counted(available, 'HCA')}"
    return Verdict.of(MANY_DEVICES, f"{DEVICES_ANNOTATION} is {devices}, but {have}")


# Why the pod cannot run on the nodes of its fabric.


def _exclusion(
    pod: PatchedPod, placement: Placement, fabric: str, classes: Sequence[EquivalentNodes]
) -> str:
    """Name the part of the pod's selection that no class meets."""
    if pod.view.node_name:
        return f"the pod names node {pod.view.node_name:.60}, but fabric {fabric} has no such node"
    unmet = placement.unmet_label(classes)
    if unmet is None:
        return f"no node of fabric {fabric} meets the pod's node selection"
    key, value = unmet
    hint = f" (use {PRODUCT})" if is_resource_label(key, pod) else ""
    if not value:
        nodes = f"all nodes of fabric {fabric}"
        return f"the pod's affinity for the label {key:.50}{hint} excludes {nodes}"
    label = f"{key:.50}={value:.30}"
    return f"the pod selects the label {label}{hint}, but no node of fabric {fabric} has it"


def _repelled(
    placement: Placement, demand: _Demand, fabric: str, sufficient: Iterable[EquivalentNodes]
) -> Verdict:
    """Return the verdict on nodes that would do, but do not take the pod now.

    A taint that a toleration settles is named first.
    """
    repelling = [placement.repelling(nodes, demand.names) for nodes in sufficient]
    for taints in repelling:
        if not any(is_of_kubernetes(taint.key) for taint in taints):
            nodes = f"the nodes of fabric {fabric}"
            message = f"the pod does not tolerate the taint {taints[0]!s:.60} of {nodes}"
            return Verdict.of(NOT_TOLERATED, message)
    states = {state_of(taint.key): None for taints in repelling for taint in taints}
    listed = ", ".join(list(states)[:3])
    return Verdict.of(UNAVAILABLE, f"no node of fabric {fabric} takes the pod now ({listed})")
