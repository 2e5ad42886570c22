"""All files for the device plugins, and notes on what could not be written.

The claim templates and the policy of NVIDIA's operator are made here, the others in
`device_plugin`, `network_config` and `networks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from webhook.diagnose.discover.cluster import PCIE_ROOT
from webhook.diagnose.discover.plan import GPU_REQUEST, NIC_REQUEST, FabricPlan
from webhook.diagnose.discover.plan_mode import common_claimable_devices
from webhook.diagnose.discover.plan_resources import (
    has_own_plugin,
    has_vendor_nics,
    is_efa,
    is_nvidia,
)
from webhook.diagnose.discover.plugin.device_plugin import (
    PluginEntry,
    PluginFile,
    PortIndex,
    config_json,
    fit_together,
    json_field,
    manifest,
    plugin_entries,
    select_devices,
    shared_plugin_files,
)
from webhook.diagnose.discover.plugin.network_config import (
    network_config_files,
    unused_but_offered,
)
from webhook.diagnose.discover.plugin.networks import network_files
from webhook.diagnose.discover.site import DiscoverOptions


class PluginFiles(NamedTuple):
    """The files that make device plugins offer the fabrics' resources."""

    files: tuple[PluginFile, ...]
    #: Sentences about what the administrator must check.
    notes: tuple[str, ...]


def plugin_files(plans: Sequence[FabricPlan], options: DiscoverOptions) -> PluginFiles:
    """Return the files for all fabrics."""
    entries = plugin_entries(plans)
    files = [
        *shared_plugin_files(entries),
        *operator_policy(
            [plan for plan in plans if is_nvidia(plan.group)],
            [plugin_entry for plugin_entry in entries if is_nvidia(plugin_entry.plan.group)],
            options,
        ),
        *network_config_files(plans),
        *sriov_plugin_files(plans),
        *network_files(plans, options),
        *claim_template_files(plans, options),
    ]
    written = {plugin_entry.plan.name for plugin_entry in entries}
    notes = [
        f"fabric {plan.name}: nothing is written for {kind}; {plugin} finds the devices"
        for plan in plans
        if has_own_plugin(plan.group)
        for kind, plugin in [_own_plugin(plan)]
    ]
    notes += [
        f"fabric {plan.name}: no tool shows PCI IDs or interfaces of its devices, so the device "
        "plugin cannot select them; add the output of lspci -nn or ibdev2netdev"
        for plan in plans
        if plan.mode in ("shared-device", "host-network")
        and plan.name not in written
        and not has_own_plugin(plan.group)
    ]
    notes += [
        f"fabric {plugin_entry.plan.name}: the device plugin's selectors wrongly include or omit "
        f"{', '.join(plugin_entry.selected.mismatches)}"
        for plugin_entry in entries
        if plugin_entry.selected.mismatches
    ]
    notes += [
        f"fabric {plan.name}: AMD's device plugin also offers NICs that the fabric does not use: "
        f"{', '.join(unused)}"
        for plan in plans
        if (unused := unused_but_offered(plan))
    ]
    return PluginFiles(tuple(files), tuple(notes))


def _own_plugin(plan: FabricPlan) -> tuple[str, str]:
    if is_efa(plan.group):
        return "EFA", "the EFA device plugin"
    return "eRDMA", "the ACK eRDMA Controller"


# The ResourceClaimTemplates of fabrics with mode dra, for the namespace of the pods.
#
# Each namespace whose pods use the fabric needs its own. One claim has a GPU and its NIC, since
# devices of two claims cannot be aligned.


def claim_template_files(plans: Sequence[FabricPlan], options: DiscoverOptions) -> list[PluginFile]:
    """Return the template of each fabric whose NICs pods claim."""
    return [_template(plan, options) for plan in plans if plan.mode == "dra"]


def _template(plan: FabricPlan, options: DiscoverOptions) -> PluginFile:
    claimable_devices = common_claimable_devices(plan.group)
    assert claimable_devices is not None  # the mode is dra
    (claim,) = plan.entry["claims"]
    name = claim["template"]
    devices = _gpu_nic_pair(claimable_devices.gpu_class, claimable_devices.nic_class)
    if "request" in claim:
        request = _request(NIC_REQUEST, claimable_devices.nic_class, claimable_devices.nic_count)
        devices = {"requests": [request]}
    comments = [
        f"Claims for fabric {plan.name}: {plan.description}.",
        f"{plan.reason_by_field['claims']}.",
        (
            "Each namespace with pods on the fabric needs this template; without it, the pods stay "
            "Pending."
        ),
    ]
    text = manifest(
        comments,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": options.namespace},
            "spec": {"spec": {"devices": devices}},
        },
    )
    return PluginFile(f"claims-{plan.name}.yaml", text)


def _gpu_nic_pair(gpu_class: str, nic_class: str) -> dict[str, object]:
    """Return a request for a GPU and the NIC at its PCIe root."""
    requests = [_request(GPU_REQUEST, gpu_class, 1), _request(NIC_REQUEST, nic_class, 1)]
    aligned = {"requests": [GPU_REQUEST, NIC_REQUEST], "matchAttribute": PCIE_ROOT}
    return {"requests": requests, "constraints": [aligned]}


def _request(name: str, device_class: str, count: int) -> dict[str, object]:
    return {"name": name, "exactly": {"deviceClassName": device_class, "count": count}}


# A NicClusterPolicy for NVIDIA's Network Operator (mellanox.com/v1alpha1).
#
# Without `ofedDriver` unless requested, since it replaces the driver of the nodes.

_OFED_WARNING = (
    "ofedDriver replaces the RDMA driver of EVERY node that has an NVIDIA card with one from a "
    "container, even while jobs run there. It needs privileged pods and drains nodes. Where it "
    "fails, the node has no RDMA, and a card that logs errors without end can fill the system "
    "disk. Remove it if the nodes have a driver that works; otherwise try it on one node first."
)
_OFED: dict[str, object] = {
    "image": "doca-driver",
    "repository": "nvcr.io/nvidia/mellanox",
    "version": "25.01-0.6.0.0-0",
    "upgradePolicy": {
        "autoUpgrade": False,
        "maxParallelUpgrades": 1,
        "drain": {"enable": True, "force": False, "timeoutSeconds": 300},
    },
}


def operator_policy(
    plans: Sequence[FabricPlan], entries: Sequence[PluginEntry], options: DiscoverOptions
) -> list[PluginFile]:
    """Return the policy, if a fabric needs a plugin that the operator runs."""
    spec: dict[str, object] = {}
    comments = ["For NVIDIA's Network Operator. A cluster has only one NicClusterPolicy."]
    if options.ofed and plans:
        spec["ofedDriver"] = _OFED
        comments.append(_OFED_WARNING)
    else:
        comments.append("ofedDriver is omitted, so the nodes keep the RDMA driver that they have.")
    if not fit_together(entries):
        comments.append(
            "rdmaSharedDevicePlugin is omitted, since one configuration cannot distinguish the "
            "nodes of the fabrics; see the ConfigMaps."
        )
    elif entries:
        spec["rdmaSharedDevicePlugin"] = {
            "image": "k8s-rdma-shared-dev-plugin",
            "repository": "ghcr.io/mellanox",
            "version": "v1.5.3",
            "config": config_json(entries),
        }
    host_device_plans = [plan for plan in plans if _needs_sriov_plugin(plan)]
    if host_device_plans:
        spec["sriovDevicePlugin"] = {
            "image": "sriov-network-device-plugin",
            "repository": "ghcr.io/k8snetworkplumbingwg",
            "version": "v3.9.0",
            "config": _sriov_plugin_config(host_device_plans, PortIndex(plans)),
        }
    if not spec:
        return []
    policy = {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "NicClusterPolicy",
        "metadata": {"name": "nic-cluster-policy"},
        "spec": spec,
    }
    return [PluginFile("nic-cluster-policy.yaml", manifest(comments, policy))]


def _needs_sriov_plugin(plan: FabricPlan) -> bool:
    """Return whether pods get whole devices that no device plugin offers yet."""
    offered = has_vendor_nics(plan.group, plan.mode)
    return plan.mode == "host-device" and not offered and not is_efa(plan.group)


def sriov_plugin_files(plans: Sequence[FabricPlan]) -> list[PluginFile]:
    """Return the ConfigMap of the SR-IOV network device plugin for whole cards of other vendors.

    Source: sriov-network-device-plugin, deployments/configMap.yaml.
    """
    chosen = [plan for plan in plans if _needs_sriov_plugin(plan) and not is_nvidia(plan.group)]
    if not chosen:
        return []
    comments = [
        "For the SR-IOV network device plugin; restart its DaemonSet after a change.",
        *(f"{plan.entry['resources'][0]['name']}: {plan.description}." for plan in chosen),
    ]
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "sriovdp-config", "namespace": "kube-system"},
        "data": {"config.json": _sriov_plugin_config(chosen, PortIndex(plans))},
    }
    return [PluginFile("sriovdp-config.yaml", manifest(comments, config_map))]


def _sriov_plugin_config(plans: Sequence[FabricPlan], all_ports: PortIndex) -> str:
    return json_field({"resourceList": [_whole_devices(plan, all_ports) for plan in plans]})


def _whole_devices(plan: FabricPlan, all_ports: PortIndex) -> dict[str, object]:
    """Return an entry of the SR-IOV device plugin that offers whole devices."""
    prefix, _, name = plan.entry["resources"][0]["name"].partition("/")
    selected = select_devices(plan, all_ports)
    selectors: dict[str, object] = {"isRdma": True}
    if selected is not None:
        chosen = selected.selectors
        named = {
            "vendors": chosen.vendors,
            "devices": chosen.device_ids,
            "pfNames": chosen.interfaces,
            "linkTypes": chosen.link_types,
        }
        selectors = {key: list(values) for key, values in named.items() if values} | selectors
    return {"resourcePrefix": prefix, "resourceName": name, "selectors": selectors}
