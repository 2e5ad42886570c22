"""Nodes and the objects of their device plugins, from kubectl's output or the API server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.diagnose.discover.site import ClaimableDevices, KubeNode
from webhook.errors import ClusterError
from webhook.kube.api import ObjectReads, StatusError
from webhook.model.claims import is_nic_class
from webhook.model.finding import Code, Finding, Location

# Nodes, and the objects of their device plugins.

#: In all namespaces, since the plugin's ConfigMap may be in any.
OBJECTS_COMMAND = (
    "kubectl get nodes,nicclusterpolicies,configmaps,resourceslices,deviceclasses -A -o yaml"
)


def items_of(value: object) -> Iterator[Item]:
    """Yield the object of a document, or each object of a List."""
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
    nodes = {}
    devices_by_node = claimable_devices(items)
    for item in items:
        name = value_at(item, "metadata", "name")
        if item.get("kind") == "Node" and isinstance(name, str):
            labels = _strings(value_at(item, "metadata", "labels"))
            resources = _counts(value_at(item, "status", "allocatable"))
            nodes[name] = KubeNode(name, labels, resources, devices_by_node.get(name))
    return nodes


def _strings(value: object) -> dict[str, str]:
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {key: text for key, text in pairs if isinstance(key, str) and isinstance(text, str)}


#: An amount that can be counted: a kubelet may report one of thousands of digits.
_COUNT = re.compile(r"[0-9]{1,18}")


def _counts(value: object) -> dict[str, int]:
    """Return the extended resources: names with a domain and an integer amount."""
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {
        name: int(str(amount))
        for name, amount in pairs
        if isinstance(name, str) and "/" in name and _COUNT.fullmatch(str(amount))
    }


OPERATOR_REPLACES_DRIVER = Code(
    "OperatorReplacesDriver",
    "A NicClusterPolicy replaces the RDMA driver of nodes with one from a container.",
    "Remove ofedDriver from the policy if the nodes have a driver that works.",
)
DEVICE_PLUGIN_CONFIGURED = Code(
    "DevicePluginConfigured",
    "An object of the cluster configures the RDMA shared device plugin.",
)
DRA_DEVICES_NOT_RDMA = Code(
    "DraDevicesNotRdma",
    "A DRA driver offers devices, but none of them is known to be an RDMA device.",
)
DRA_DRIVER_WITHOUT_CLASS = Code(
    "DraDriverWithoutClass",
    "A DRA driver offers RDMA devices, but no DeviceClass selects them, so pods cannot claim them.",
    "Create a DeviceClass that selects the driver's devices, and run discover again: it then "
    "derives a fabric whose pods claim these devices.",
)
CLUSTER_CODES = (
    OPERATOR_REPLACES_DRIVER,
    DEVICE_PLUGIN_CONFIGURED,
    DRA_DEVICES_NOT_RDMA,
    DRA_DRIVER_WITHOUT_CLASS,
)


def cluster_findings(items: Sequence[Item]) -> list[Finding]:
    """Return the facts about device plugins and DRA drivers that their objects show."""
    findings: list[Finding] = []
    for item in items:
        place = filter(None, (value_at(item, "metadata", key) for key in ("namespace", "name")))
        owner = f"{item.get('kind')} {'/'.join(map(str, place))}"
        if item.get("kind") == "NicClusterPolicy" and value_at(item, "spec", "ofedDriver"):
            text = f"{owner} has ofedDriver, which replaces the nodes' RDMA driver"
            findings.append(OPERATOR_REPLACES_DRIVER.finding("info", text))
        for name in _plugin_resources(item):
            text = f"{owner} configures the RDMA shared device plugin for rdma/{name}"
            findings.append(DEVICE_PLUGIN_CONFIGURED.finding("info", text))
    findings += _dra_drivers(items)
    return list(dict.fromkeys(findings))


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


def _dra_drivers(items: Sequence[Item]) -> Iterator[Finding]:
    """Yield a finding for each driver without a DeviceClass, or without known RDMA devices."""
    drivers: dict[str, dict[str, None]] = {}
    for item in items:
        driver = value_at(item, "spec", "driver")
        if item.get("kind") == "ResourceSlice" and isinstance(driver, str):
            drivers.setdefault(driver, {})[str(value_at(item, "spec", "nodeName") or "")] = None
    classes = {
        claimable.driver: claimable.nic_class for claimable in claimable_devices(items).values()
    }
    for driver, nodes in drivers.items():
        if driver.startswith(("gpu.", "compute-domain.")) or classes.get(driver):
            continue
        code, reason = DRA_DEVICES_NOT_RDMA, "none is known as an RDMA device"
        if driver in classes:
            code, reason = DRA_DRIVER_WITHOUT_CLASS, "no DeviceClass selects them"
        location = Location(nodes=tuple(node for node in nodes if node))
        text = f"the DRA driver {driver} offers devices, but {reason}"
        yield code.finding("info", text, location=location)


# Read the RDMA devices and GPUs that DRA drivers offer on nodes, from ResourceSlices.
#
# An RDMA device has the attribute `rdma` (dranet: `dra.net/rdma`), or a driver with a known name; a
# GPU has the driver `gpu.nvidia.com`. Pods claim devices by a DeviceClass, which selects them by an
# expression with the driver's name. Source: resource.k8s.io/v1; v1beta1 has the attributes of a
# device below `basic`.

PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
Item = Mapping[str, object]


class SliceDevice(NamedTuple):
    """A device that a DRA driver offers."""

    driver: str
    kind: str  #: "nic", "gpu", or "" for any other
    #: The PCIe root of the device; "" if the driver does not set it.
    root: str


def claimable_devices(items: Iterable[Item]) -> dict[str, ClaimableDevices]:
    """Return the claimable devices by node, for nodes with RDMA devices of a single driver."""
    items = [*items]
    classes = dict(_classes(items))
    devices_by_node: dict[str, list[SliceDevice]] = {}
    for item in items:
        node = value_at(item, "spec", "nodeName")
        if item.get("kind") == "ResourceSlice" and isinstance(node, str):
            devices_by_node.setdefault(node, []).extend(_devices(item))
    claimable_by_node = {
        name: _claimable(devices, classes) for name, devices in devices_by_node.items()
    }
    return {name: claimable for name, claimable in claimable_by_node.items() if claimable}


def _claimable(
    devices: Iterable[SliceDevice], classes: Mapping[str, str]
) -> ClaimableDevices | None:
    nics = [device for device in devices if device.kind == "nic"]
    gpus = [device for device in devices if device.kind == "gpu"]
    drivers, gpu_drivers = ({device.driver for device in group} for group in (nics, gpus))
    if len(drivers) != 1:
        return None
    driver = drivers.pop()
    gpu_driver = gpu_drivers.pop() if len(gpu_drivers) == 1 else ""
    roots = {device.root for device in nics if device.root}
    return ClaimableDevices(
        driver=driver,
        nic_class=classes.get(driver, ""),
        nic_count=len(nics),
        gpu_class=classes.get(gpu_driver, ""),
        gpu_count=len(gpus) if gpu_driver else 0,
        aligned=bool(gpu_driver) and all(device.root in roots for device in gpus),
    )


def _devices(item: Item) -> Iterator[SliceDevice]:
    driver, listed = value_at(item, "spec", "driver"), value_at(item, "spec", "devices")
    if not isinstance(driver, str) or not isinstance(listed, list):
        return
    for device in listed:
        raw_attributes = value_at(device, "attributes") or value_at(device, "basic", "attributes")
        attributes = raw_attributes if isinstance(raw_attributes, Mapping) else {}
        root = value_at(attributes, PCIE_ROOT, "string")
        yield SliceDevice(driver, _kind(driver, attributes), root if isinstance(root, str) else "")


def _kind(driver: str, attributes: Mapping[str, object]) -> str:
    flags = [
        value_at(value, "bool") for name, value in attributes.items() if _short(name) == "rdma"
    ]
    if flags:
        return "nic" if True in flags else ""
    if driver.startswith("gpu."):
        return "gpu"
    return "nic" if is_nic_class(driver) else ""


def _short(name: object) -> str:
    """Return the name of an attribute without its domain, by default the driver's."""
    return str(name).rpartition("/")[2]


def _classes(items: Iterable[Item]) -> Iterator[tuple[str, str]]:
    """Yield each driver with a DeviceClass that selects it; classes for RDMA come last and win."""
    selections: list[tuple[bool, str, str]] = []
    for item in items:
        name, selectors = value_at(item, "metadata", "name"), value_at(item, "spec", "selectors")
        if item.get("kind") != "DeviceClass" or not isinstance(selectors, list):
            continue
        text = " ".join(
            str(value_at(selector, "cel", "expression") or "") for selector in selectors
        )
        drivers = {quoted for mark in "\"'" for quoted in text.split(mark)[1::2]}
        selections += ((_about_rdma(text, name), str(name), driver) for driver in drivers)
    for _, name, driver in sorted(selections):
        yield driver, name


def _about_rdma(text: str, name: object) -> bool:
    return "rdma" in text.lower() or is_nic_class(str(name))


def value_at(value: object, *path: str) -> object:
    """Return the value below these keys; None where a key or a mapping is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


# Read a cluster's nodes, and the objects of its device plugins, from the API server.

#: The path of each list and the kind of its items; only the nodes must be readable.
_LISTS = (
    ("/api/v1/nodes", "Node"),
    ("/apis/mellanox.com/v1alpha1/nicclusterpolicies", "NicClusterPolicy"),
    ("/api/v1/configmaps", "ConfigMap"),
    ("/apis/resource.k8s.io/v1/resourceslices", "ResourceSlice"),
    ("/apis/resource.k8s.io/v1/deviceclasses", "DeviceClass"),
)
_NEEDED = "nodes"
#: A page of ConfigMaps has up to 1 MiB for each.
_PAGE = "100"
_FORBIDDEN, _NO_SUCH_KIND = 403, 404


class LiveCluster(NamedTuple):
    """The objects that were read from a cluster."""

    items: tuple[Item, ...]
    #: A sentence for each list that the API server refused.
    unread_messages: tuple[str, ...]


def read_cluster(reads: ObjectReads) -> LiveCluster:
    """Return the objects; raise ClusterError if the nodes cannot be read."""
    items: list[Item] = []
    unread_messages: list[str] = []
    for path, kind in _LISTS:
        name = path.rpartition("/")[2]
        try:
            items += filter(_is_read, _all(reads, path, kind))
        except StatusError as error:
            if name == _NEEDED:
                raise ClusterError(_refusal_of_nodes(error)) from error
            if error.code != _NO_SUCH_KIND:
                unread_messages.append(f"cannot list {name}, so they are not used: {error}")
    return LiveCluster(tuple(items), tuple(unread_messages))


def _is_read(item: Item) -> bool:
    """Return whether an object is kept: users may have any number of large ConfigMaps."""
    return item["kind"] != "ConfigMap" or any(_plugin_resources(item))


def _refusal_of_nodes(error: StatusError) -> str:
    needed = "; --nodes needs only the right to list nodes" if error.code == _FORBIDDEN else ""
    return f"cannot list nodes: {error}{needed}"


def _all(reads: ObjectReads, path: str, kind: str) -> Iterator[Item]:
    """Yield a list page by page; the items of a typed list have no kind."""
    query = {"limit": _PAGE}
    while True:
        page = reads.get(path, query)
        for item in page.get("items") or ():
            yield {"kind": kind, **item}
        after = (page.get("metadata") or {}).get("continue")
        if not after:
            return
        query = {"limit": _PAGE, "continue": after}
