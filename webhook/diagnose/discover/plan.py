"""Plan a fabric: its name, and its entry in the fabrics file, with a reason for each field.

The fields that must be right on every node of the group are in `plan_fields` and `plan_match`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from webhook.diagnose.discover.fabric_entry import FabricEntryForm
from webhook.diagnose.discover.groups import Devices, Group, devices_of, names_for
from webhook.diagnose.discover.plan_fields import HcaList, HostInterface, hca_list, host_interface
from webhook.diagnose.discover.plan_match import Match, match_entry_form, matches
from webhook.diagnose.discover.plan_mode import common_claimable_devices, mode_of, requirements
from webhook.diagnose.discover.plan_resources import (
    device_count,
    is_efa,
    is_erdma,
    resource_entries,
)
from webhook.diagnose.discover.site import ClaimableDevices, DiscoverOptions, rate_text
from webhook.model.fabric import Mode
from webhook.model.finding import Code, Finding, Location
from webhook.model.names import counted, shortened_list

#: In these modes each pod has its own devices, so no list can name them.
_OWN_DEVICE = ("sr-iov", "host-device", "dra")
#: The requests of a claim template.
GPU_REQUEST, NIC_REQUEST = "gpu", "nic"


class FabricPlan(NamedTuple):
    """A proposed fabric."""

    name: str
    description: str  #: its nodes, GPUs and cards
    group: Group
    devices: Devices
    mode: Mode
    #: The entry of the fabrics file.
    entry: FabricEntryForm
    #: Field of the entry → the reason for its value; a field of `match` as `match.gpuProducts`.
    reason_by_field: dict[str, str]
    #: The conditions for the mode to work.
    requirements: tuple[str, ...]


class RefusedGroup(NamedTuple):
    """A group without a fabric, and the finding that explains it."""

    group: Group
    finding: Finding


def plan_fabrics(
    groups: Sequence[Group], options: DiscoverOptions
) -> list[FabricPlan | RefusedGroup]:
    """Plan a fabric for each group."""
    names = names_for(groups)
    group_matches = matches(
        groups, [_resource_names(*pair, options) for pair in zip(names, groups, strict=True)]
    )
    return [
        _plan(name, group, match, options)
        for name, group, match in zip(names, groups, group_matches, strict=True)
    ]


def _resource_names(name: str, group: Group, options: DiscoverOptions) -> frozenset[str]:
    """Return the resources that the fabric of a group lists."""
    mode, _ = mode_of(group, options)
    if mode == "dra" and common_claimable_devices(group) is not None:
        return frozenset()
    listed, _ = resource_entries(name, group, devices_of(group), mode, options)
    return frozenset(resource["name"] for resource in listed)


def _plan(
    name: str, group: Group, match: Match, options: DiscoverOptions
) -> FabricPlan | RefusedGroup:
    devices = devices_of(group)
    mode, mode_reason = mode_of(group, options)
    if mode == "shared-device" and (finding := _without_networks(group, devices, options)):
        return RefusedGroup(group, finding)
    entry: FabricEntryForm = {"name": name, "match": match_entry_form(match), "mode": mode}
    reason_by_field = {"mode": mode_reason}
    reason_by_field |= {f"match.{field}": reason for field, reason in match.reason_by_field.items()}
    claimable_devices = common_claimable_devices(group)
    if mode == "dra" and claimable_devices is not None:
        _add_claims(
            entry, reason_by_field, claimable_devices, plugin_offers_gpus=bool(match.gpu_resources)
        )
    else:
        resources, reason = resource_entries(name, group, devices, mode, options)
        if resources:
            entry["resources"], reason_by_field["resources"] = resources, reason
    _add_link(entry, reason_by_field, group, devices)
    if is_efa(group) and mode == "host-network":
        _add_host_interface(entry, reason_by_field, host_interface(group))
    elif mode not in _OWN_DEVICE and not is_efa(group):
        chosen = hca_list(group, devices)
        entry[chosen.field], reason_by_field[chosen.field] = list(chosen.names), chosen.reason
        _add_interfaces(entry, reason_by_field, group, chosen, mode)
    else:
        entry["socketInterface"], reason_by_field["socketInterface"] = "eth0", _ETH0
    if mode == "shared-device" and group.card_kind.link_layer == "Ethernet":
        entry["networks"] = list(options.networks_for(device_count(devices)))
        option = "--network-prefix" if options.network_prefix else "--network"
        reason_by_field["networks"] = (
            f"set by {option}: one interface in the pod for each RoCE device"
        )
    if not entry["match"]:
        del entry["match"]
    return FabricPlan(
        name,
        describe_group(group),
        group,
        devices,
        mode,
        entry,
        reason_by_field,
        tuple(requirements(group, mode, devices)),
    )


def _add_link(
    entry: FabricEntryForm, reason_by_field: dict[str, str], group: Group, devices: Devices
) -> None:
    """Add the link layer or the transport, and the rate if it is a whole number."""
    if group.card_kind.link_layer == "EFA":
        field, entry["transport"] = "transport", "libfabric"
        reason_by_field[field] = "NCCL reaches EFA through the plugin aws-ofi-nccl"
    else:
        field, entry["linkLayer"] = "linkLayer", group.card_kind.link_layer
        reason_by_field[field] = f"from the ports of {_devices_text(devices)}"
    if group.rate is not None and group.rate.is_integer():
        entry["rateGbps"], reason_by_field["rateGbps"] = int(group.rate), _rate_reason(group)
    elif group.rate is not None:
        omission = f"rateGbps is omitted, since {rate_text(group.rate)} is not a whole number"
        reason_by_field[field] += f"; {omission}"


_ETH0 = "the interface of the pod network; nearly all CNI plugins use this name"


def _add_claims(
    entry: FabricEntryForm,
    reason_by_field: dict[str, str],
    claimable_devices: ClaimableDevices,
    *,
    plugin_offers_gpus: bool,
) -> None:
    """Add the template: of a GPU with its NIC if both can be claimed together, else of NICs."""
    name, gpus = entry["name"], claimable_devices.gpu_class if not plugin_offers_gpus else ""
    if gpus:
        entry["match"] |= {"gpuResources": [], "deviceClasses": [gpus]}
        reason_by_field["match.deviceClasses"] = (
            "the DeviceClass that selects the GPUs of a DRA driver"
        )
        reason_by_field["match.gpuResources"] = "no device plugin offers GPUs"
    if gpus and claimable_devices.aligned:
        entry["claims"] = [{"template": f"{name}-gpu-nic"}]
        reason_by_field["claims"] = (
            "a GPU with the NIC at its PCIe root; for several pairs in a container, repeat both "
            "requests and their constraint in the template"
        )
        return
    entry["claims"] = [{"template": f"{name}-nics", "request": NIC_REQUEST}]
    reason = (
        "a device plugin offers the GPUs"
        if plugin_offers_gpus
        else "no GPU can be claimed with its NIC"
    )
    nics = (
        f"all {claimable_devices.nic_count} NICs of a node"
        if claimable_devices.nic_count > 1
        else "the NIC of a node"
    )
    reason_by_field["claims"] = f"{nics}, because {reason}; request fewer where pods share nodes"


ROCE_NETWORKS_MISSING = Code(
    "RoceNetworksMissing",
    "RoCE in mode shared-device needs a Multus network for each device, but --network was "
    "given fewer times than there are devices.",
    "Give --network once for each device, each time with a macvlan network on the device's "
    "interface. If pods use virtual functions or the host network instead, give --mode sr-iov or "
    "--mode host-network.",
)


def _without_networks(group: Group, devices: Devices, options: DiscoverOptions) -> Finding | None:
    """Refuse RoCE in mode shared-device without an interface in the pod for each device."""
    networks = options.networks_for(device_count(devices))
    if group.card_kind.link_layer != "Ethernet" or len(networks) >= device_count(devices):
        return None
    text = (
        "no fabric was written: RoCE in mode shared-device needs "
        f"{counted(device_count(devices), 'Multus network')} (one for each device), but --network "
        f"gives {len(networks)}"
    )
    return ROCE_NETWORKS_MISSING.finding("error", text, location=Location(nodes=group.nodes))


def describe_group(group: Group) -> str:
    """Describe a group: "2 nodes (a, b), NVIDIA-H100-80GB-HBM3, InfiniBand 400 Gb/s"."""
    count = counted(len(group.nodes), "node")
    gpus = group.product or ("no GPU" if group.without_gpus else "GPUs unknown")
    rate = ", rate unknown" if group.rate is None else f" {rate_text(group.rate)}"
    link = f"{group.card_kind.link_layer}{rate}"
    split = f"; a separate fabric because {group.split_reason}" if group.split_reason else ""
    card = f"{group.model or 'card unknown'}, " if group.model != group.card_kind.link_layer else ""
    hardware = f"{gpus}, {card}{link}"
    return f"{count} ({shortened_list(group.nodes)}): {hardware}{split}"


def _devices_text(devices: Devices) -> str:
    names = devices.used
    return ", ".join(names) if len(names) < 4 else f"{names[0]} to {names[-1]}"  # noqa: PLR2004


def _rate_reason(group: Group) -> str:
    active = [
        port
        for node_ports in group.ports_of_nodes
        for port in node_ports.fabric_ports
        if port.rate_gbps == group.rate and port.state == "Active"
    ]
    tools = sorted({tool for port in active for tool in port.sources})
    if not active:
        return "no tool shows the state of the ports"
    return f"{counted(len(active), 'Active port')} ({', '.join(tools)})"


def _add_interfaces(
    entry: FabricEntryForm,
    reason_by_field: dict[str, str],
    group: Group,
    chosen: HcaList,
    mode: Mode,
) -> None:
    """Add the socket interfaces, and omit UCX if none is known for it."""
    host: HostInterface = host_interface(group)
    if mode == "shared-device":
        entry["socketInterface"], reason_by_field["socketInterface"] = "eth0", _ETH0
        return
    _add_host_interface(entry, reason_by_field, host)
    if is_erdma(group):
        entry["libraries"] = ["nccl", "gloo"]
        reason_by_field["libraries"] = "without ucx, which works over eRDMA only with a patch"
    elif not host.name and chosen.field == "hcas":
        entry["libraries"] = ["nccl", "gloo"]
        reason_by_field["libraries"] = (
            f"without ucx, which needs hostSocketInterface in addition to hcas; {host.reason}"
        )


def _add_host_interface(
    entry: FabricEntryForm, reason_by_field: dict[str, str], host: HostInterface
) -> None:
    if host.name:
        entry["hostSocketInterface"] = host.name
        reason_by_field["hostSocketInterface"] = host.reason
