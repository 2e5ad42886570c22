"""The fields of a planned fabric that must be right on every node of its group.

They are the RDMA devices that NCCL may use, the interface for hostNetwork, and how pods and nodes
show that they belong to the group. How the fabrics file writes them is at the end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from os.path import commonprefix
from typing import Literal, NamedTuple, Required, TypedDict

from webhook.config.names import intended_product, is_interface, is_label_glob
from webhook.diagnose.discover.groups import Devices, Group
from webhook.diagnose.discover.port_selection import PortSelection
from webhook.diagnose.discover.site import listed_nodes, natural
from webhook.diagnose.tools.observations import LinkLayer
from webhook.model.fabric import Mode

# Say which RDMA devices of a group NCCL may use.

#: MAX_IB_DEVS of NCCL's net_ib.
_MOST = 32
_LETTERS = re.compile(r"[A-Za-z]+")


class HcaList(NamedTuple):
    """One of the three lists of a fabric."""

    field: Literal["hcas", "excludeHcas", "hcaPrefixes"]
    names: tuple[str, ...]
    because: str


def hca_list(group: Group, devices: Devices) -> HcaList:
    """Return the list for a group: exact names where possible, since they match nothing else.

    A name that a node lacks, or whose port is down there, is skipped by NCCL, so all nodes can have
    the same list.
    """
    others = _others(group)
    if len(devices.used) <= _MOST:
        return HcaList("hcas", devices.used, _exact(group, devices))
    prefix = _prefix(devices, others)
    many = f"{len(devices.used)} names on {len(group.nodes)} nodes, and NCCL takes {_MOST}"
    if prefix:
        return HcaList("hcaPrefixes", (prefix,), f"{many}; no other device begins with {prefix}")
    if others and len(others) <= _MOST:
        return HcaList("excludeHcas", others, f"{many}: all devices but these")
    return HcaList("hcas", devices.used[:_MOST], f"{many}: the first {_MOST}")


def _others(group: Group) -> tuple[str, ...]:
    """Return the devices of the nodes that are not the fabric's."""
    found = {port.device for choice in group.choices for port in choice.left_out if port.device}
    return tuple(sorted(found, key=natural))


def _prefix(devices: Devices, others: tuple[str, ...]) -> str:
    """Return letters with which exactly the fabric's devices begin; "" if there are none."""
    found = _LETTERS.match(commonprefix([*devices.used]))  # noqa: RUF071 - no paths, but names
    if found is None or any(name.startswith(found[0]) for name in (*others, *devices.left_out)):
        return ""
    return "" if "mlx5_bond_0".startswith(found[0]) else found[0]


def _exact(group: Group, devices: Devices) -> str:
    absent = {
        name: tuple(
            choice.node.name
            for choice in group.choices
            if name.partition(":")[0] not in choice.devices
        )
        for name in devices.used
    }
    parts = [
        f"{name} is not on {listed_nodes(nodes)}, where NCCL skips it"
        for name, nodes in absent.items()
        if nodes
    ]
    if len(parts) > 2:  # noqa: PLR2004
        return "names differ between nodes; NCCL skips those that a node lacks"
    where = "on the node" if len(group.nodes) == 1 else f"on all {len(group.nodes)} nodes"
    return "; ".join(parts) or f"the {group.model or 'same'} cards {where}"


# Find the interface of the nodes over which pods with hostNetwork reach each other (ip -br a).

#: Interfaces of container networks, virtual machines and tunnels, which other nodes do not reach.
_INNER = re.compile(
    r"(?:lo|docker|br-|virbr|veth|cali|cilium|lxc|flannel|cni|kube|nodelocal|tunl|vxlan|geneve|wg"
    r"|tailscale|podman|dummy|ovs|ovn|genev|gre|sit|antrea|weave|idrac|usb)"
)


class HostInterface(NamedTuple):
    """An interface that all nodes have, or why none can be named."""

    name: str
    because: str


def host_interface(group: Group) -> HostInterface:
    """Return the only interface with an address that all nodes have, RDMA ports' own last.

    With RoCE, a node may have no other interface than that of its RDMA port, which carries TCP too.
    """
    shown = [choice for choice in group.choices if choice.node.interfaces]
    if not shown:
        return HostInterface("", "no tool lists the interfaces: add the output of ip -br a")
    if len(shown) < len(group.choices):
        return HostInterface("", "not all nodes list their interfaces (ip -br a)")
    apart = set.intersection(*(_reached(choice) - _of_rdma(choice) for choice in shown))
    common = apart or set.intersection(*(_reached(choice) & _of_roce(choice) for choice in shown))
    if len(common) != 1:
        listed = ", ".join(sorted(common)) or "none"
        return HostInterface("", f"interfaces that all nodes have with an address: {listed}")
    (name,) = common
    if not is_interface(name):
        return HostInterface("", f"{name!r} cannot be written in a list")
    own = "" if apart else ", an RDMA port's own"
    return HostInterface(name, f"the only interface with an address that is up on all nodes{own}")


def _reached(choice: PortSelection) -> set[str]:
    """Return the interfaces with an address at which other nodes may reach this one."""
    return {
        one.netdev.partition("@")[0]
        for one in choice.node.interfaces
        if one.state != "DOWN"
        and any("." in address for address in one.addresses)
        and not _INNER.match(one.netdev)
        and not one.netdev.startswith("ib")
    }


def _of_rdma(choice: PortSelection) -> set[str]:
    return {netdev for port in choice.ports for netdev in port.netdevs}


def _of_roce(choice: PortSelection) -> set[str]:
    ports = (port for port in choice.ports if port.link_layer == "Ethernet")
    return {netdev for port in ports for netdev in port.netdevs}


# Say how pods and nodes show that they belong to a group, so that no two groups are confused.

_HOSTNAME = "kubernetes.io/hostname"
_GPU = "nvidia.com/gpu"
#: Labels that tell pools of nodes apart, the ones that people set on purpose first.
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

    #: None: nothing is known of the resources, and the file's default holds.
    gpu_resources: tuple[str, ...] | None
    product: str | None
    labels: Mapping[str, tuple[str, ...]]
    #: Field → why it is so.
    reasons: Mapping[str, str]


def matches(groups: Sequence[Group], resources: Sequence[frozenset[str]]) -> list[Match]:
    """Return the match of each group, whose fabric lists the RDMA resources at the same place.

    Labels are added to all where neither GPUs nor resources of its own tell a group.
    """
    found = [_by_gpus(group) for group in groups]
    if not _share_gpus(found) and not _nameless(found, resources):
        return found
    key, because = _telling_label(groups)
    return [
        match._replace(
            labels={key: _values(group, key)},
            reasons={**match.reasons, "nodeLabels": because},
        )
        for match, group in zip(found, groups, strict=True)
    ]


def _by_gpus(group: Group) -> Match:
    reasons: dict[str, str] = {}
    resources = _resources(group)
    if resources is not None:
        reasons["gpuResources"] = (
            "what the nodes offer" if resources else "the nodes offer no GPU, so GPUs say nothing"
        )
    if group.product:
        reasons["gpuProducts"] = "the label nvidia.com/gpu.product of GPU feature discovery"
    return Match(resources, group.product, {}, reasons)


def _resources(group: Group) -> tuple[str, ...] | None:
    """Return what the nodes offer, () if they have no GPU; None if that is unknown."""
    if group.without_gpus:
        return ()
    kubes = [choice.node.kube for choice in group.choices]
    if not all(kubes):
        return None
    found = {name for kube in kubes if kube for name in kube.gpu_resources}
    if not found and any(choice.node.gpus for choice in group.choices):
        return None  # the GPU plugin is not ready, or not yet installed
    return tuple(sorted(found))


def _share_gpus(found: Sequence[Match]) -> bool:
    """Return whether two groups claim the same GPU resource, and no product tells them apart."""
    products: dict[str, list[str | None]] = {}
    for one in found:
        for resource in _claimed(one):
            products.setdefault(resource, []).append(one.product)
    return any(len(of) > 1 and (not all(of) or len(set(of)) < len(of)) for of in products.values())


def _nameless(found: Sequence[Match], resources: Sequence[frozenset[str]]) -> bool:
    """Return whether nothing leads to a group: no GPU, and no RDMA resource but those of others."""
    listed = Counter(name for names in resources for name in names)
    return any(
        not _claimed(match) and all(listed[name] > 1 for name in names)
        for match, names in zip(found, resources, strict=True)
    )


def _claimed(match: Match) -> tuple[str, ...]:
    return (_GPU,) if match.gpu_resources is None else match.gpu_resources


def _telling_label(groups: Sequence[Group]) -> tuple[str, str]:
    """Return a label whose values tell all groups apart, and why it is used."""
    for key in _POOLS:
        values = [set(_values(group, key)) for group in groups]
        every = [one for of in values for one in of]
        if all(values) and "" not in every and len(every) == len(set(every)):
            return key, "GPUs alone do not tell the fabrics apart, and this label does"
    return _HOSTNAME, (
        "GPUs alone do not tell the fabrics apart; better label the nodes yourself and write that "
        "label here"
    )


def _values(group: Group, key: str) -> tuple[str, ...]:
    """Return the values of a label on the nodes of a group; "" for a node without it."""
    found: dict[str, None] = {}
    for choice in group.choices:
        kube = choice.node.kube
        value = kube.labels.get(key, "") if kube else ""
        if key == _HOSTNAME and not value:
            value = choice.node.name
        if value == "" or is_label_glob(value):
            found[value] = None
    return tuple(found)


# The entry of a fabric in the fabrics file, as far as it is planned here.


class MatchEntry(TypedDict, total=False):
    """The pods and nodes that a fabric is for."""

    gpuResources: list[str]
    gpuProducts: list[str]
    nodeLabels: dict[str, list[str]]
    deviceClasses: list[str]


class ResourceEntry(TypedDict, total=False):
    """A resource that containers request."""

    name: Required[str]
    count: int
    network: str


class ClaimEntry(TypedDict, total=False):
    """A claim that pods make."""

    template: Required[str]
    request: str


class FabricEntry(TypedDict, total=False):
    """A fabric."""

    name: Required[str]
    match: MatchEntry
    mode: Required[Mode]
    resources: list[ResourceEntry]
    claims: list[ClaimEntry]
    linkLayer: LinkLayer
    rateGbps: int
    hcas: list[str]
    excludeHcas: list[str]
    hcaPrefixes: list[str]
    socketInterface: str
    hostSocketInterface: str
    libraries: list[str]
    networks: list[str]


def match_entry(match: Match) -> MatchEntry:
    """Return the fields of a match that say something."""
    entry: MatchEntry = {}
    if match.gpu_resources is not None:
        entry["gpuResources"] = list(match.gpu_resources)
    if match.product:
        entry["gpuProducts"] = [_as_glob(match.product)]
    if match.labels:
        entry["nodeLabels"] = {key: list(values) for key, values in match.labels.items()}
    return entry


def _as_glob(product: str) -> str:
    """Return a glob for a product; `[N]VIDIA-...` for one that could be taken for a misspelling."""
    return f"[{product[0]}]{product[1:]}" if intended_product(product) else product
