"""The configuration of the RDMA shared device plugin (k8s-rdma-shared-dev-plugin 1.5.3).

It is written as a ConfigMap with comments; its selectors also serve the SR-IOV device plugin.
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
from webhook.diagnose.discover.site import SitePort, natural
from webhook.diagnose.discover.used_ports import used_ports
from webhook.text.escape import visible

# The entries of the shared device plugin, and the files that hold them.
#
# A node offers `rdmaHcaMax` units of a resource as soon as one device fits its selectors; one unit
# mounts all devices that fit. So a resource whose selectors fit devices of another fabric's nodes
# would be offered there as well.

#: Pods on a node that have the resource at the same time; nodes run 110 pods at most by default.
_PODS = 63
_SECONDS = 300
_PREFIX = "rdma/"
_SHARED = ("shared-device", "host-network")


class SharedEntry(NamedTuple):
    """An entry of the plugin's configuration."""

    plan: FabricPlan
    entry: dict[str, object]
    selected: Selected


class PluginFile(NamedTuple):
    """A file to write."""

    name: str
    text: str


def shared_entries(plans: Sequence[FabricPlan]) -> list[SharedEntry]:
    """Return an entry for each fabric that uses the plugin, if its devices can be selected."""
    found = []
    census = PortCensus(plans)
    for plan in plans:
        selected = select_devices(plan, census) if plan.mode in _SHARED else None
        if selected is not None:
            entry = {
                "resourceName": plan.entry["resources"][0]["name"].removeprefix(_PREFIX),
                "rdmaHcaMax": _PODS,
                "selectors": _written(selected.selectors),
            }
            found.append(SharedEntry(plan, entry, selected))
    return found


def configuration_of(entries: Sequence[SharedEntry]) -> str:
    """Return config.json."""
    listed = [one.entry for one in entries]
    return json_field({"periodicUpdateInterval": _SECONDS, "configList": listed})


def in_one_configuration(entries: Sequence[SharedEntry]) -> bool:
    """Return whether one configuration can serve the nodes of all fabrics.

    The plugin rejects two entries of one name, and offers a resource where any device fits.
    """
    names = {one.entry["resourceName"] for one in entries}
    clear = len(names) == len(entries) and not any(one.selected.elsewhere for one in entries)
    return clear or len(entries) == 1


def shared_plugin_files(entries: Sequence[SharedEntry]) -> list[PluginFile]:
    """Return the ConfigMap; one for each fabric where selectors cannot tell their nodes apart."""
    if in_one_configuration(entries):
        return [_config_map("rdma-devices", entries, _comments(entries))] if entries else []
    return [
        _config_map(f"rdma-devices-{one.plan.name}", [one], _comments_apart(one)) for one in entries
    ]


def _config_map(name: str, entries: Sequence[SharedEntry], comments: list[str]) -> PluginFile:
    text = manifest(
        comments,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "kube-system"},
            "data": {"config.json": configuration_of(entries)},
        },
    )
    return PluginFile(f"{name}.yaml", text)


def _comments(entries: Sequence[SharedEntry]) -> list[str]:
    return [
        (
            "For k8s-rdma-shared-dev-plugin 1.5.3 or newer; restart its DaemonSet after a change. "
            "Where NVIDIA's network operator runs the plugin, use nic-cluster-policy.yaml instead."
        ),
        (
            f"rdmaHcaMax: at most {_PODS} pods on a node have a resource at the same time; a unit "
            "mounts all devices that fit the selectors."
        ),
        *(words for one in entries for words in _about(one)),
    ]


def _comments_apart(one: SharedEntry) -> list[str]:
    nodes = ", ".join(one.plan.group.nodes)
    apart = (
        "Selectors alone cannot tell the nodes of the fabrics apart, so each fabric has its own "
        "ConfigMap. Run a DaemonSet of k8s-rdma-shared-dev-plugin for each, with a nodeSelector "
        f"for these nodes: {nodes}."
    )
    return [apart, *_about(one)]


def _about(one: SharedEntry) -> list[str]:
    """Say which devices an entry is for, and which it gets wrong."""
    resource = f"{_PREFIX}{one.entry['resourceName']}"
    words = [f"{resource}: {one.plan.reasons['name']}."]
    if one.selected.wrong:
        words.append(
            f"WRONG, and no selectors are right: {resource} also takes, or does not take, "
            f"{', '.join(one.selected.wrong[:6])}. Give interfaces the same names on all nodes "
            "(udev), and write ifNames."
        )
    return words


def _written(selectors: Selectors) -> dict[str, list[str]]:
    named = {
        "vendors": selectors.vendors,
        "deviceIDs": selectors.device_ids,
        "ifNames": selectors.interfaces,
        "linkTypes": selectors.link_types,
    }
    return {name: list(values) for name, values in named.items() if values}


# Write Kubernetes objects as YAML, with comments above them.

_WIDEST = 100
#: Ids of PCI: some readers of YAML take 10e5 for a number.
_DIGITS = re.compile(r"[0-9a-fA-F]+")


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else '"' if _DIGITS.fullmatch(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def manifest(comments: Iterable[str], *objects: Mapping[str, object]) -> str:
    """Return objects as a stream of documents, after comments."""
    lines = [line for comment in comments for line in _comment(comment)]
    documents = [
        yaml.dump(dict(one), Dumper=_Dumper, sort_keys=False, width=_WIDEST, allow_unicode=True)
        for one in objects
    ]
    return "".join(f"{line}\n" for line in lines) + "---\n".join(documents)


def json_field(value: object) -> str:
    """Return JSON that people read, for a field of an object."""
    return json.dumps(value, indent=2) + "\n"


def _comment(words: str) -> list[str]:
    lines = ["#"]
    for word in visible(words).split():
        if len(lines[-1]) + len(word) + 1 > _WIDEST:
            lines.append("#")
        lines[-1] += f" {word}"
    return lines


# Choose the selectors by which a device plugin finds a fabric's devices, and no others.
#
# The RDMA shared device plugin and the SR-IOV device plugin take the devices that fit all
# selectors; within a selector one value is enough. An interface is that of the PCI device itself,
# never a bond. The link type is that of the interface, so a device without one has none. Sources:
# k8s-rdma-shared-dev-plugin, pkg/resources (device_selectors.go, pci_net_device.go).

_LINK_TYPES = {"InfiniBand": "infiniband", "Ethernet": "ether"}
#: Interfaces that no PCI device has.
_NO_DEVICE = ("bond", "team", "br-")


class Selectors(NamedTuple):
    """Selectors; an empty one selects everything."""

    vendors: tuple[str, ...] = ()
    device_ids: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    link_types: tuple[str, ...] = ()

    def take(self, port: SitePort) -> bool:
        """Return whether a device with these facts is selected."""
        return all(
            not wanted or value in wanted for wanted, value in zip(self, _facts(port), strict=True)
        )


class Selected(NamedTuple):
    """The selectors for a fabric, and how far they are right."""

    selectors: Selectors
    #: What they select although they should not, or miss: "mlx5_2 on node1".
    wrong: tuple[str, ...]
    #: How many devices they select on the nodes of other fabrics.
    elsewhere: int


#: Vendor, device id, interface and link type of a port, as selectors spell them.
_Facts = tuple[str | None, ...]


def _facts(port: SitePort) -> _Facts:
    link = _LINK_TYPES.get(port.link_layer or "")
    return _hex(port.vendor_id), _hex(port.device_id), own_interface(port), link


class PortCensus:
    """Counts the ports of all fabrics' nodes by what selectors compare."""

    def __init__(self, plans: Iterable[FabricPlan]) -> None:
        self._facts = Counter(_facts(port) for plan in plans for port in _ports_of(plan))
        #: By the selectors that are not empty: how many ports have these values.
        self._counts: dict[tuple[bool, ...], Counter[_Facts]] = {}

    def taken(self, selectors: Selectors) -> int:
        """Return how many ports are selected, in a time that does not grow with their number."""
        given = tuple(bool(wanted) for wanted in selectors)
        if given not in self._counts:
            counts = self._counts[given] = Counter()
            for facts, many in self._facts.items():
                counts[tuple(compress(facts, given))] += many
        counts = self._counts[given]
        return sum(counts[values] for values in product(*compress(selectors, given)))


def _ports_of(plan: FabricPlan) -> Iterator[SitePort]:
    """Yield all RDMA ports of a fabric's nodes, also those that it does not use."""
    for choice in plan.group.choices:
        yield from (port for port in choice.node.ports if port.device)


def own_interface(port: SitePort) -> str | None:
    """Return the interface that the plugin sees under the PCI device; None if no tool shows it."""
    return next((name for name in port.netdevs if not name.startswith(_NO_DEVICE)), None)


def select_devices(plan: FabricPlan, census: PortCensus) -> Selected | None:
    """Return the fewest selectors that are right on all nodes, or else those that err least.

    None: no tool shows ids or interfaces of the fabric's devices.
    """
    found = []
    for selectors in _candidates(plan):
        wrong = tuple(dict.fromkeys(_wrong(selectors, plan)))
        here = sum(map(selectors.take, _ports_of(plan)))
        found.append(Selected(selectors, wrong, census.taken(selectors) - here))
    return min(found, key=lambda one: (len(one.wrong), one.elsewhere), default=None)


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


def _values(of: Iterator[str | None]) -> tuple[str, ...]:
    """Return the values in natural order; none if one is not known."""
    values = list(of)
    known = {value for value in values if value is not None}
    return tuple(sorted(known, key=natural)) if None not in values else ()


def _hex(number: int | None) -> str | None:
    return None if number is None else f"{number:04x}"


def _wrong(selectors: Selectors, plan: FabricPlan) -> Iterator[str]:
    wanted = {(choice.node.name, port.device) for choice, port in used_ports(plan)}
    for choice in plan.group.choices:
        for port in choice.node.ports:
            is_wanted = (choice.node.name, port.device) in wanted
            if port.device and selectors.take(port) != is_wanted:
                yield f"{port.name} on {choice.node.name}"
