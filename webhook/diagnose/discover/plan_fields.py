"""The fields of a planned fabric that must be right on every node of its group.

They are the RDMA devices that NCCL may use, the interface for hostNetwork, and the `match` of pods
and nodes. Their types in the fabrics file are at the end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from os.path import commonprefix
from typing import Literal, NamedTuple, Required

from typing_extensions import TypedDict

from webhook.config.names import intended_product, is_interface, is_label_glob
from webhook.diagnose.discover.groups import Devices, Group
from webhook.diagnose.discover.port_selection import NodePorts
from webhook.diagnose.tools.observations import LinkLayer
from webhook.model.fabric import Mode
from webhook.model.names import counted, natural_key, shortened_list

# The RDMA devices of a group that NCCL may use.

#: MAX_IB_DEVS of NCCL's net_ib.
_MAX_DEVICES = 32
_LETTERS = re.compile(r"[A-Za-z]+")


class HcaList(NamedTuple):
    """A fabric's list of devices, in one of its three forms."""

    field: Literal["hcas", "excludeHcas", "hcaPrefixes"]
    names: tuple[str, ...]
    reason: str


def hca_list(group: Group, devices: Devices) -> HcaList:
    """Return the list for a group: exact names if possible, since they match nothing else.

    NCCL skips a name that a node lacks, or whose port is down there, so all nodes can have the same
    list.
    """
    other_devices = _other_devices(group)
    if len(devices.used) <= _MAX_DEVICES:
        return HcaList("hcas", devices.used, _reason_for_exact_names(group, devices))
    prefix = _prefix(devices, other_devices)
    excess = (
        f"{len(devices.used)} device names on {counted(len(group.nodes), 'node')}, but NCCL reads "
        f"only {_MAX_DEVICES}"
    )
    if prefix:
        return HcaList("hcaPrefixes", (prefix,), f"{excess}; no other name begins with {prefix}")
    if other_devices and len(other_devices) <= _MAX_DEVICES:
        return HcaList("excludeHcas", other_devices, f"{excess}; all devices except these")
    return HcaList(
        "hcas", devices.used[:_MAX_DEVICES], f"{excess}; these are the first {_MAX_DEVICES}"
    )


def _other_devices(group: Group) -> tuple[str, ...]:
    """Return the devices of the nodes whose ports are not the fabric's."""
    names = {
        port.device
        for node_ports in group.ports_of_nodes
        for port in node_ports.other_ports
        if port.device
    }
    return tuple(sorted(names, key=natural_key))


def _prefix(devices: Devices, other_devices: tuple[str, ...]) -> str:
    """Return a prefix that only the fabric's devices have, or ""."""
    match = _LETTERS.match(commonprefix([*devices.used]))  # noqa: RUF071 - no paths, but names
    excluded = (*other_devices, *devices.unused)
    if match is None or any(name.startswith(match[0]) for name in excluded):
        return ""
    return "" if "mlx5_bond_0".startswith(match[0]) else match[0]


def _reason_for_exact_names(group: Group, devices: Devices) -> str:
    absent = {
        name: tuple(
            node_ports.node.name
            for node_ports in group.ports_of_nodes
            if name.partition(":")[0] not in node_ports.devices
        )
        for name in devices.used
    }
    parts = [
        f"{name} is missing on {shortened_list(nodes)}, where NCCL skips it"
        for name, nodes in absent.items()
        if nodes
    ]
    if len(parts) > 2:  # noqa: PLR2004
        return "not every node has all of these; NCCL skips the names that a node lacks"
    count = len(group.nodes)
    nodes = {1: "the node", 2: "both nodes"}.get(count, f"all {count} nodes")
    cards = "card" if count == len(devices.used) == 1 else "cards"
    return "; ".join(parts) or f"the {f'{group.model} ' if group.model else ''}{cards} on {nodes}"


# The interface of the nodes that connects pods with hostNetwork (ip -br a).

#: Interfaces of container networks, virtual machines and tunnels, which other nodes cannot reach.
_INNER = re.compile(
    r"(?:lo|docker|br-|virbr|veth|cali|cilium|lxc|flannel|cni|kube|nodelocal|tunl|vxlan|geneve|wg"
    r"|tailscale|podman|dummy|ovs|ovn|genev|gre|sit|antrea|weave|idrac|usb)"
)


class HostInterface(NamedTuple):
    """An interface that all nodes have, or "" and the reason."""

    name: str
    reason: str


def host_interface(group: Group) -> HostInterface:
    """Return the only interface with an address that all nodes have.

    Interfaces of RDMA ports count only if there is no other: with RoCE, a node may have only the
    interface of its RDMA port, which carries TCP too.
    """
    with_interfaces = [
        node_ports for node_ports in group.ports_of_nodes if node_ports.node.interfaces
    ]
    if not with_interfaces:
        return HostInterface("", "no tool lists the interfaces (add the output of ip -br a)")
    if len(with_interfaces) < len(group.ports_of_nodes):
        return HostInterface(
            "", "the interfaces of some nodes are unknown (add the output of ip -br a)"
        )
    separate = set.intersection(
        *(
            _reachable_interfaces(node_ports) - _of_rdma(node_ports)
            for node_ports in with_interfaces
        )
    )
    common = separate or set.intersection(
        *(
            _reachable_interfaces(node_ports) & _of_roce(node_ports)
            for node_ports in with_interfaces
        )
    )
    if len(common) != 1:
        listed = ", ".join(sorted(common)) or "none"
        return HostInterface("", f"interfaces with an address on all nodes: {listed}")
    (name,) = common
    if not is_interface(name):
        return HostInterface("", f"{name!r} is not valid in a list of interfaces")
    suffix = "" if separate else "; it belongs to an RDMA port"
    return HostInterface(
        name, f"the only interface that is up and has an address on all nodes{suffix}"
    )


def _reachable_interfaces(node_ports: NodePorts) -> set[str]:
    """Return the interfaces whose addresses other nodes may reach."""
    return {
        interface.netdev.partition("@")[0]
        for interface in node_ports.node.interfaces
        if interface.state != "DOWN"
        and any("." in address for address in interface.addresses)
        and not _INNER.match(interface.netdev)
        and not interface.netdev.startswith("ib")
    }


def _of_rdma(node_ports: NodePorts) -> set[str]:
    return {netdev for port in node_ports.fabric_ports for netdev in port.netdevs}


def _of_roce(node_ports: NodePorts) -> set[str]:
    ports = (port for port in node_ports.fabric_ports if port.link_layer == "Ethernet")
    return {netdev for port in ports for netdev in port.netdevs}


# The `match` of a group: resources, products and labels that no other group has.

_HOSTNAME = "kubernetes.io/hostname"
_GPU = "nvidia.com/gpu"
#: Labels that distinguish pools of nodes, the deliberate ones first.
_POOLS = (
    "rdma.lab/fabric",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "eks.amazonaws.com/nodegroup",
    "node.kubernetes.io/instance-type",
    "nvidia.com/gpu.machine",
)


class Match(NamedTuple):
    """The `match` of a fabric."""

    #: None: the resources are unknown, and the file's default applies.
    gpu_resources: tuple[str, ...] | None
    product: str | None
    labels: Mapping[str, tuple[str, ...]]
    #: Field → the reason for its value.
    reason_by_field: Mapping[str, str]


def matches(groups: Sequence[Group], resources: Sequence[frozenset[str]]) -> list[Match]:
    """Return the match of each group; `resources` are the RDMA resources of each group's fabric.

    If neither GPUs nor unique resources identify a group, all groups get labels.
    """
    group_matches = [_by_gpus(group) for group in groups]
    if not _share_gpus(group_matches) and not _lacks_identity(group_matches, resources):
        return group_matches
    key, reason = _distinguishing_label(groups)
    return [
        match._replace(
            labels={key: _values(group, key)},
            reason_by_field={**match.reason_by_field, "nodeLabels": reason},
        )
        for match, group in zip(group_matches, groups, strict=True)
    ]


def _by_gpus(group: Group) -> Match:
    reason_by_field: dict[str, str] = {}
    resources = _resources(group)
    if resources is not None:
        reason_by_field["gpuResources"] = (
            "offered by the nodes" if resources else "the nodes have no GPUs"
        )
    if group.product:
        reason_by_field["gpuProducts"] = "as in the node label nvidia.com/gpu.product"
    return Match(resources, group.product, {}, reason_by_field)


def _resources(group: Group) -> tuple[str, ...] | None:
    """Return the GPU resources of the nodes, () if they have no GPU; None if unknown."""
    if group.without_gpus:
        return ()
    kubes = [node_ports.node.kube for node_ports in group.ports_of_nodes]
    if not all(kubes):
        return None
    names = {name for kube in kubes if kube for name in kube.gpu_resources}
    if not names and any(node_ports.node.gpus for node_ports in group.ports_of_nodes):
        return None  # the GPU plugin is not ready, or not yet installed
    return tuple(sorted(names))


def _share_gpus(group_matches: Sequence[Match]) -> bool:
    """Return whether two groups claim the same GPU resource without distinct products."""
    products: dict[str, list[str | None]] = {}
    for match in group_matches:
        for resource in _claimed_gpu_resources(match):
            products.setdefault(resource, []).append(match.product)
    return any(
        len(claims) > 1 and (not all(claims) or len(set(claims)) < len(claims))
        for claims in products.values()
    )


def _lacks_identity(group_matches: Sequence[Match], resources: Sequence[frozenset[str]]) -> bool:
    """Return whether nothing identifies a group: no GPU, and no RDMA resource of its own."""
    listed = Counter(name for names in resources for name in names)
    return any(
        not _claimed_gpu_resources(match) and all(listed[name] > 1 for name in names)
        for match, names in zip(group_matches, resources, strict=True)
    )


def _claimed_gpu_resources(match: Match) -> tuple[str, ...]:
    return (_GPU,) if match.gpu_resources is None else match.gpu_resources


def _distinguishing_label(groups: Sequence[Group]) -> tuple[str, str]:
    """Return a label with distinct values for all groups, and the reason for using it."""
    for key in _POOLS:
        values = [set(_values(group, key)) for group in groups]
        every = [label for labels in values for label in labels]
        if all(values) and "" not in every and len(every) == len(set(every)):
            return key, "the GPUs do not distinguish the fabrics, but this label does"
    return _HOSTNAME, (
        "the GPUs do not distinguish the fabrics; a label of your own on the nodes would be better "
        "than their names"
    )


def _values(group: Group, key: str) -> tuple[str, ...]:
    """Return the values of a label on the nodes of a group; "" for a node without it."""
    values: dict[str, None] = {}
    for node_ports in group.ports_of_nodes:
        kube = node_ports.node.kube
        value = kube.labels.get(key, "") if kube else ""
        if key == _HOSTNAME and not value:
            value = node_ports.node.name
        if value == "" or is_label_glob(value):
            values[value] = None
    return tuple(values)


# The entry of a fabric in the fabrics file, with the fields that are planned here.


class MatchEntryForm(TypedDict, total=False):
    """The pods and nodes of a fabric."""

    gpuResources: list[str]
    gpuProducts: list[str]
    nodeLabels: dict[str, list[str]]
    deviceClasses: list[str]


class ResourceEntryForm(TypedDict, total=False):
    """A resource that containers request."""

    name: Required[str]
    count: int
    network: str


class ClaimEntryForm(TypedDict, total=False):
    """A claim that pods make."""

    template: Required[str]
    request: str


class FabricEntryForm(TypedDict, total=False):
    """A fabric."""

    name: Required[str]
    match: MatchEntryForm
    mode: Required[Mode]
    resources: list[ResourceEntryForm]
    claims: list[ClaimEntryForm]
    linkLayer: LinkLayer
    rateGbps: int
    hcas: list[str]
    excludeHcas: list[str]
    hcaPrefixes: list[str]
    socketInterface: str
    hostSocketInterface: str
    libraries: list[str]
    networks: list[str]


def match_entry_form(match: Match) -> MatchEntryForm:
    """Return the fields of a match that are set."""
    entry: MatchEntryForm = {}
    if match.gpu_resources is not None:
        entry["gpuResources"] = list(match.gpu_resources)
    if match.product:
        entry["gpuProducts"] = [_as_glob(match.product)]
    if match.labels:
        entry["nodeLabels"] = {key: list(values) for key, values in match.labels.items()}
    return entry


def _as_glob(product: str) -> str:
    """Return a glob for a product; `[N]VIDIA-...` if it could pass for a misspelling."""
    return f"[{product[0]}]{product[1:]}" if intended_product(product) else product
