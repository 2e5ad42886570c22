"""The configuration of the RDMA shared device plugin (k8s-rdma-shared-dev-plugin 1.5.3).

It becomes a ConfigMap with comments; its selectors also serve the SR-IOV device plugin.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, product
from typing import NamedTuple

import yaml

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.plan_resources import has_own_plugin, is_nvidia
from webhook.diagnose.discover.site import MergedPort
from webhook.diagnose.discover.used_ports import used_ports
from webhook.model.names import natural_key, shortened_list
from webhook.text.escape import visible

# The entries of the shared device plugin, and their files.
#
# A node offers `rdmaHcaMax` units of a resource as soon as one device fits its selectors; one unit
# mounts all devices that fit. So a resource whose selectors fit devices of another fabric's nodes
# would be offered there, too.

#: How many pods of a node can have the resource at once: 63, as in the examples of NVIDIA's Network
#: Operator; nodes run 110 pods at most by default.
_PODS = 63
_SECONDS = 300
_PREFIX = "rdma/"
_SHARED = ("shared-device", "host-network")


class PluginEntry(NamedTuple):
    """An entry of the plugin's configuration."""

    plan: FabricPlan
    #: As in the configuration.
    fields: dict[str, object]
    selected: ChosenSelectors


class PluginFile(NamedTuple):
    """A file to write."""

    name: str
    text: str


def plugin_entries(plans: Sequence[FabricPlan]) -> list[PluginEntry]:
    """Return an entry for each fabric that uses the plugin and whose devices can be selected."""
    entries = []
    all_ports = PortIndex(plans)
    for plan in plans:
        shares = plan.mode in _SHARED and not has_own_plugin(plan.group)
        selected = select_devices(plan, all_ports) if shares else None
        if selected is not None:
            fields: dict[str, object] = {
                "resourceName": plan.entry["resources"][0]["name"].removeprefix(_PREFIX),
                "rdmaHcaMax": _PODS,
                "selectors": _selectors_json(selected.selectors),
            }
            entries.append(PluginEntry(plan, fields, selected))
    return entries


def config_json(entries: Sequence[PluginEntry]) -> str:
    """Return config.json."""
    listed = [plugin_entry.fields for plugin_entry in entries]
    return json_field({"periodicUpdateInterval": _SECONDS, "configList": listed})


def fit_together(entries: Sequence[PluginEntry]) -> bool:
    """Return whether one configuration can serve the nodes of all fabrics.

    The plugin rejects two entries of one name, and offers a resource where any device fits.
    """
    names = {plugin_entry.fields["resourceName"] for plugin_entry in entries}
    clear = len(names) == len(entries) and not any(
        plugin_entry.selected.elsewhere for plugin_entry in entries
    )
    return clear or len(entries) == 1


def shared_plugin_files(entries: Sequence[PluginEntry]) -> list[PluginFile]:
    """Return one ConfigMap, or one for each fabric if selectors cannot distinguish their nodes."""
    if fit_together(entries):
        return [_config_map("rdma-devices", entries, _comments(entries))] if entries else []
    return [
        _config_map(
            f"rdma-devices-{plugin_entry.plan.name}",
            [plugin_entry],
            _separate_comments(plugin_entry),
        )
        for plugin_entry in entries
    ]


def _config_map(name: str, entries: Sequence[PluginEntry], comments: list[str]) -> PluginFile:
    text = manifest(
        comments,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "kube-system"},
            "data": {"config.json": config_json(entries)},
        },
    )
    return PluginFile(f"{name}.yaml", text)


def _comments(entries: Sequence[PluginEntry]) -> list[str]:
    operator = "If NVIDIA's Network Operator runs the plugin, use nic-cluster-policy.yaml instead."
    only_nvidia = all(is_nvidia(plugin_entry.plan.group) for plugin_entry in entries)
    return [
        (
            "For k8s-rdma-shared-dev-plugin 1.5.3 or newer; restart its DaemonSet after a change. "
            f"{operator if only_nvidia else ''}"
        ),
        (
            f"rdmaHcaMax: at most {_PODS} pods of a node can have the resource at the same time. "
            "Each gets all devices that match the selectors."
        ),
        *(sentence for plugin_entry in entries for sentence in _about(plugin_entry)),
    ]


def _separate_comments(plugin_entry: PluginEntry) -> list[str]:
    nodes = ", ".join(plugin_entry.plan.group.nodes)
    explanation = (
        "Selectors cannot distinguish the nodes of the fabrics, so each fabric has its own "
        "ConfigMap. Run a DaemonSet of k8s-rdma-shared-dev-plugin for each, with a nodeSelector "
        f"for these nodes: {nodes}."
    )
    return [explanation, *_about(plugin_entry)]


def _about(plugin_entry: PluginEntry) -> list[str]:
    """Describe the nodes of an entry, and the devices that it selects or misses by mistake."""
    resource = f"{_PREFIX}{plugin_entry.fields['resourceName']}"
    sentences = [f"{resource}: {plugin_entry.plan.description}."]
    if plugin_entry.selected.mismatches:
        sentences.append(
            f"WRONG: no selectors fit exactly, so {resource} includes or omits these devices by "
            f"mistake: {shortened_list(plugin_entry.selected.mismatches, 6)}. Give the interfaces "
            "the same names on all nodes (udev), and add ifNames."
        )
    return sentences


def _selectors_json(selectors: Selectors) -> dict[str, list[str]]:
    named = {
        "vendors": selectors.vendors,
        "deviceIDs": selectors.device_ids,
        "ifNames": selectors.interfaces,
        "linkTypes": selectors.link_types,
    }
    return {name: list(values) for name, values in named.items() if values}


# Write Kubernetes objects as YAML, with comments above them.

_MAX_WIDTH = 100
#: PCI ids: some YAML parsers read 10e5 as a number.
_DIGITS = re.compile(r"[0-9a-fA-F]+")


class _Dumper(yaml.SafeDumper):
    """A YAML dumper that writes text of several lines as a block."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else '"' if _DIGITS.fullmatch(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def manifest(comments: Iterable[str], *objects: Mapping[str, object]) -> str:
    """Return comments, followed by objects as a stream of documents."""
    lines = [line for comment in comments for line in _comment(comment)]
    texts = [
        yaml.dump(
            dict(document), Dumper=_Dumper, sort_keys=False, width=_MAX_WIDTH, allow_unicode=True
        )
        for document in objects
    ]
    return "".join(f"{line}\n" for line in lines) + "---\n".join(texts)


def json_field(value: object) -> str:
    """Return readable JSON for a field of an object."""
    return json.dumps(value, indent=2) + "\n"


def _comment(text: str) -> list[str]:
    lines = ["#"]
    for word in visible(text).split():
        if len(lines[-1]) + len(word) + 1 > _MAX_WIDTH:
            lines.append("#")
        lines[-1] += f" {word}"
    return lines


# Choose the selectors that make a device plugin select a fabric's devices, and no others.
#
# The RDMA shared device plugin and the SR-IOV device plugin select the devices that fit all
# selectors; within a selector one value is enough. The interface belongs to the PCI device itself,
# it is never a bond. The link type belongs to the interface, so a device without one has none.
# Sources: k8s-rdma-shared-dev-plugin, pkg/resources (device_selectors.go, pci_net_device.go).

_LINK_TYPES = {"InfiniBand": "infiniband", "Ethernet": "ether"}
#: Interfaces that no PCI device has.
_NO_DEVICE = ("bond", "team", "br-")


class Selectors(NamedTuple):
    """Selectors; an empty one selects everything."""

    vendors: tuple[str, ...] = ()
    device_ids: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    link_types: tuple[str, ...] = ()

    def matches(self, port: MergedPort) -> bool:
        """Return whether the device of a port is selected."""
        return all(
            not accepted or value in accepted
            for accepted, value in zip(self, _facts(port), strict=True)
        )


class ChosenSelectors(NamedTuple):
    """The selectors for a fabric, and their mistakes."""

    selectors: Selectors
    #: The devices that they select or miss by mistake: "mlx5_2 on node1".
    mismatches: tuple[str, ...]
    #: The number of devices that they select on the nodes of other fabrics.
    elsewhere: int


#: Vendor, device id, interface and link type of a port, as selectors spell them.
_Facts = tuple[str | None, ...]


def _facts(port: MergedPort) -> _Facts:
    link = _LINK_TYPES.get(port.link_layer or "")
    return _hex(port.vendor_id), _hex(port.device_id), own_interface(port), link


class PortIndex:
    """The ports of all fabrics' nodes, indexed by the values that selectors compare."""

    def __init__(self, plans: Iterable[FabricPlan]) -> None:
        self._facts = Counter(_facts(port) for plan in plans for port in _ports_of(plan))
        #: Flags of the selectors that are not empty → the number of ports by their values.
        self._counts: dict[tuple[bool, ...], Counter[_Facts]] = {}

    def count_selected(self, selectors: Selectors) -> int:
        """Return the number of selected ports, in a time independent of the number of ports."""
        is_set = tuple(bool(accepted) for accepted in selectors)
        if is_set not in self._counts:
            counts = self._counts[is_set] = Counter()
            for facts, count in self._facts.items():
                counts[tuple(compress(facts, is_set))] += count
        counts = self._counts[is_set]
        return sum(counts[values] for values in product(*compress(selectors, is_set)))


def _ports_of(plan: FabricPlan) -> Iterator[MergedPort]:
    """Yield all RDMA ports of a fabric's nodes, also unused ones."""
    for node_ports in plan.group.ports_of_nodes:
        yield from (port for port in node_ports.node.ports if port.device)


def own_interface(port: MergedPort) -> str | None:
    """Return the interface of the PCI device itself, not a bond; None if no tool shows it."""
    return next((name for name in port.netdevs if not name.startswith(_NO_DEVICE)), None)


def select_devices(plan: FabricPlan, all_ports: PortIndex) -> ChosenSelectors | None:
    """Return the loosest selectors that are right on all nodes, or else with the fewest mistakes.

    None: no tool shows ids or interfaces of the fabric's devices.
    """
    candidates = []
    for selectors in _candidates(plan):
        mismatches = tuple(dict.fromkeys(_mismatches(selectors, plan)))
        here = sum(map(selectors.matches, _ports_of(plan)))
        candidates.append(
            ChosenSelectors(selectors, mismatches, all_ports.count_selected(selectors) - here)
        )
    return min(
        candidates,
        key=lambda candidate: (len(candidate.mismatches), candidate.elsewhere),
        default=None,
    )


def _candidates(plan: FabricPlan) -> Iterator[Selectors]:
    """Yield selectors from the loosest to the strictest."""
    ports = [port for _, port in used_ports(plan)]
    if not ports:
        return
    vendors = _values(_hex(port.vendor_id) for port in ports)
    ids = _values(_hex(port.device_id) for port in ports)
    interfaces = _values(own_interface(port) for port in ports)
    links = _values(_LINK_TYPES.get(port.link_layer or "") for port in ports)
    by_id = Selectors(vendors=vendors, device_ids=ids) if ids else Selectors()
    if ids:
        yield by_id
    if ids and interfaces:
        yield by_id._replace(link_types=links)
    if interfaces:
        yield by_id._replace(link_types=links, interfaces=interfaces)


def _values(optional_values: Iterator[str | None]) -> tuple[str, ...]:
    """Return the values in natural order; () if any is unknown."""
    values = list(optional_values)
    distinct = {value for value in values if value is not None}
    return tuple(sorted(distinct, key=natural_key)) if None not in values else ()


def _hex(number: int | None) -> str | None:
    return None if number is None else f"{number:04x}"


def _mismatches(selectors: Selectors, plan: FabricPlan) -> Iterator[str]:
    used = {(node_ports.node.name, port.device) for node_ports, port in used_ports(plan)}
    for node_ports in plan.group.ports_of_nodes:
        for port in node_ports.node.ports:
            is_used = (node_ports.node.name, port.device) in used
            if port.device and selectors.matches(port) != is_used:
                yield f"{port.name} on {node_ports.node.name}"
