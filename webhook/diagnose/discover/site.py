"""What is known about the nodes of a site: records that say only what a tool said.

A field that no tool showed, or that two tools show differently, is None.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from webhook.diagnose.tools.observations import (
    CableSighting,
    CardSighting,
    CounterSighting,
    DistanceSighting,
    GidSighting,
    InterfaceSighting,
    LinkLayer,
    PortState,
    Setting,
    Sighting,
)

#: error: jobs fail or run slower until it is fixed. warning: probably not as meant. note: to know.
FindingLevel = Literal["error", "warning", "note"]
_DIGITS = re.compile(r"(\d{1,18})")


class SiteFinding(NamedTuple):
    """Something about nodes that a person should know."""

    severity: FindingLevel
    #: In the order of the nodes; () for the site as a whole.
    nodes: tuple[str, ...]
    message: str
    #: What to do; "" for a note that asks for nothing.
    remedy: str = ""


class Sighted(NamedTuple):
    """A sighting with the file that it was read from."""

    #: As given on the command line; "<stdin>" for standard input.
    file: str
    sighting: Sighting


class FoundPort(NamedTuple):
    """A port of an RDMA device, as all tools together show it."""

    #: None for a card without an RDMA device.
    device: str | None = None
    #: None where no tool counts the ports.
    port: int | None = None
    #: The network interfaces, the port's own first; () where there are none or no tool says.
    netdevs: tuple[str, ...] = ()
    state: PortState | None = None
    physical_state: str | None = None
    link_layer: LinkLayer | None = None
    #: Gb/s; None unless the port is Active or no tool gives its state.
    rate_gbps: float | None = None
    pci: str | None = None
    model: str | None = None
    vendor_id: int | None = None
    device_id: int | None = None
    board_id: str | None = None
    firmware: str | None = None
    numa: int | None = None
    virtual: bool | None = None
    #: The tools that said something of it, sorted.
    sources: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The port for people: mlx5_0, or mlx5_0 port 2, or the card's PCI address."""
        if self.device is None:
            return f"the card at {self.pci}"
        return self.device if self.port in (None, 1) else f"{self.device} port {self.port}"


class GpuCount(NamedTuple):
    """GPUs of one product in a node."""

    #: As GPU feature discovery spells it: "NVIDIA-H100-80GB-HBM3".
    product: str | None
    number: int | None


class ClaimableDevices(NamedTuple):
    """The RDMA devices that a DRA driver offers on a node, and the GPUs that another one does."""

    driver: str
    #: The DeviceClass that selects the driver; "" if none does.
    device_class: str
    nics: int
    #: The DeviceClass of the GPUs; "" if no driver offers any, or none selects it.
    gpu_class: str = ""
    gpus: int = 0
    #: Whether each GPU has a NIC at its PCIe root.
    aligned: bool = False


class KubeNode(NamedTuple):
    """What the API server says of a node."""

    name: str
    labels: Mapping[str, str]
    #: Extended resources and how many are allocatable.
    resources: Mapping[str, int]
    #: None if no DRA driver offers RDMA devices.
    claimable: ClaimableDevices | None = None

    @property
    def gpu_product(self) -> str | None:
        """The product that GPU feature discovery found, without `-SHARED` and `-MIG-...`."""
        label = self.labels.get("nvidia.com/gpu.product")
        return label and re.sub(r"(-SHARED|-MIG-.*)+$", "", label)

    @property
    def gpu_resources(self) -> tuple[str, ...]:
        """The GPU resources that it offers: nvidia.com/gpu, or the names that a site gave them."""
        return tuple(sorted(name for name, many in self.resources.items() if many and _gpu(name)))

    @property
    def claimable_gpus(self) -> int:
        """How many GPUs a DRA driver offers on it."""
        return self.claimable.gpus if self.claimable else 0

    @property
    def rdma_resources(self) -> tuple[str, ...]:
        """The resources of the RDMA shared device plugin that it offers."""
        found = (name for name, many in self.resources.items() if many and name[:5] == "rdma/")
        return tuple(sorted(found))


class FoundNode(NamedTuple):
    """A node, as all tools together show it."""

    name: str
    #: The machine that it is known to be: "NVIDIA DGX H100"; None if it is none that is known.
    machine: str | None = None
    gpus: tuple[GpuCount, ...] = ()
    ports: tuple[FoundPort, ...] = ()
    findings: tuple[SiteFinding, ...] = ()
    settings: Mapping[Setting, str] = {}
    interfaces: tuple[InterfaceSighting, ...] = ()
    distances: tuple[DistanceSighting, ...] = ()
    counters: tuple[CounterSighting, ...] = ()
    gids: tuple[GidSighting, ...] = ()
    cables: tuple[CableSighting, ...] = ()
    cards: tuple[CardSighting, ...] = ()
    kube: KubeNode | None = None

    @property
    def product(self) -> str | None:
        """The product of its GPUs; None if unknown, or if it has several."""
        products = {gpu.product for gpu in self.gpus}
        return products.pop() if len(products) == 1 else None

    @property
    def without_gpus(self) -> bool:
        """Whether it has no GPU, by the API server or by its PCI functions; false if unknown."""
        if self.gpus:
            return False
        if self.kube is not None:
            return not self.kube.gpu_resources and not self.kube.claimable_gpus
        return self.settings.get("gpus") == "none"


def natural(name: str | None) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts mlx5_2 before mlx5_10, and None before all."""
    parts = _DIGITS.split(name or "")
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)


def listed_nodes(nodes: tuple[str, ...], most: int = 4) -> str:
    """Return names of nodes for a sentence: "node1, node2 and 5 more"."""
    if len(nodes) <= most:
        return ", ".join(nodes)
    named = max(most - 1, 1)
    return f"{', '.join(nodes[:named])} and {len(nodes) - named} more"


def gbps(rate: float | None) -> str:
    """Return a rate for people: "400 Gb/s"."""
    return "unknown rate" if rate is None else f"{rate:g} Gb/s"


#: Resources in the domain of GPUs that are network cards, or slices of a GPU.
_NO_GPU = re.compile(r"hostdev|sriov|mlnx|rdma|roce|nic|ib|vf|mig-|pgpu|vgpu", re.IGNORECASE)


def _gpu(name: str) -> bool:
    domain, _, short = name.partition("/")
    return domain in ("nvidia.com", "amd.com") and not _NO_GPU.search(short)
