"""The configuration of the RDMA shared device plugin (k8s-rdma-shared-dev-plugin 1.5.3).

A node offers `rdmaHcaMax` units of a resource as soon as one device fits its selectors; one unit
mounts all devices that fit. So a resource whose selectors fit devices of another fabric's nodes
would be offered there as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.plugin.manifest_text import json_field, manifest
from webhook.diagnose.discover.plugin.selectors import (
    PortCensus,
    Selected,
    Selectors,
    select_devices,
)

#: Pods on a node that have the resource at the same time; nodes run 110 pods at most by default.
_PODS = 63
_SECONDS = 300
_PREFIX = "rdma/"
_SHARED = ("shared-device", "host-network")


class SharedEntry(NamedTuple):
    """An entry of the plugin's configuration."""

    plan: FabricPlan
    entry: dict[str, Any]
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
                "resourceName": str(plan.entry["resources"][0]["name"]).removeprefix(_PREFIX),
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
