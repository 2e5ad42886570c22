"""The NetworkConfigs of AMD's Network Operator (amd.com/v1alpha1), which offers AMD's NICs.

A NetworkConfig selects nodes, not NICs. The device plugin that it starts on them offers each NIC
with an RDMA device, by the ConfigMap of the operator's chart. Without `driver`, the operator would
install one. Sources: ROCm/network-operator, api/v1alpha1/networkconfig_types.go (fields, defaults),
helm-charts-k8s/templates/device-plugin-config.yaml (ids), internal/utils.go (labels of nodes),
internal/controllers/network_config_reconciler.go (a node of two NetworkConfigs is refused),
docs/drivers/drivers.md, and docs/installation/kubernetes-helm.md (namespace).
"""

from __future__ import annotations

from collections.abc import Sequence

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.plan_resources import (
    AMD_NIC,
    amd_operator_resource,
    amd_ports,
    only_virtual_functions,
)
from webhook.diagnose.discover.plugin.device_plugin import PluginFile, manifest
from webhook.diagnose.discover.used_ports import used_ports

_NAMESPACE = "kube-amd-network"
#: The device id of a NIC; its virtual functions have 1003.
_NIC_ID = 0x1002
_COMMENTS = (
    (
        "For AMD's Network Operator, in its namespace. It refuses a second NetworkConfig for a "
        "node: if these nodes have one, add secondaryNetwork there instead."
    ),
    (
        "There are no selectors for NICs: the operator's device plugin offers all that have RDMA "
        "and the driver ionic, those with the PCI ID 1dd8:1002 as amd.com/nic, and virtual "
        "functions (1dd8:1003) as amd.com/vnic."
    ),
    (
        "driver.enable is false, so the nodes keep the RDMA driver that they have; by default, the "
        "operator installs another. cniPlugins installs amd-host-device. All else, such as images, "
        "is the operator's default. Its chart has Node Feature Discovery set the selected label."
    ),
)


def network_config_files(plans: Sequence[FabricPlan]) -> list[PluginFile]:
    """Return the file for all fabrics whose NICs the operator is to offer; [] without any."""
    chosen = [plan for plan in plans if amd_operator_resource(plan.group, plan.mode)]
    if not chosen:
        return []
    fabrics = [f"{plan.entry['resources'][0]['name']}: {plan.description}." for plan in chosen]
    kinds = dict.fromkeys(_kind_of_nodes(plan) for plan in chosen)
    text = manifest([*_COMMENTS, *fabrics], *map(_network_config, kinds))
    return [PluginFile("network-config.yaml", text)]


def _kind_of_nodes(plan: FabricPlan) -> str:
    """Return the label of the nodes, without its domain."""
    return "amd-vnic" if only_virtual_functions(plan.group) else "amd-nic"


def _network_config(kind_of_nodes: str) -> dict[str, object]:
    return {
        "apiVersion": "amd.com/v1alpha1",
        "kind": "NetworkConfig",
        "metadata": {"name": kind_of_nodes, "namespace": _NAMESPACE},
        "spec": {
            "driver": {"enable": False},
            "secondaryNetwork": {"cniPlugins": {"enable": True}},
            "selector": {f"feature.node.kubernetes.io/{kind_of_nodes}": "true"},
        },
    }


def unused_but_offered(plan: FabricPlan) -> list[str]:
    """Return the NICs that the operator would offer, though the fabric does not use them.

    Each with its node: "ionic_2 on node1".
    """
    if amd_operator_resource(plan.group, plan.mode) != AMD_NIC:
        return []
    used = {(node_ports.node.name, port.device) for node_ports, port in used_ports(plan)}
    return [
        f"{port.name} on {node_ports.node.name}"
        for node_ports in plan.group.ports_of_nodes
        for port in amd_ports(node_ports.node)
        if port.device_id == _NIC_ID and (node_ports.node.name, port.device) not in used
    ]
