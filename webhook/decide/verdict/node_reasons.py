"""The reasons of the verdict on the nodes of the pod's fabric.

What no node offers now may appear, so each lack has a reason for sites whose nodes come and go, and
one for configurations with `nodes: static`.
"""

from __future__ import annotations

from webhook.model.decision import Reason

_STATIC = ", and the configuration sets `nodes: static`"
_CHECK_PLUGIN = (
    "Ask the cluster administrator to compare the fabric's `resources` with what its nodes offer "
    "(`kubectl get nodes -o yaml`): perhaps a name is wrong, or the RDMA device plugin is not "
    "running."
)
_SAME_NODES = (
    "If the nodes that offer the RDMA resource have another type of GPU, request that type. "
    "Otherwise, ask the cluster administrator to run the GPU device plugin and the RDMA device "
    "plugin on the same nodes."
)
_FEWER_DEVICES = (
    "Request fewer devices (rdma.lab/devices) or GPUs, or divide the work among more pods: all "
    "containers of a pod share the devices of one node."
)
_SELECT = (
    "Correct the pod's nodeSelector, node affinity or nodeName, so that the pod can run on nodes "
    "of the fabric: `kubectl get nodes --show-labels` shows the labels of all nodes."
)
NO_NODES = Reason(
    "FabricWithoutNodes",
    "No node belongs to the fabric now.",
    remedy=(
        "If the pod should use another fabric, set rdma.lab/fabric to that fabric. Otherwise, ask "
        "the cluster administrator whether the fabric's nodes have left the cluster, lack the "
        "configured labels, or offer neither the fabric's GPUs nor its RDMA resource."
    ),
    rdma="unsure",
)
NOT_OFFERED = Reason(
    "ResourceNotOffered",
    "No node of the fabric offers the RDMA resource now.",
    remedy=_CHECK_PLUGIN,
    rdma="unsure",
)
NOT_TOGETHER = Reason(
    "ResourceNotBesideGpu",
    "No node of the fabric currently offers both the GPU that the pod requests and the RDMA "
    "resource.",
    remedy=_SAME_NODES,
    rdma="unsure",
)
TOO_MANY = Reason(
    "ResourceExceedsNodes",
    "The pod requests more RDMA devices or GPUs than any node of the fabric offers now.",
    remedy=_FEWER_DEVICES,
    rdma="unsure",
)
FABRIC_NOWHERE = Reason(
    "FabricNowhere",
    f"No node belongs to the fabric{_STATIC}, so none is expected to join it.",
    remedy=(
        "If the pod should use another fabric, set rdma.lab/fabric to that fabric. Otherwise, ask "
        "the cluster administrator whether the fabric's nodes have left the cluster, lack the "
        "configured labels, or offer neither the fabric's GPUs nor its RDMA resource."
    ),
    rdma="no",
)
RESOURCE_NOWHERE = Reason(
    "ResourceNowhere",
    f"No node of the fabric offers the RDMA resource{_STATIC}, so none is expected to offer it "
    "later.",
    remedy=_CHECK_PLUGIN,
    rdma="no",
)
NEVER_TOGETHER = Reason(
    "ResourceNeverBesideGpu",
    "No node of the fabric offers both the GPU that the pod requests and the RDMA resource"
    f"{_STATIC}, so no such node is expected.",
    remedy=_SAME_NODES,
    rdma="no",
)
ALWAYS_TOO_MANY = Reason(
    "ResourceExceedsStaticNodes",
    f"The pod requests more RDMA devices or GPUs than any node of the fabric offers{_STATIC}, so "
    "no larger node is expected to join.",
    remedy=_FEWER_DEVICES,
    rdma="no",
)
EXCLUDED = Reason(
    "FabricNotSelected",
    "The pod's node selection excludes all nodes that the fabric has now.",
    remedy=_SELECT,
    rdma="unsure",
)
ALWAYS_EXCLUDED = Reason(
    "FabricNeverSelected",
    f"The pod's node selection excludes all nodes of the fabric{_STATIC}, so no other nodes are "
    "expected to join the fabric.",
    remedy=_SELECT,
    rdma="no",
)
UNAVAILABLE = Reason(
    "NodesUnavailable",
    "Each of the fabric's nodes that could otherwise run the pod is cordoned, not ready or "
    "tainted by Kubernetes.",
    remedy=(
        "Ask the cluster administrator when the fabric's nodes will take pods again. Once they do, "
        "the pod starts without further action."
    ),
    rdma="unsure",
)
NOT_TOLERATED = Reason(
    "TaintNotTolerated",
    "Each of the fabric's nodes that could otherwise run the pod has a taint that the pod does "
    "not tolerate.",
    remedy=(
        "If the pod is meant for these nodes, add a toleration for the taint to the pod. "
        "Otherwise, set rdma.lab/fabric to another fabric."
    ),
    rdma="unsure",
)
MANY_DEVICES = Reason(
    "DevicesExceedHCAs",
    "The pod sets rdma.lab/devices to more than the number of HCAs that the fabric lists for each "
    "node, and what the nodes offer is unknown.",
    remedy=(
        "Set rdma.lab/devices to at most the number of HCAs of a node, or remove the annotation."
    ),
    rdma="unsure",
)
CAPACITY_REASONS = (
    *(NO_NODES, NOT_OFFERED, NOT_TOGETHER, TOO_MANY, EXCLUDED),
    *(FABRIC_NOWHERE, RESOURCE_NOWHERE, NEVER_TOGETHER, ALWAYS_TOO_MANY, ALWAYS_EXCLUDED),
    *(UNAVAILABLE, NOT_TOLERATED, MANY_DEVICES),
)
