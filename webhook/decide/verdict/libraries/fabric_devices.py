"""The devices of the pod's fabric, and lists of devices that have none of them."""

from __future__ import annotations

from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model.decision import Reason, Verdict
from webhook.model.transport_variables import IB_HCA, lists_no_device_of

DEVICES_NOT_OF_FABRIC = Reason(
    "DevicesOfNoFabric",
    "A variable that lists devices for a library (UCX_NET_DEVICES, MOONCAKE_DEVICE, MC_TE_FILTERS, "
    "MC_MS_FILTERS, MORI_RDMA_DEVICES, NVSHMEM_HCA_LIST) names none of the fabric's.",
    remedy="Remove the variable, or name the fabric's devices in it.",
    rdma="no",
)


def fabric_devices(pod: PatchedPod) -> str | None:
    """Return the fabric's NCCL_IB_HCA; None if the pod has no fabric, or it names no devices."""
    if pod.used_fabric is None:
        return None
    return dict(pod.used_fabric.env.library_variables).get(IB_HCA)


def judge_devices(pod: PatchedPod, patched: PatchedTarget, *names: str) -> Verdict | None:
    """Return the verdict on lists of devices, the variables `names`, without the fabric's."""
    devices = fabric_devices(pod)
    for name in names:
        value = patched.user_env.get(name) or ""
        if value and lists_no_device_of(value, devices):
            setting = f"container {patched.target.name} sets {name}={value:.60}"
            message = f"{setting}, but the fabric has {devices}{place_of(patched, name)}"
            return Verdict.of(DEVICES_NOT_OF_FABRIC, message)
    return None


def place_of(patched: PatchedTarget, name: str) -> str:
    """Return what sets a variable, in parentheses; "" for env."""
    origin = patched.origin(name)
    return "" if origin == "env" else f" ({origin})"
