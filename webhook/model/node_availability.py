"""Whether a node takes pods: its cordon, its condition Ready and its taints.

The scheduler reads the cordon and the taints. Kubernetes adds a taint some time after the condition
changes, so the condition counts as well.
"""

from __future__ import annotations

from typing import NamedTuple

from webhook.model.objects import ClusterNode

CORDONED = "cordoned"
NOT_READY = "not ready"
#: The taints that Kubernetes derives from these states.
_STATES = {
    "node.kubernetes.io/unschedulable": CORDONED,
    "node.kubernetes.io/not-ready": NOT_READY,
    "node.kubernetes.io/unreachable": NOT_READY,
}
#: The taints with these prefixes are set by Kubernetes, and keep pods away until their cause is
#: gone. Source: k8s.io/api, core/v1/well_known_taints.go; k8s.io/cloud-provider, api.
_OF_KUBERNETES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
#: The effects that keep pods away from a node.
_EFFECTS = ("NoSchedule", "NoExecute")


class Availability(NamedTuple):
    """Whether a node takes pods; a cluster has few different ones."""

    #: Why the node takes no pods: CORDONED, NOT_READY, taints of Kubernetes; () if it takes some.
    obstacles: tuple[str, ...]
    #: The keys of its other taints: only pods that tolerate them run there.
    taints: tuple[str, ...]


AVAILABLE = Availability((), ())


def availability_of(node: ClusterNode) -> Availability:
    """Return whether a node takes pods, from nothing that a heartbeat changes."""
    states = [CORDONED] * node.unschedulable + [NOT_READY] * (not node.is_ready)
    keys = {str(taint.get("key")) for taint in node.taints if taint.get("effect") in _EFFECTS}
    of_kubernetes = {key for key in keys if key.startswith(_OF_KUBERNETES)}
    states += [_STATES.get(key, key) for key in sorted(of_kubernetes)]
    return Availability(tuple(dict.fromkeys(states)), tuple(sorted(keys - of_kubernetes)))
