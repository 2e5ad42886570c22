"""What the API server says of nodes: read from objects as kubectl prints them, or live."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.diagnose.discover.site import ClaimableDevices, KubeNode, SiteFinding
from webhook.errors import ClusterError
from webhook.kube.api import ApiReader, RefusedError
from webhook.model.claims import is_nic_class

# Nodes, and the objects of their device plugins.

#: Without a namespace, since the plugin's ConfigMap may be in any.
COMMAND = "kubectl get nodes,nicclusterpolicies,configmaps,resourceslices,deviceclasses -A -o yaml"


def items_of(value: object) -> Iterator[Item]:
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


def _strings(value: object) -> dict[str, str]:
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {key: one for key, one in pairs if isinstance(key, str) and isinstance(one, str)}


def _counts(value: object) -> dict[str, int]:
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


# Read what DRA drivers offer on nodes: RDMA devices, and GPUs, from ResourceSlices.
#
# A device is known as RDMA's by the attribute `rdma` (dranet: `dra.net/rdma`), or else by the
# name of its driver; a GPU by its driver's name, `gpu.nvidia.com`. Pods claim devices by a
# DeviceClass, which selects them by an expression with the driver's name. Source:
# resource.k8s.io/v1; v1beta1 has the attributes of a device below `basic`.

PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
Item = Mapping[str, object]


class SliceDevice(NamedTuple):
    """A device that a DRA driver offers."""

    driver: str
    kind: str  #: "nic", "gpu", or "" for any other
    #: The PCIe root that it is attached to; "" if the driver does not say.
    root: str


def claimable_devices(items: Iterable[Item]) -> dict[str, ClaimableDevices]:
    """Return what the drivers offer on each node, for nodes with RDMA devices of one driver."""
    items = [*items]
    classes = dict(_classes(items))
    nodes: dict[str, list[SliceDevice]] = {}
    for item in items:
        node = value_at(item, "spec", "nodeName")
        if item.get("kind") == "ResourceSlice" and isinstance(node, str):
            nodes.setdefault(node, []).extend(_devices(item))
    found = {name: _claimable(devices, classes) for name, devices in nodes.items()}
    return {name: one for name, one in found.items() if one is not None}


def _claimable(
    devices: Iterable[SliceDevice], classes: Mapping[str, str]
) -> ClaimableDevices | None:
    nics = [one for one in devices if one.kind == "nic"]
    gpus = [one for one in devices if one.kind == "gpu"]
    drivers, of_gpus = ({one.driver for one in many} for many in (nics, gpus))
    if len(drivers) != 1:
        return None
    driver = drivers.pop()
    gpu_driver = of_gpus.pop() if len(of_gpus) == 1 else ""
    roots = {one.root for one in nics if one.root}
    return ClaimableDevices(
        driver=driver,
        device_class=classes.get(driver, ""),
        nics=len(nics),
        gpu_class=classes.get(gpu_driver, ""),
        gpus=len(gpus) if gpu_driver else 0,
        aligned=bool(gpu_driver) and all(one.root in roots for one in gpus),
    )


def _devices(item: Item) -> Iterator[SliceDevice]:
    driver, listed = value_at(item, "spec", "driver"), value_at(item, "spec", "devices")
    if not isinstance(driver, str) or not isinstance(listed, list):
        return
    for one in listed:
        found = value_at(one, "attributes") or value_at(one, "basic", "attributes")
        attributes = found if isinstance(found, Mapping) else {}
        root = value_at(attributes, PCIE_ROOT, "string")
        yield SliceDevice(driver, _kind(driver, attributes), root if isinstance(root, str) else "")


def _kind(driver: str, attributes: Mapping[str, object]) -> str:
    said = [value_at(value, "bool") for name, value in attributes.items() if _short(name) == "rdma"]
    if said:
        return "nic" if True in said else ""
    if driver.startswith("gpu."):
        return "gpu"
    return "nic" if is_nic_class(driver) else ""


def _short(name: object) -> str:
    """Return the name of an attribute without its domain, by default the driver's."""
    return str(name).rpartition("/")[2]


def _classes(items: Iterable[Item]) -> Iterator[tuple[str, str]]:
    """Yield drivers with a DeviceClass that selects them; the last counts, one for RDMA."""
    found: list[tuple[bool, str, str]] = []
    for item in items:
        name, selectors = value_at(item, "metadata", "name"), value_at(item, "spec", "selectors")
        if item.get("kind") != "DeviceClass" or not isinstance(selectors, list):
            continue
        text = " ".join(str(value_at(one, "cel", "expression") or "") for one in selectors)
        drivers = {quoted for mark in "\"'" for quoted in text.split(mark)[1::2]}
        found += ((_about_rdma(text, name), str(name), driver) for driver in drivers)
    for _, name, driver in sorted(found):
        yield driver, name


def _about_rdma(text: str, name: object) -> bool:
    return "rdma" in text.lower() or is_nic_class(str(name))


def value_at(value: object, *path: str) -> object:
    """Return the value below these keys; None where a key or a mapping is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


# Read a cluster's nodes, and the objects of its device plugins, from the API server.

#: The list of a kind, and the kind of its items; of these only the nodes must be readable.
_LISTS = (
    ("/api/v1/nodes", "Node"),
    ("/apis/mellanox.com/v1alpha1/nicclusterpolicies", "NicClusterPolicy"),
    ("/api/v1/configmaps", "ConfigMap"),
    ("/apis/resource.k8s.io/v1/resourceslices", "ResourceSlice"),
    ("/apis/resource.k8s.io/v1/deviceclasses", "DeviceClass"),
)
_NEEDED = "nodes"
_PAGE = "500"
_FORBIDDEN, _NO_SUCH_KIND = 403, 404


class LiveCluster(NamedTuple):
    """What was read of a cluster."""

    items: tuple[Item, ...]
    #: A sentence for each list that the API server refused.
    unread: tuple[str, ...]


def read_cluster(reads: ApiReader) -> LiveCluster:
    """Return the objects; raise ClusterError if the nodes cannot be read."""
    items: list[Item] = []
    unread: list[str] = []
    for path, kind in _LISTS:
        name = path.rpartition("/")[2]
        try:
            items += _all(reads, path, kind)
        except RefusedError as error:
            if name == _NEEDED:
                raise ClusterError(_without_nodes(error)) from error
            if error.code != _NO_SUCH_KIND:
                unread.append(f"cannot list {name}, and goes on without them: {error}")
    return LiveCluster(tuple(items), tuple(unread))


def _without_nodes(error: RefusedError) -> str:
    all_it_needs = (
        ": the right to list nodes is all that --nodes needs" if error.code == _FORBIDDEN else ""
    )
    return f"cannot list nodes: {error}{all_it_needs}"


def _all(reads: ApiReader, path: str, kind: str) -> Iterator[Item]:
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
