"""What is known about the nodes of a site, and what the caller decides."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, Literal, NamedTuple, TypeVar

from webhook.diagnose.tools.observations import (
    CableObservation,
    CardObservation,
    CounterObservation,
    DistanceObservation,
    GidObservation,
    InterfaceObservation,
    LinkLayer,
    Observation,
    PortState,
    Setting,
)
from webhook.model.fabric import Mode

# Records that say only what a tool said.
#
# A field that no tool showed, or that two tools show differently, is None.

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


class SourcedObservation(NamedTuple):
    """A sighting with the file that it was read from."""

    #: As given on the command line; "<stdin>" for standard input.
    file: str
    sighting: Observation


class SitePort(NamedTuple):
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


class SiteNode(NamedTuple):
    """A node, as all tools together show it."""

    name: str
    #: The machine that it is known to be: "NVIDIA DGX H100"; None if it is none that is known.
    machine: str | None = None
    gpus: tuple[GpuCount, ...] = ()
    ports: tuple[SitePort, ...] = ()
    findings: tuple[SiteFinding, ...] = ()
    settings: Mapping[Setting, str] = {}
    interfaces: tuple[InterfaceObservation, ...] = ()
    distances: tuple[DistanceObservation, ...] = ()
    counters: tuple[CounterObservation, ...] = ()
    gids: tuple[GidObservation, ...] = ()
    cables: tuple[CableObservation, ...] = ()
    cards: tuple[CardObservation, ...] = ()
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


# Put together what several tools say of one thing; where they differ, nothing is chosen.
#
# The order of what was said has no influence.

Value = TypeVar("Value")


class Statement(NamedTuple, Generic[Value]):
    """One tool's value, and where it stands."""

    value: Value
    tool: str
    file: str
    line: int

    def says(self, shown: object) -> str:
        """Return who says a value, for people: "ibstat says Down (node1.txt:12)"."""
        return f"{self.tool} says {shown} ({self.file}{f':{self.line}' if self.line else ''})"


class Reconciled(NamedTuple, Generic[Value]):
    """The value on which all that was said agrees."""

    #: None if nothing was said, or if tools differ.
    value: Value | None
    #: Two statements that differ, or None.
    conflict: tuple[Statement[Value], Statement[Value]] | None = None


def reconcile(
    said: Iterable[Statement[Value | None]], key: Callable[[Value], object] = lambda value: value
) -> Reconciled[Value]:
    """Return the one value that was said, or the first two statements that differ.

    Values with one `key` are the same value; of these the longest spelling is returned.
    """
    told = list(_given(said))
    if not told:
        return Reconciled(None)
    if all(one.value == told[0].value for one in told):
        return Reconciled(told[0].value)
    told.sort(key=lambda one: (one[1:], str(one.value)))
    first = told[0]
    other = next((one for one in told if key(one.value) != key(first.value)), None)
    if other is not None:
        return Reconciled(None, (first, other))
    return Reconciled(
        max((one.value for one in told), key=lambda value: (len(str(value)), str(value)))
    )


def _given(said: Iterable[Statement[Value | None]]) -> Iterator[Statement[Value]]:
    for one in said:
        if one.value is not None:
            yield Statement(one.value, one.tool, one.file, one.line)


# What the caller of discover decides, since no tool says it.


class DiscoverOptions(NamedTuple):
    """Decisions of the site."""

    #: None: what fits each fabric.
    mode: Mode | None = None
    #: Multus networks for RoCE in mode shared-device, one for each device.
    networks: tuple[str, ...] = ()
    #: The namespace of the pods, in which networks are made.
    namespace: str = "default"
    #: Whether the NicClusterPolicy installs NVIDIA's driver on the nodes.
    ofed: bool = False
