"""Parameter servers: ps-lite, under BytePS and MXNet, uses TCP unless its variables choose RDMA.

    DMLC_ENABLE_RDMA     (BytePS) absent, "", 0 or zmq is TCP; 1 and ibverbs are RDMA
    DMLC_ENABLE_UCX      (BytePS) 1 is UCX
    DMLC_PS_VAN_TYPE     (MXNet) absent, "", zmq and p3 are TCP; ibverbs is RDMA

With ibverbs, ps-lite connects through rdma_cm: it binds and resolves IP addresses, and so needs one
on the interface of an RDMA device in the network that the pod is in.

Sources: BytePS docs/env.md; bytedance/ps-lite include/ps/kv_app.h, src/van.cc, src/rdma_van.h
(rdma_bind_addr, rdma_resolve_addr); dmlc/ps-lite docs/env.md, src/van.cc, src/ibverbs_van.h.
"""

from __future__ import annotations

from collections.abc import Collection

from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model.annotations import NETWORKS_ANNOTATION
from webhook.model.decision import Reason, Verdict
from webhook.model.traffic_libraries import uses_mxnet_kvstore

PS_LITE_OVER_TCP = Reason(
    "PsLiteOverTcp",
    "The container uses ps-lite (BytePS, MXNet), and no variable makes ps-lite use RDMA.",
    remedy=(
        "In the workers, the servers and the scheduler, set DMLC_ENABLE_RDMA=ibverbs (BytePS) or "
        "DMLC_PS_VAN_TYPE=ibverbs (MXNet), and use an image whose ps-lite is built with RDMA "
        "support. ps-lite connects by IP address, so the pods need one of the fabric's secondary "
        "networks, or hostNetwork: true if the nodes' RDMA interfaces have IP addresses."
    ),
    rdma="no",
)
NO_ADDRESS = Reason(
    "PsLiteWithoutAddress",
    "ps-lite connects through rdma_cm, which needs an IP address on an RDMA interface, and nothing "
    "shows that the pod has one.",
    remedy=(
        "If the RDMA interfaces of the nodes have IP addresses, set hostNetwork: true. Otherwise, "
        "attach one of the fabric's secondary networks to the pod (Multus). In either case, set "
        "DMLC_INTERFACE to the RDMA interface that has an IP address."
    ),
    rdma="unsure",
)
PARAMETER_SERVER_REASONS = (PS_LITE_OVER_TCP, NO_ADDRESS)

#: Variables that choose ps-lite's transport, with the values that mean TCP.
_TCP_VALUES = {
    "DMLC_ENABLE_RDMA": ("", "0", "zmq"),
    "DMLC_ENABLE_UCX": ("", "0"),
    "DMLC_PS_VAN_TYPE": ("", "zmq", "p3"),
}


#: The variable of MXNet's own ps-lite; it reads no other one of these.
_OF_MXNET = "DMLC_PS_VAN_TYPE"
#: Variables with the values that make ps-lite connect through rdma_cm.
_RDMA_CM = {"DMLC_ENABLE_RDMA": ("1", "ibverbs"), _OF_MXNET: ("ibverbs",)}


def judge_parameter_server(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the verdict on a target whose ps-lite uses TCP, or may lack an address; or None."""
    name, switches = patched.target.name, _switches(patched)
    if not _may_enable(patched, switches):
        subject = f"container {name} uses ps-lite, whose default is TCP"
        return Verdict.of(PS_LITE_OVER_TCP, f"{subject}; set {switches[0]}=ibverbs in all pods")
    if _connects_by_address(patched, switches) and not _may_have_address(pod):
        message = f"ps-lite in container {name} needs an IP address on an RDMA interface (rdma_cm)"
        return Verdict.of(NO_ADDRESS, f"{message}; add a network, or use hostNetwork")
    return None


def _switches(patched: PatchedTarget) -> tuple[str, ...]:
    """Return the variables that this ps-lite reads, MXNet's own or that of BytePS."""
    is_mxnets = uses_mxnet_kvstore(patched.command) and "bpslaunch" not in patched.command
    return (_OF_MXNET,) if is_mxnets else tuple(_TCP_VALUES)


def _may_enable(patched: PatchedTarget, switches: Collection[str]) -> bool:
    """Return whether a variable requests RDMA, or may.

    The kubelet alone can resolve some values; others are only possible in the command.
    """
    env, command = patched.effective_env, patched.command
    return any(
        env[name] not in _TCP_VALUES[name] if name in env else name in command for name in switches
    )


def _connects_by_address(patched: PatchedTarget, switches: Collection[str]) -> bool:
    """Return whether a variable chooses a transport that uses rdma_cm, or may."""
    possible = ((setting.name, setting.value) for setting in patched.settings.possible)
    return any(
        name in switches and value in _RDMA_CM.get(name, ())
        for name, value in (*patched.effective_env.items(), *possible)
    )


def _may_have_address(pod: PatchedPod) -> bool:
    """Return whether the pod is in the host network, or Multus attaches a network to it."""
    return pod.view.host_network or bool(pod.view.annotation(NETWORKS_ANNOTATION))
