"""The devices of the pod's fabric, and lists of devices that have none of them."""

from __future__ import annotations

from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model.decision import Reason, Verdict
from webhook.model.transport_variables import lists_no_device_of

DEVICES_NOT_OF_FABRIC = Reason(
    "DevicesOfNoFabric",
    "A variable that lists devices for a library (UCX_NET_DEVICES, MOONCAKE_DEVICE, MC_TE_FILTERS, "
    "MC_MS_FILTERS, MORI_RDMA_DEVICES, NVSHMEM_HCA_LIST) names none of the fabric's.",
    remedy="Remove the variable, or name the fabric's devices in it.",
    rdma="no",
)


def device_lists(pod: PatchedPod) -> tuple[str, ...]:
    """Return the device lists of the fabric that the pod uses; () if that is unknown."""
    return pod.used_fabric.device_lists if pod.used_fabric is not None else ()


def judge_devices(pod: PatchedPod, patched: PatchedTarget, *names: str) -> Verdict | None:
    """Return the verdict on lists of devices, the variables `names`, without the fabric's."""
    for name in names:
        value = patched.user_env.get(name) or ""
        for devices in device_lists(pod):
            if value and lists_no_device_of(value, devices):
                setting = f"{name}={value:.60}{patched.place(name)}"
                subject = f"container {patched.target.name}"
                message = f"{subject} sets {setting}, but the fabric has {devices}"
                return patched.verdict(DEVICES_NOT_OF_FABRIC, message, name)
    return None
