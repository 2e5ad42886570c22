"""Read what the API server says of nodes, from objects as kubectl prints them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webhook.diagnose.discover.resource_slices import Item, claimable_devices, value_at
from webhook.diagnose.discover.site import KubeNode, SiteFinding

#: Without a namespace, since the plugin's ConfigMap may be in any.
COMMAND = "kubectl get nodes,nicclusterpolicies,configmaps,resourceslices,deviceclasses -A -o yaml"


def items_of(value: Any) -> Iterator[Item]:
    """Yield the objects of a document, and those of a List one by one."""
    if not isinstance(value, dict):
        return
    kind, items = value.get("kind"), value.get("items")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        for item in items:
            if isinstance(item, dict):
                yield from items_of({"kind": kind.removesuffix("List"), **item})
    else:
        yield value


def kube_nodes(items: Sequence[Item]) -> dict[str, KubeNode]:
    """Return the nodes among objects, by name."""
    found = {}
    offered = claimable_devices(items)
    for item in items:
        name = value_at(item, "metadata", "name")
        if item.get("kind") == "Node" and isinstance(name, str):
            labels = _strings(value_at(item, "metadata", "labels"))
            resources = _counts(value_at(item, "status", "allocatable"))
            found[name] = KubeNode(name, labels, resources, offered.get(name))
    return found


def _strings(value: Any) -> dict[str, str]:
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {key: one for key, one in pairs if isinstance(key, str) and isinstance(one, str)}


def _counts(value: Any) -> dict[str, int]:
    """Return the extended resources: names with a domain, which are counted in whole numbers."""
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {
        name: int(str(many))
        for name, many in pairs
        if isinstance(name, str) and "/" in name and str(many).isascii() and str(many).isdigit()
    }


def cluster_findings(items: Sequence[Item]) -> list[SiteFinding]:
    """Return what the device plugins' own objects say that matters here."""
    found: list[SiteFinding] = []
    for item in items:
        if item.get("kind") == "NicClusterPolicy" and value_at(item, "spec", "ofedDriver"):
            found.append(
                SiteFinding(
                    "note",
                    (),
                    f"NicClusterPolicy {value_at(item, 'metadata', 'name')} has ofedDriver: it "
                    "replaces the nodes' RDMA driver with one from a container",
                    "Leave it out where the nodes have a driver that works.",
                )
            )
        found += (_configured(item, name) for name in _plugin_resources(item))
    found += _dra_drivers(items)
    return list(dict.fromkeys(found))


def _configured(item: Item, resource: str) -> SiteFinding:
    where = f"{item.get('kind')} {value_at(item, 'metadata', 'name')}"
    return SiteFinding(
        "note", (), f"{where} configures the RDMA shared device plugin for rdma/{resource}"
    )


def _plugin_resources(item: Item) -> Iterator[str]:
    """Yield the resources of a plugin's configuration in a ConfigMap or a NicClusterPolicy."""
    if item.get("kind") == "NicClusterPolicy":
        text = value_at(item, "spec", "rdmaSharedDevicePlugin", "config")
    elif item.get("kind") == "ConfigMap":
        text = value_at(item, "data", "config.json")
    else:
        return
    try:
        listed = json.loads(text)["configList"] if isinstance(text, str) else []
        names = [entry["resourceName"] for entry in listed]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    yield from (name for name in names if isinstance(name, str))


def _dra_drivers(items: Sequence[Item]) -> Iterator[SiteFinding]:
    """Say of which drivers no fabric claims devices, whether it could or not."""
    drivers: dict[str, dict[str, None]] = {}
    for item in items:
        driver = value_at(item, "spec", "driver")
        if item.get("kind") == "ResourceSlice" and isinstance(driver, str):
            drivers.setdefault(driver, {})[str(value_at(item, "spec", "nodeName") or "")] = None
    classes = {one.driver: one.device_class for one in claimable_devices(items).values()}
    for driver, nodes in drivers.items():
        if driver.startswith(("gpu.", "compute-domain.")) or classes.get(driver):
            continue
        why = "none is known as an RDMA device"
        if driver in classes:
            why = "no DeviceClass selects them: create one, and discover writes claims"
        yield SiteFinding(
            "note",
            tuple(node for node in nodes if node),
            f"the DRA driver {driver} offers devices, but {why}",
        )
