"""NCCL: whether its variables keep it off the fabric.

NCCL_IB_DISABLE turns off NCCL's own InfiniBand transport (net_ib/init.cc). It means nothing to UCX
and so to NIXL, to Mooncake, MoRI and NVSHMEM, or to a plugin with code of its own, such as
aws-ofi-nccl and FasTrak. Plugins that derive from net_ib obey it: HPC-X's IBext
(nccl-rdma-sharp-plugins, ib_plugin.c) and AMD's ANP (anp, net_ib.cc).
"""

from __future__ import annotations

from typing import NamedTuple

from webhook.decide.mutations.env import HCA_NOT_OF_FABRIC, IB_DISABLED, NET_SOCKET
from webhook.decide.verdict.libraries.fabric_devices import device_lists
from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model import transport_variables
from webhook.model.decision import Reason, Verdict

NET_PLUGIN = Reason(
    "NcclNetPlugin",
    "The container's NCCL_NET or NCCL_NET_PLUGIN selects a plugin that might not use RDMA.",
    remedy="Remove NCCL_NET and NCCL_NET_PLUGIN, unless the image has the plugin that they name.",
    rdma="unsure",
)
OFI_OVER_TCP = Reason(
    "NcclOfiOverTcp",
    "NCCL uses the plugin for libfabric, and FI_PROVIDER chooses a provider that has no RDMA.",
    remedy="Remove FI_PROVIDER from the container's env and command.",
    rdma="no",
)
NCCL_REASONS = (NET_PLUGIN, OFI_OVER_TCP)
#: NCCL's own transports; it ignores case (nccl, src/plugin/net.cc).
_OWN_TRANSPORTS = frozenset({"ib", "none", ""})
#: The names of plugins that obey NCCL_IB_DISABLE.
_OBEDIENT = ("ibext", "anp")
#: Parts of the names of the plugin for libfabric, aws-ofi-nccl, which uses the provider that
#: FI_PROVIDER leaves, also tcp (its README).
_LIBFABRIC = ("ofi", "libfabric")


class _Switch(NamedTuple):
    """A setting that keeps NCCL off the fabric's devices."""

    reason: Reason
    name: str  #: NCCL_NET
    setting: str  #: NCCL_NET=Socket
    remedy: str  #: what follows the setting: its place, and a clause


def judge_nccl(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the obstacle to RDMA in a target's variables for NCCL, or None."""
    subject, switch = f"container {patched.target.name}", _switch(pod, patched)
    if switch is not None:
        message = f"{subject} sets {switch.setting}{switch.remedy}"
        return patched.verdict(switch.reason, message, switch.name)
    plugin = _plugin(patched)
    if plugin:
        message = f"{subject} sets {plugin}: that plugin might not use RDMA"
        return patched.verdict(NET_PLUGIN, message, plugin.partition("=")[0])
    return None


def nccl_switched_off_by(pod: PatchedPod, patched: PatchedTarget) -> str:
    """Return the setting that keeps NCCL off the fabric's devices, or ""."""
    switch = _switch(pod, patched)
    return switch.setting if switch else ""


def _switch(pod: PatchedPod, patched: PatchedTarget) -> _Switch | None:
    user_env = patched.user_env
    socket = transport_variables.nccl_net_socket(user_env)
    if socket:
        removal = _removal(patched, "NCCL_NET")
        return _Switch(NET_SOCKET, "NCCL_NET", f"NCCL_NET={socket}", removal)
    provider = transport_variables.provider_without_rdma(user_env, "FI_PROVIDER")
    if provider and any(map(_plugin(patched).lower().__contains__, _LIBFABRIC)):
        place, removal = patched.place("FI_PROVIDER"), patched.removal("FI_PROVIDER")
        setting, remedy = f"FI_PROVIDER={provider:.40}", f"{place} for NCCL's plugin: {removal}"
        return _Switch(OFI_OVER_TCP, "FI_PROVIDER", setting, remedy)
    if _plugin(patched, _OBEDIENT) or pod.applicability.uses_foreign_nic:
        return None  # other NICs have plugins, whose names need not be in a variable
    disabled = transport_variables.nccl_ib_disabled(user_env)
    if disabled:
        removal = _removal(patched, "NCCL_IB_DISABLE")
        return _Switch(IB_DISABLED, "NCCL_IB_DISABLE", f"NCCL_IB_DISABLE={disabled}", removal)
    for devices in device_lists(pod):
        hca_list = transport_variables.nccl_ib_hca_not_of_fabric(user_env, devices)
        if hca_list:
            name, setting = transport_variables.IB_HCA, f"NCCL_IB_HCA={hca_list:.60}"
            remedy = f"{patched.place(name)}, but the fabric has {devices}"
            return _Switch(HCA_NOT_OF_FABRIC, name, setting, remedy)
    return None


def _removal(patched: PatchedTarget, name: str) -> str:
    return f"{patched.place(name)}: {patched.removal(name)}"


def _plugin(patched: PatchedTarget, except_for: tuple[str, ...] = ()) -> str:
    """Return the setting that chooses a plugin, "" if none does."""
    for name in ("NCCL_NET_PLUGIN", "NCCL_NET"):
        value = patched.user_env.get(name) or ""
        if value.lower() not in _OWN_TRANSPORTS and not value.lower().startswith(except_for):
            return f"{name}={value:.40}"
    return ""
