"""Networks that bring a device, or an interface on it, into pods.

Each rail has one, but whole devices and the NICs of a vendor's device plugin have one for all
devices of a fabric.

Addresses come from nv-ipam, from a pool with the network's name. The pools are not written, since
no tool shows which addresses are free. AMD's NICs keep the addresses of their interfaces instead.
Sources: the CRDs of sriov-network-operator (sriovnetwork.openshift.io/v1) and network-operator
(mellanox.com/v1alpha1), and the CNI plugin macvlan.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from webhook.diagnose.discover.gpu_products import AMD_LABEL, NVIDIA_LABEL
from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.plan_resources import (
    AMD_NIC,
    AMD_VNIC,
    has_vendor_nics,
    is_efa,
    is_nvidia,
)
from webhook.diagnose.discover.plugin.device_plugin import PluginFile, manifest, own_interface
from webhook.diagnose.discover.site import DiscoverOptions, MergedPort
from webhook.diagnose.discover.used_ports import used_ports
from webhook.model.names import natural_key

_OPERATOR = "nvidia-network-operator"
#: The namespace of sriov-network-operator without NVIDIA's operator (its README).
_SRIOV_OPERATOR = "sriov-network-operator"
_VIRTUAL_FUNCTIONS = 8
_ADDRESS_COMMENT = (
    "Addresses: create an nv-ipam IPPool for each poolName, or write another ipam. No tool shows "
    "which addresses are free."
)
_AMD_ADDRESS_COMMENT = (
    "amd-host-device is a CNI plugin of AMD's Network Operator. Addresses: a NIC keeps those that "
    "its interface has on the node, so no ipam is needed."
)


def network_files(plans: Sequence[FabricPlan], options: DiscoverOptions) -> list[PluginFile]:
    """Return the networks of all fabrics that need some."""
    files: list[PluginFile] = []
    for plan in plans:
        if has_vendor_nics(plan.group, plan.mode):
            files += _offered(plan, options)
        elif plan.mode == "sr-iov" and not is_efa(plan.group):
            files.append(_sriov(plan, options))
        elif plan.mode == "host-device" and is_nvidia(plan.group):
            files.append(_host_device(plan, options))
        elif plan.mode == "host-device":
            files += _offered(plan, options)
        elif plan.entry.get("networks"):
            files.append(_macvlan(plan, options))
    return files


def _sriov(plan: FabricPlan, options: DiscoverOptions) -> PluginFile:
    objects = [
        kube_object
        for rail, (device, resource) in enumerate(
            zip(_rails(plan), plan.entry["resources"], strict=True)
        )
        for kube_object in _rail(plan, rail, device, resource["name"], options)
    ]
    comments = [
        f"SR-IOV for fabric {plan.name}: {plan.description}.",
        (
            f"For the SR-IOV Network Operator with resourcePrefix {_prefix(plan)}, "
            f"{_origin(plan)}. numVfs is the number of virtual functions of each card; a change "
            "may restart nodes."
        ),
        _ADDRESS_COMMENT,
    ]
    return PluginFile(f"sriov-{plan.name}.yaml", manifest(comments, *objects))


def _prefix(plan: FabricPlan) -> str:
    return plan.entry["resources"][0]["name"].partition("/")[0]


def _origin(plan: FabricPlan) -> str:
    if is_nvidia(plan.group):
        return "as NVIDIA's Network Operator installs it"
    return "its default; check that its list of supported NICs has the ids below"


def _rails(plan: FabricPlan) -> list[str]:
    return list(dict.fromkeys(name.partition(":")[0] for name in plan.devices.used))


def _rail(
    plan: FabricPlan, rail: int, device: str, resource: str, options: DiscoverOptions
) -> Iterator[dict[str, object]]:
    """Yield the policy and the network of one rail."""
    infiniband = plan.group.card_kind.link_layer == "InfiniBand"
    operator = _OPERATOR if is_nvidia(plan.group) else _SRIOV_OPERATOR
    short, name = resource.rpartition("/")[2], f"{plan.name}-rail{rail}"
    yield {
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetworkNodePolicy",
        "metadata": {"name": name, "namespace": operator},
        "spec": {
            "resourceName": short,
            "nodeSelector": _node_selector(plan),
            "nicSelector": _nic_selector(plan, device),
            "numVfs": _VIRTUAL_FUNCTIONS,
            "deviceType": "netdevice",
            "isRdma": True,
            "linkType": "ib" if infiniband else "eth",
        },
    }
    yield {
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovIBNetwork" if infiniband else "SriovNetwork",
        "metadata": {"name": name, "namespace": operator},
        "spec": {
            "networkNamespace": options.namespace,
            "resourceName": short,
            **({"linkState": "enable"} if infiniband else {}),
            "ipam": _pool(name),
        },
    }


def _pool(name: str) -> str:
    return json.dumps({"type": "nv-ipam", "poolName": name})


def _node_selector(plan: FabricPlan) -> dict[str, str]:
    """Return labels that all nodes have: their GPUs' product, and SR-IOV capability."""
    product = {NVIDIA_LABEL: plan.group.product} if plan.group.product else {}
    if plan.group.amd_gpus:
        product = _amd_label(plan)
    return {"feature.node.kubernetes.io/network-sriov.capable": "true", **product}


def _amd_label(plan: FabricPlan) -> dict[str, str]:
    """Return the label of AMD's labeller if all nodes have the same; tools spell it differently."""
    nodes = [node_ports.node.cluster_node for node_ports in plan.group.ports_of_nodes]
    values = {node.labels.get(AMD_LABEL, "") if node else "" for node in nodes}
    value = values.pop() if len(values) == 1 else ""
    return {AMD_LABEL: value} if value else {}


def _nic_selector(plan: FabricPlan, device: str) -> dict[str, object]:
    ports = [port for _, port in used_ports(plan) if port.device == device]
    vendors = {port.vendor_id for port in ports} - {None}
    ids = {port.device_id for port in ports} - {None}
    selector: dict[str, object] = {}
    if len(vendors) == 1:
        selector["vendor"] = f"{vendors.pop():04x}"
    if len(ids) == 1:
        selector["deviceID"] = f"{ids.pop():04x}"
    if names := _interfaces(ports):
        selector["pfNames"] = names
    elif addresses := sorted({port.pci for port in ports if port.pci}):
        selector["rootDevices"] = addresses
    return selector


def _interfaces(ports: Sequence[MergedPort]) -> list[str]:
    return sorted({name for port in ports if (name := own_interface(port))}, key=natural_key)


def _host_device(plan: FabricPlan, options: DiscoverOptions) -> PluginFile:
    name = plan.entry["resources"][0]["name"].rpartition("/")[2]
    network = {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "HostDeviceNetwork",
        "metadata": {"name": plan.name},
        "spec": {
            "networkNamespace": options.namespace,
            "resourceName": name,
            "ipam": _pool(plan.name),
        },
    }
    comments = [
        f"Whole devices for pods of fabric {plan.name}: {plan.description}.",
        "While a pod has a device, neither the node nor another pod can use it.",
        _ADDRESS_COMMENT,
    ]
    return PluginFile(f"host-device-{plan.name}.yaml", manifest(comments, network))


def _offered(plan: FabricPlan, options: DiscoverOptions) -> list[PluginFile]:
    """Return a network that moves the NICs of a device plugin into pods; [] if EFA needs none.

    Multus sets the deviceID of the CNI plugin from the annotation. Sources: CNI plugins,
    host-device; ROCm/network-operator, docs/secondary_network/amd-host-device-cni.md.
    """
    if is_efa(plan.group):
        return []
    resource = plan.entry["resources"][0]["name"]
    of_amd = resource in (AMD_NIC, AMD_VNIC)
    comments = [
        f"The NICs that {resource} offers, for pods of fabric {plan.name}: {plan.description}.",
        _AMD_ADDRESS_COMMENT if of_amd else _ADDRESS_COMMENT,
    ]
    plugin: dict[str, object] = (
        {"type": "amd-host-device"}
        if of_amd
        else {"type": "host-device", "ipam": {"type": "nv-ipam", "poolName": plan.name}}
    )
    config = {"cniVersion": "0.3.1", "name": plan.name, **plugin}
    network = {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {
            "name": plan.name,
            "namespace": options.namespace,
            "annotations": {"k8s.v1.cni.cncf.io/resourceName": resource},
        },
        "spec": {"config": json.dumps(config)},
    }
    return [PluginFile(f"network-{plan.name}.yaml", manifest(comments, network))]


def _macvlan(plan: FabricPlan, options: DiscoverOptions) -> PluginFile:
    """Return a network for each RoCE device, on that device's interface."""
    comments = [
        (
            f"An interface in the pod for each RoCE device of fabric {plan.name}; not needed if "
            "networks of these names exist."
        ),
        _ADDRESS_COMMENT,
    ]
    objects = []
    for device, network_name in zip(_rails(plan), plan.entry["networks"], strict=False):
        masters = _interfaces([port for _, port in used_ports(plan) if port.device == device])
        namespace, _, name = network_name.partition("@")[0].rpartition("/")
        if len(masters) != 1:
            reason = (
                f"the interface of {device} differs between nodes: {', '.join(masters)}"
                if masters
                else f"no tool shows the interface of {device}"
            )
            comments.append(f"{network_name} is missing here, since {reason}.")
            continue
        objects.append(_attachment(name, namespace or options.namespace, masters[0]))
    return PluginFile(f"networks-{plan.name}.yaml", manifest(comments, *objects))


def _attachment(name: str, namespace: str, master: str) -> dict[str, object]:
    config = {
        "cniVersion": "0.3.1",
        "name": name,
        "type": "macvlan",
        "master": master,
        "mode": "bridge",
        "ipam": {"type": "nv-ipam", "poolName": name},
    }
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"config": json.dumps(config)},
    }
