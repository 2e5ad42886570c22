"""Read what DRA drivers offer on nodes: RDMA devices, and GPUs, from ResourceSlices.

A device is known as RDMA's by the attribute `rdma` (dranet: `dra.net/rdma`), or else by the name of
its driver; a GPU by its driver's name, `gpu.nvidia.com`. Pods claim devices by a DeviceClass, which
selects them by an expression with the driver's name. Source: resource.k8s.io/v1; v1beta1 has the
attributes of a device below `basic`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from webhook.diagnose.discover.site import ClaimableDevices
from webhook.model.claims import is_nic_class

PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
Item = Mapping[str, Any]


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


def _kind(driver: str, attributes: Mapping[str, Any]) -> str:
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


def value_at(value: Any, *path: str) -> Any:
    """Return the value below these keys; None where a key or a mapping is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
