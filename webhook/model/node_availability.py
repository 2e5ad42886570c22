"""Whether a node takes pods: its cordon, its condition Ready and its taints.

The scheduler reads the cordon and the taints. Kubernetes adds a taint some time after the condition
changes, so the condition counts as well: as this taint.
"""

from __future__ import annotations

from typing import NamedTuple

from webhook.model.objects import ClusterNode
from webhook.model.pod.tolerations import NO_EXECUTE, NO_SCHEDULE, Taint

CORDONED = "cordoned"
NOT_READY = "not ready"
#: The taint that a cordon stands for. Source: kubernetes, scheduler plugin NodeUnschedulable.
CORDON = Taint("node.kubernetes.io/unschedulable")
#: The taint of a node whose condition Ready is False.
UNREADINESS = Taint("node.kubernetes.io/not-ready")
_UNREACHABLE = "node.kubernetes.io/unreachable"
#: The taints that Kubernetes derives from these states.
_STATES = {CORDON.key: CORDONED, UNREADINESS.key: NOT_READY, _UNREACHABLE: NOT_READY}
#: The taints with these prefixes are set by Kubernetes, and keep pods away until their cause is
#: gone. Source: k8s.io/api, core/v1/well_known_taints.go; k8s.io/cloud-provider, api.
_OF_KUBERNETES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
#: The effects that keep pods away from a node.
_EFFECTS = (NO_SCHEDULE, NO_EXECUTE)


class Availability(NamedTuple):
    """Whether a node takes pods; a cluster has few different ones."""

    #: What keeps pods away that do not tolerate it, in a stable order: its taints, and those that
    #: its cordon and its condition stand for.
    taints: tuple[Taint, ...] = ()
    #: Whether the kubelet has ever reported. A node that somebody wrote by hand has no conditions,
    #: so pods are judged by its taints alone, as the scheduler judges them.
    reported: bool = True

    @property
    def obstacles(self) -> tuple[str, ...]:
        """Why the node takes no pods: CORDONED, NOT_READY, taints of Kubernetes; () if it does."""
        states = {state_of(taint.key) for taint in self.taints if is_of_kubernetes(taint.key)}
        if not self.reported:
            states.add(NOT_READY)
        return tuple(sorted(states, key=_rank))

    @property
    def taint_keys(self) -> tuple[str, ...]:
        """The keys of its other taints: only pods that tolerate them run there."""
        keys = (taint.key for taint in self.taints)
        return tuple(dict.fromkeys(key for key in keys if not is_of_kubernetes(key)))


AVAILABLE = Availability()


def is_of_kubernetes(key: str) -> bool:
    """Return whether Kubernetes itself sets the taint."""
    return key.startswith(_OF_KUBERNETES)


def state_of(key: str) -> str:
    """Return the state that a taint of Kubernetes stands for, or else the taint's key."""
    return _STATES.get(key, key)


def _rank(state: str) -> tuple[bool, bool, str]:
    return state != CORDONED, state != NOT_READY, state


def availability_of(node: ClusterNode) -> Availability:
    """Return whether a node takes pods, from nothing that a heartbeat changes."""
    taints = {
        Taint(str(taint.get("key")), str(taint.get("value") or ""), str(taint.get("effect")))
        for taint in node.taints
        if taint.get("effect") in _EFFECTS
    }
    if node.unschedulable:
        taints.add(CORDON)
    if node.has_conditions and not node.is_ready:
        taints.add(UNREADINESS)
    return Availability(tuple(sorted(taints)), reported=node.has_conditions)
