"""The mode of a planned fabric, with the reason for it and the conditions for it to work."""

from __future__ import annotations

from collections.abc import Iterable

from webhook.diagnose.discover.groups import Devices, Group
from webhook.diagnose.discover.plan_resources import (
    AMD_NIC,
    AMD_VNIC,
    amd_operator_resource,
    amd_ports,
    device_count,
    is_amd,
    is_efa,
    is_erdma,
    is_nvidia,
    offered_nics,
    offered_resource,
)
from webhook.diagnose.discover.site import ClaimableDevices, DiscoverOptions
from webhook.model.fabric import Mode
from webhook.model.names import counted


def mode_of(group: Group, options: DiscoverOptions) -> tuple[Mode, str]:
    """Return the mode of a group's fabric, and the reason for it."""
    if options.mode is not None and not is_erdma(group):
        return options.mode, "set by --mode"
    claimable_devices = common_claimable_devices(group)
    if claimable_devices is not None and not offered_resource(group):
        return (
            "dra",
            f"the DRA driver {claimable_devices.driver} offers RDMA devices on all these nodes",
        )
    nics = offered_nics(group)
    if nics:
        return nics.mode, f"the nodes offer {nics.name}, a unit for each NIC"
    if is_efa(group):
        return "host-network", (
            "no node is known to offer vpc.amazonaws.com/efa: install the EFA device plugin, and "
            "give --nodes; until then, only pods that mount the devices themselves can use them"
        )
    if group.card_kind.link_layer == "InfiniBand":
        return "shared-device", "InfiniBand needs no additional network in the pod"
    return _roce_mode(group, options)


def _roce_mode(group: Group, options: DiscoverOptions) -> tuple[Mode, str]:
    if is_erdma(group):
        return "host-network", "eRDMA works in pods with hostNetwork"
    if options.networks or options.network_prefix:
        return "shared-device", "RoCE, with an interface in the pod for each device (--network)"
    if is_amd(group):
        return _amd_mode(group)
    virtual = any(
        port.virtual for node_ports in group.ports_of_nodes for port in node_ports.other_ports
    )
    if virtual:
        return "sr-iov", "RoCE, and the nodes already have virtual functions"
    return "host-network", (
        "RoCE needs an interface in the pod for each device; give --network for each, or --mode "
        "sr-iov. Until then, only pods with hostNetwork can use this fabric"
    )


def _amd_mode(group: Group) -> tuple[Mode, str]:
    """Return the mode of NICs that AMD's Network Operator offers: their virtual functions first."""
    virtual = all(
        any(port.virtual for port in amd_ports(node_ports.node))
        for node_ports in group.ports_of_nodes
    )
    if virtual:
        return "sr-iov", f"AMD's Network Operator offers virtual functions as {AMD_VNIC}"
    return "host-device", f"AMD's Network Operator offers {AMD_NIC}, a unit for each NIC"


def common_claimable_devices(group: Group) -> ClaimableDevices | None:
    """Return the devices that pods can claim on every node of a group; None if there are none."""
    cluster_nodes = [node_ports.node.cluster_node for node_ports in group.ports_of_nodes]
    of_nodes = [node.claimable_devices for node in cluster_nodes if node and node.claimable_devices]
    if len(of_nodes) != len(cluster_nodes) or not of_nodes[0].nic_class:
        return None
    if len({(devices.nic_class, devices.gpu_class) for devices in of_nodes}) > 1:
        return None
    return of_nodes[0]._replace(
        nic_count=min(devices.nic_count for devices in of_nodes),
        gpu_count=min(devices.gpu_count for devices in of_nodes),
        aligned=all(devices.aligned for devices in of_nodes),
    )


_TRAFFIC_CLASS = (
    "qos.trafficClass (DSCP times 4), the class of your switches for RoCE, which no tool shows: "
    "without it, packets are in the default class, which may drop them"
)
_SHARED_PLUGIN = "the RDMA shared device plugin on these nodes (--plugin writes its configuration)"
_WHOLE_CARDS = "cards that nothing else on the node uses, since a pod gets the whole device"
_HOST_NETWORK = "pods with hostNetwork: true and dnsPolicy: ClusterFirstWithHostNet"
_NEEDS: dict[Mode, tuple[str, ...]] = {
    "shared-device": (
        _SHARED_PLUGIN,
        (
            "RDMA devices shared between network namespaces (rdma system show must print netns "
            "shared; if not: rdma system set netns shared)"
        ),
    ),
    "host-network": (
        _SHARED_PLUGIN,
        _HOST_NETWORK,
    ),
    "sr-iov": (
        "SR-IOV enabled in the BIOS and the cards' firmware, and the SR-IOV Network Operator",
        "Multus, and an IPAM plugin for the networks",
    ),
    "dra": (
        (
            "the ResourceClaimTemplate in each namespace with pods for this fabric (--plugin "
            "writes it)"
        ),
    ),
    "host-device": (
        "NVIDIA's Network Operator (its SR-IOV device plugin), Multus and an IPAM plugin",
        _WHOLE_CARDS,
    ),
}
#: Sources: those of webhook/config/examples/alibaba-erdma.yaml.
_ERDMA = (
    "the ACK eRDMA Controller with preferDriver: ofed, which gives a pod all devices of a node",
    _HOST_NETWORK,
    "Alibaba's libibverbs with the eRDMA provider in the image, and an NCCL that works with it",
    "qos.gidIndex: 1, as Alibaba's documentation says (see the example alibaba-erdma.yaml)",
)
_AMD_OPERATOR = (
    "AMD's Network Operator, which supports Pollara cards, with Multus (--plugin writes its "
    "NetworkConfig and the network)"
)
_AMD: dict[Mode, str] = {
    "host-device": _WHOLE_CARDS,
    "sr-iov": "virtual functions with RDMA on each node; a NetworkConfig creates none",
}
_WITHOUT_NVIDIA = (
    "the SR-IOV network device plugin (--plugin writes its configuration), Multus and an IPAM "
    "plugin"
)


def requirements(group: Group, mode: Mode, devices: Devices) -> Iterable[str]:
    """Yield the conditions for a mode to work, and for RoCE not to lose packets."""
    yield from _of_mode(group, mode, devices)
    if group.card_kind.link_layer == "Ethernet" and not is_erdma(group):
        yield _TRAFFIC_CLASS


def _of_mode(group: Group, mode: Mode, devices: Devices) -> Iterable[str]:
    if is_efa(group):
        yield "libfabric and aws-ofi-nccl in the image, which admission cannot see"
        yield "the EFA device plugin (aws-efa-k8s-device-plugin)"
        return
    if is_erdma(group) and mode == "host-network":
        yield from _ERDMA
        return
    nics = offered_nics(group, mode)
    if nics:
        yield f"Multus, and a network for {nics.name} (--plugin writes it)"
        return
    if amd_operator_resource(group, mode):
        yield from (_AMD_OPERATOR, _AMD[mode])
        return
    needs = _NEEDS[mode]
    if mode == "host-device" and not is_nvidia(group):
        needs = (_WITHOUT_NVIDIA, *needs[1:])
    yield from needs
    if mode == "shared-device" and group.card_kind.link_layer == "Ethernet":
        yield f"Multus, and {counted(device_count(devices), 'network')} (one for each device)"
