"""The devices of the pod's fabric, and lists that have none of them, or none of their ports."""

from __future__ import annotations

from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model.decision import Reason, Verdict
from webhook.model.fabric import DeviceLists
from webhook.model.transport_variables import IB_HCA, lists_no_device_of

DEVICES_NOT_OF_FABRIC = Reason(
    "DevicesOfNoFabric",
    "A variable that lists devices for a library (UCX_NET_DEVICES, MOONCAKE_DEVICE, MC_TE_FILTERS, "
    "MC_MS_FILTERS, MORI_RDMA_DEVICES, NVSHMEM_HCA_LIST) names none of the fabric's "
    "devices.",
    remedy="Remove the variable, or name the fabric's devices in it.",
    rdma="no",
)


PORT_UNSEEN = Reason(
    "DevicePortUnseen",
    "A variable that lists devices for a library chooses a port that the fabric's configuration "
    "does not name; whether the devices have that port is unknown.",
    remedy=(
        "Check with `rdma link` on a node of the fabric whether the port is active. If the port is "
        "not active, remove the variable, or choose an active port in the variable."
    ),
    rdma="unsure",
)
DEVICE_LIST_REASONS = (DEVICES_NOT_OF_FABRIC, PORT_UNSEEN)


def device_lists(pod: PatchedPod) -> DeviceLists:
    """Return the device lists of the fabric that the pod uses; two "" if that is unknown."""
    return pod.used_fabric.device_lists if pod.used_fabric is not None else DeviceLists()


def judge_device_lists(pod: PatchedPod, patched: PatchedTarget, *names: str) -> Verdict | None:
    """Return the verdict on the variables `names`, lists of devices without the fabric's."""
    devices, with_ports = device_lists(pod)
    values = [(name, patched.effective_env.get(name) or "") for name in names]
    for name, value in values:
        if lists_no_device_of(value, devices):
            subject = _subject(patched, name, value)
            message = f'{subject}, but the fabric\'s {IB_HCA} is "{devices}"'
            return patched.verdict(DEVICES_NOT_OF_FABRIC, message, name)
    for name, value in values:
        if lists_no_device_of(value, with_ports):
            return unseen_port(patched, name, value, with_ports)
    return None


def unseen_port(patched: PatchedTarget, name: str, value: str, with_ports: str) -> Verdict:
    """Return the verdict on a list of the fabric's devices with other ports."""
    ports = with_ports.removeprefix("=")
    message = f"{_subject(patched, name, value)}, but the fabric may have only {ports}"
    return patched.verdict(PORT_UNSEEN, message, name)


def _subject(patched: PatchedTarget, name: str, value: str) -> str:
    origin_suffix = patched.origin_suffix(name)
    return f'container {patched.target.name} sets {name}="{value:.60}"{origin_suffix}'
