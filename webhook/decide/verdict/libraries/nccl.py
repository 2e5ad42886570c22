"""NCCL: whether its variables keep it off the fabric.

NCCL_IB_DISABLE turns off NCCL's own InfiniBand transport (net_ib/init.cc). It means nothing to UCX
and so to NIXL, to Mooncake, MoRI and NVSHMEM, or to a plugin with code of its own, such as
aws-ofi-nccl and FasTrak. Plugins that derive from net_ib obey it: HPC-X's IBext
(nccl-rdma-sharp-plugins, ib_plugin.c) and AMD's ANP (anp, net_ib.cc). On a fabric with `transport:
libfabric`, only the plugin aws-ofi-nccl reaches the devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from webhook.decide.mutations.env import HCA_NOT_OF_FABRIC, IB_DISABLED, NET_SOCKET
from webhook.decide.settings.terms import SWITCHES
from webhook.decide.verdict.libraries.fabric_devices import device_lists, unseen_port
from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model import transport_variables
from webhook.model.decision import Reason, Verdict
from webhook.model.fabric import Transport
from webhook.model.transport_variables import IB_HCA

NET_PLUGIN = Reason(
    "NcclNetPlugin",
    "The container's NCCL_NET or NCCL_NET_PLUGIN selects a plugin that might not use RDMA.",
    remedy=(
        "Remove NCCL_NET and NCCL_NET_PLUGIN, unless the image has the plugin that they name "
        "and the plugin uses RDMA."
    ),
    rdma="unsure",
)
OFI_OVER_TCP = Reason(
    "NcclOfiOverTcp",
    "NCCL uses the plugin for libfabric, and FI_PROVIDER chooses a provider that has no RDMA.",
    remedy="Remove FI_PROVIDER from the container's env and command.",
    rdma="no",
)
PLUGIN_OFF = Reason(
    "NcclPluginOff",
    "The fabric needs NCCL's plugin for libfabric, and NCCL_NET or NCCL_NET_PLUGIN turns the "
    "plugin off.",
    remedy="Remove NCCL_NET and NCCL_NET_PLUGIN from the container's env and command.",
    rdma="no",
)
NCCL_REASONS = (NET_PLUGIN, OFI_OVER_TCP, PLUGIN_OFF)
_VARIABLES = SWITCHES["NCCL"].keys()
#: NCCL's own transports; it ignores case (nccl, src/plugin/net.cc).
_OWN_TRANSPORTS = frozenset({"ib", "none", ""})
#: The names of plugins that obey NCCL_IB_DISABLE.
_OBEDIENT = ("ibext", "anp")
#: Parts of the names of the plugin for libfabric, aws-ofi-nccl, which uses the provider that
#: FI_PROVIDER leaves, also tcp (its README).
_LIBFABRIC = ("ofi", "libfabric")
#: A fabric's transport → parts of the names of its plugin, in lower case.
_PLUGINS: dict[Transport, tuple[str, ...]] = {
    "verbs": (),
    "libfabric": _LIBFABRIC,
    "gib": ("gib",),
}


class _Switch(NamedTuple):
    """A setting that keeps NCCL off the fabric's devices."""

    reason: Reason
    name: str  #: NCCL_NET
    value: str  #: Socket
    message_end: str  #: what follows the setting: its origin, and a clause

    @property
    def setting(self) -> str:
        return f"{self.name}={self.value}"


def judge_nccl(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the obstacle to RDMA in a target's variables for NCCL, or None."""
    if _VARIABLES.isdisjoint(patched.effective_env) and "FI_PROVIDER" not in patched.effective_env:
        return None
    subject, switch = f"container {patched.target.name}", _switch(pod, patched)
    if switch is not None:
        message = f"{subject} sets {switch.setting}{switch.message_end}"
        return patched.verdict(switch.reason, message, switch.name)
    plugin = _plugin(patched)
    if plugin and not _names_any(plugin, _PLUGINS[pod.transport]):
        message = f"{subject} sets {plugin}, and that plugin might not use RDMA"
        return patched.verdict(NET_PLUGIN, message, plugin.partition("=")[0])
    with_ports = device_lists(pod).with_ports
    hca_list = transport_variables.nccl_ib_hca_not_of_fabric(patched.effective_env, with_ports)
    return unseen_port(patched, IB_HCA, hca_list, with_ports) if hca_list else None


def nccl_switched_off_by(pod: PatchedPod, patched: PatchedTarget) -> str:
    """Return the setting that keeps NCCL off the fabric's devices, or ""."""
    switch = _switch(pod, patched)
    return switch.setting if switch else ""


def _switch(pod: PatchedPod, patched: PatchedTarget) -> _Switch | None:
    return next(_switches(pod, patched), None)


def _names_any(plugin: str, names: tuple[str, ...]) -> bool:
    return any(map(plugin.lower().__contains__, names))


def _switches(pod: PatchedPod, patched: PatchedTarget) -> Iterator[_Switch]:
    over_libfabric = pod.transport == "libfabric"
    yield from _of_other_transports(patched, over_libfabric=over_libfabric)
    if over_libfabric:
        yield from _without_plugin(patched)
    # Other NICs have plugins, whose names need not be in a variable.
    elif not _plugin(patched, _OBEDIENT) and not pod.applicability.uses_foreign_nic:
        yield from _of_own_transport(pod, patched)


def _without_plugin(patched: PatchedTarget) -> Iterator[_Switch]:
    """Yield the settings that make NCCL use its own transports, which EFA does not have."""
    for name, off in (("NCCL_NET", "ib"), ("NCCL_NET_PLUGIN", "none")):
        value = patched.effective_env.get(name) or ""
        if value.lower() == off:
            yield _Switch(PLUGIN_OFF, name, value, _removal(patched, name))


def _of_other_transports(patched: PatchedTarget, *, over_libfabric: bool) -> Iterator[_Switch]:
    socket = transport_variables.nccl_net_socket(patched.effective_env)
    if socket:
        yield _Switch(NET_SOCKET, "NCCL_NET", socket, _removal(patched, "NCCL_NET"))
    provider = transport_variables.provider_without_rdma(patched.effective_env, "FI_PROVIDER")
    if provider and (over_libfabric or _names_any(_plugin(patched), _LIBFABRIC)):
        origin_suffix = patched.origin_suffix("FI_PROVIDER")
        removal = patched.removal("FI_PROVIDER")
        message_end = f"{origin_suffix}, so NCCL's libfabric plugin uses no RDMA; {removal}"
        yield _Switch(OFI_OVER_TCP, "FI_PROVIDER", f"{provider:.40}", message_end)


def _of_own_transport(pod: PatchedPod, patched: PatchedTarget) -> Iterator[_Switch]:
    disabled = transport_variables.nccl_ib_disabled(patched.effective_env)
    if disabled:
        removal = _removal(patched, "NCCL_IB_DISABLE")
        yield _Switch(IB_DISABLED, "NCCL_IB_DISABLE", disabled, removal)
    devices = device_lists(pod).as_configured
    hca_list = transport_variables.nccl_ib_hca_not_of_fabric(patched.effective_env, devices)
    if hca_list:
        message_end = f'{patched.origin_suffix(IB_HCA)}, but the fabric\'s value is "{devices}"'
        yield _Switch(HCA_NOT_OF_FABRIC, IB_HCA, f'"{hca_list:.60}"', message_end)


def _removal(patched: PatchedTarget, name: str) -> str:
    return f"{patched.origin_suffix(name)}; {patched.removal(name)}"


def _plugin(patched: PatchedTarget, except_for: tuple[str, ...] = ()) -> str:
    """Return the setting that chooses a plugin, "" if none does."""
    for name in ("NCCL_NET_PLUGIN", "NCCL_NET"):
        value = patched.effective_env.get(name) or ""
        if value.lower() not in _OWN_TRANSPORTS and not value.lower().startswith(except_for):
            return f"{name}={value:.40}"
    return ""
