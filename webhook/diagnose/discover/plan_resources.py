"""The resources of a planned fabric: nodes offer them, or a device plugin is to offer them.

Sources: aws-efa-k8s-device-plugin (vpc.amazonaws.com/efa); help.aliyun.com, "Use eRDMA to
accelerate container networks" (aliyun/erdma); ROCm/k8s-network-device-plugin, README, "Advertised
Resources" (amd.com/nic and amd.com/vnic); ROCm/network-operator, docs/overview.md (its device
plugin offers both); the chart of sriov-network-operator, whose resourcePrefix is openshift.io, and
whose list of supported NICs has none of AMD's.
"""

from __future__ import annotations

from typing import NamedTuple

from webhook.config.names import is_plugin_resource
from webhook.diagnose.discover.fabric_entry import ResourceEntryForm
from webhook.diagnose.discover.groups import Devices, Group
from webhook.diagnose.discover.site import DiscoverOptions, MergedNode, MergedPort
from webhook.diagnose.tools.hardware import ALIBABA_ID, AMAZON_ID, MELLANOX_ID, PENSANDO_ID
from webhook.model.fabric import Mode

#: What AMD's device plugin offers: NICs, and virtual functions of NICs.
AMD_NIC, AMD_VNIC = "amd.com/nic", "amd.com/vnic"
#: Vendor → the resources that its own device plugin offers, each with the mode of its fabric.
_VENDOR_RESOURCES: dict[int, tuple[tuple[str, Mode], ...]] = {
    AMAZON_ID: (("vpc.amazonaws.com/efa", "host-device"),),
    PENSANDO_ID: ((AMD_NIC, "host-device"), (AMD_VNIC, "sr-iov")),
}
#: If no tool shows the vendor: EFA is not among them, since its devices always show theirs.
_OF_UNKNOWN_VENDOR = _VENDOR_RESOURCES[PENSANDO_ID]


class OfferedNics(NamedTuple):
    """A resource of a vendor's device plugin, one unit for each NIC, of all nodes."""

    name: str
    mode: Mode
    #: The smallest number of them on a node.
    amount: int


def vendor_of(group: Group) -> int | None:
    """Return the PCI vendor of a group's cards; None if no tool shows it."""
    vendors = {
        port.vendor_id
        for node_ports in group.ports_of_nodes
        for port in node_ports.fabric_ports
        if port.vendor_id is not None
    }
    return vendors.pop() if len(vendors) == 1 else None


def is_nvidia(group: Group) -> bool:
    """Return whether a group's cards may be NVIDIA's, so that its operator serves them."""
    return vendor_of(group) in (None, MELLANOX_ID)


def is_efa(group: Group) -> bool:
    """Return whether a group's cards are EFA devices, which libraries reach through libfabric."""
    return group.card_kind.link_layer == "EFA"


def is_erdma(group: Group) -> bool:
    """Return whether a group's cards are Alibaba's, which its own device plugin offers."""
    return vendor_of(group) == ALIBABA_ID


def has_own_plugin(group: Group) -> bool:
    """Return whether a cloud's device plugin finds the cards, so that none is configured."""
    return is_efa(group) or is_erdma(group)


def is_amd(group: Group) -> bool:
    """Return whether a group's cards are AMD's, which AMD's Network Operator serves."""
    return vendor_of(group) == PENSANDO_ID


def amd_ports(node: MergedNode) -> list[MergedPort]:
    """Return the ports of a node's AMD cards; each has an RDMA device."""
    return [port for port in node.ports if port.vendor_id == PENSANDO_ID]


def offered_nics(group: Group, mode: Mode | None = None) -> OfferedNics | None:
    """Return the NICs that the cards' vendor has a device plugin for, if all nodes offer them.

    With a mode, return only NICs for fabrics of that mode.
    """
    nodes = [node_ports.node.cluster_node for node_ports in group.ports_of_nodes]
    vendor = vendor_of(group)
    offers = _VENDOR_RESOURCES.get(vendor, ()) if vendor else _OF_UNKNOWN_VENDOR
    for name, resource_mode in offers:
        counts = [node.resources.get(name, 0) if node else 0 for node in nodes]
        if all(counts) and mode in (None, resource_mode):
            return OfferedNics(name, resource_mode, min(counts))
    return None


def only_virtual_functions(group: Group) -> bool:
    """Return whether nodes have no AMD card but its virtual functions, as virtual machines do."""
    return all(
        port.virtual for node_ports in group.ports_of_nodes for port in amd_ports(node_ports.node)
    )


def amd_operator_resource(group: Group, mode: Mode) -> str:
    """Return the resource that AMD's Network Operator is to offer; "" if it is not needed.

    It is not needed where the nodes offer the resource already.
    """
    for_pods = mode in ("host-device", "sr-iov")
    if not is_amd(group) or not for_pods or offered_nics(group, mode):
        return ""
    return AMD_VNIC if mode == "sr-iov" or only_virtual_functions(group) else AMD_NIC


def has_vendor_nics(group: Group, mode: Mode) -> bool:
    """Return whether pods of a mode get NICs of the vendor's device plugin."""
    return offered_nics(group, mode) is not None or bool(amd_operator_resource(group, mode))


def resource_entries(
    name: str, group: Group, devices: Devices, mode: Mode, options: DiscoverOptions
) -> tuple[list[ResourceEntryForm], str]:
    """Return the resources of the fabric with this name, and the reason for them."""
    nics, reason = offered_nics(group, mode), "already offered by the nodes"
    if resource := amd_operator_resource(group, mode):
        nics = OfferedNics(resource, mode, device_count(devices))
        reason = "offered by AMD's Network Operator with the NetworkConfig that --plugin writes"
    if nics:
        entry = _nics_per_gpu(group, nics)
        if not is_efa(group):
            entry["network"] = f"{options.namespace}/{name}"
        return [entry], reason
    if has_own_plugin(group):
        return _of_own_plugin(group)
    short, prefix = name.replace("-", "_"), "nvidia.com" if is_nvidia(group) else "openshift.io"
    if mode == "sr-iov":
        rails: list[ResourceEntryForm] = [
            {
                "name": f"{prefix}/{short}_rail{rail}",
                "network": f"{options.namespace}/{name}-rail{rail}",
            }
            for rail in range(device_count(devices))
        ]
        return (
            rails,
            "a virtual function of each device; --plugin writes the policies and networks",
        )
    if mode == "host-device":
        return [
            {
                "name": f"{prefix}/{short}_hostdev",
                "count": device_count(devices),
                "network": f"{options.namespace}/{name}",
            }
        ], "all devices of a node for one pod; --plugin writes the network"
    offered = offered_resource(group)
    if offered:
        return [{"name": offered}], "already offered by the nodes"
    return [{"name": f"rdma/{short}"}], "offered by the device plugin that --plugin configures"


def _of_own_plugin(group: Group) -> tuple[list[ResourceEntryForm], str]:
    """Return the resource of eRDMA; the amount of EFA's is unknown until nodes offer it."""
    if is_efa(group):
        return [], ""
    return [{"name": "aliyun/erdma"}], "offered by the ACK eRDMA Controller"


def _nics_per_gpu(group: Group, nics: OfferedNics) -> ResourceEntryForm:
    """Return an entry with a GPU's share of the NICs; all of a node if GPUs cannot share evenly."""
    gpus = {_gpu_count(node_ports.node) for node_ports in group.ports_of_nodes}
    count = gpus.pop() if len(gpus) == 1 else 0
    if not count or (nics.amount % count and count % nics.amount):
        return {"name": nics.name, "count": nics.amount}
    entry: ResourceEntryForm = {"name": nics.name, "count": "per-gpu"}
    if nics.amount > count:
        entry["devicesPerGpu"] = nics.amount // count
    elif nics.amount < count:
        entry["gpusPerDevice"] = count // nics.amount
    return entry


def _gpu_count(node: MergedNode) -> int:
    """Return the number of a node's GPUs, as its plugin offers them or tools list them; 0: none."""
    cluster_node = node.cluster_node
    offered = cluster_node.gpu_resources if cluster_node else ()
    if cluster_node and len(offered) == 1:
        return cluster_node.resources[offered[0]]
    return sum(gpu.number or 0 for gpu in node.gpus)


def offered_resource(group: Group) -> str:
    """Return the only RDMA shared device plugin resource that all nodes offer, or ""."""
    cluster_nodes = [node_ports.node.cluster_node for node_ports in group.ports_of_nodes]
    resources_of_nodes = [set(node.rdma_resources) if node else set() for node in cluster_nodes]
    common = set.intersection(*resources_of_nodes)
    if len(common) != 1:
        return ""
    name = common.pop()
    return name if is_plugin_resource(name.removeprefix("rdma/")) else ""


def device_count(devices: Devices) -> int:
    """Return the number of devices that a fabric uses, whatever their ports."""
    return len({name.partition(":")[0] for name in devices.used})
