"""The nodes of a site as all tools show them, and the options of the administrator."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

from webhook.diagnose.discover.gpu_products import AMD_RESOURCE, product_of_labels
from webhook.diagnose.tools.observations import (
    CableObservation,
    CardObservation,
    CounterObservation,
    DistanceObservation,
    GidObservation,
    InterfaceObservation,
    LinkLayer,
    NodeProperty,
    Observation,
    PortState,
    ToolFailure,
)
from webhook.model.fabric import Mode
from webhook.model.finding import Code, Finding, Location

# Records of what tools showed, without interpretation.
#
# A field that no tool showed, or that two tools show differently, is None.


class SourcedObservation(NamedTuple):
    """An observation and the file that it was read from."""

    #: As given on the command line; "<stdin>" for standard input.
    file: str
    observation: Observation


class MergedPort(NamedTuple):
    """A port, or a card without RDMA devices, merged from the observations of all tools."""

    #: None for a card without an RDMA device.
    device: str | None = None
    #: None if no tool numbers the ports.
    port: int | None = None
    #: The network interfaces, the port's own first; () if there are none or no tool shows any.
    netdevs: tuple[str, ...] = ()
    state: PortState | None = None
    physical_state: str | None = None
    link_layer: LinkLayer | None = None
    #: Gb/s; None unless the port is Active or its state is unknown.
    rate_gbps: float | None = None
    pci: str | None = None
    model: str | None = None
    vendor_id: int | None = None
    device_id: int | None = None
    board_id: str | None = None
    firmware: str | None = None
    numa: int | None = None
    #: The MTU that RDMA uses on the port now, in bytes.
    mtu: int | None = None
    #: The largest MTU that RDMA can use on it.
    max_mtu: int | None = None
    virtual: bool | None = None
    #: The tools that showed the port, sorted.
    sources: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The port in a message: mlx5_0, or mlx5_0 port 2, or the card's PCI address."""
        if self.device is None:
            return f"the card at {self.pci}"
        return self.device if self.port in (None, 1) else f"{self.device} port {self.port}"


class GpuCount(NamedTuple):
    """GPUs of one product in a node."""

    #: As GPU feature discovery spells it: "NVIDIA-H100-80GB-HBM3"; AMD's as "AMD-Instinct-MI300X".
    product: str | None
    number: int | None


class ClaimableDevices(NamedTuple):
    """The RDMA devices that a DRA driver offers on a node, and the GPUs of another driver."""

    driver: str
    #: The DeviceClass that selects the driver; "" if none does.
    nic_class: str
    nic_count: int
    #: The DeviceClass of the GPUs; "" if no driver offers any, or none selects it.
    gpu_class: str = ""
    gpu_count: int = 0
    #: Whether each GPU has a NIC at its PCIe root.
    aligned: bool = False


class KubeNode(NamedTuple):
    """A Node object of the API server."""

    name: str
    labels: Mapping[str, str]
    #: Extended resource → allocatable amount.
    resources: Mapping[str, int]
    #: None if no DRA driver offers RDMA devices.
    claimable_devices: ClaimableDevices | None = None

    @property
    def gpu_product(self) -> str | None:
        """The product by the label of GPU feature discovery, or of AMD's node labeller."""
        return product_of_labels(self.labels)[1] or None

    @property
    def gpu_count(self) -> int | None:
        """The number of GPUs by a label, or by AMD's device plugin; None if unknown."""
        count = self.labels.get("nvidia.com/gpu.count", "")
        if count.isascii() and count.isdigit() and len(count) < 5:  # noqa: PLR2004 - 9999 GPUs
            return int(count)
        return self.resources.get(AMD_RESOURCE) or None

    @property
    def gpu_resources(self) -> tuple[str, ...]:
        """The GPU resources that it offers: nvidia.com/gpu, or a site's names for them."""
        return tuple(
            sorted(name for name, amount in self.resources.items() if amount and _gpu(name))
        )

    @property
    def claimable_gpus(self) -> int:
        """The number of GPUs that a DRA driver offers on it."""
        return self.claimable_devices.gpu_count if self.claimable_devices else 0

    @property
    def rdma_resources(self) -> tuple[str, ...]:
        """The resources of the RDMA shared device plugin that it offers."""
        names = (name for name, amount in self.resources.items() if amount and name[:5] == "rdma/")
        return tuple(sorted(names))


class MergedNode(NamedTuple):
    """A node, merged from the observations of all tools."""

    name: str
    #: "DGX H100", for example; None if it is not a known type.
    machine_type: str | None = None
    gpus: tuple[GpuCount, ...] = ()
    ports: tuple[MergedPort, ...] = ()
    findings: tuple[Finding, ...] = ()
    properties: Mapping[NodeProperty, str] = {}
    #: Those whose state a tool shows.
    interfaces: tuple[InterfaceObservation, ...] = ()
    #: Network interface → its MTU in bytes, if all tools agree.
    interface_mtus: Mapping[str, int] = {}
    distances: tuple[DistanceObservation, ...] = ()
    counters: tuple[CounterObservation, ...] = ()
    gids: tuple[GidObservation, ...] = ()
    cables: tuple[CableObservation, ...] = ()
    cards: tuple[CardObservation, ...] = ()
    failures: tuple[ToolFailure, ...] = ()
    cluster_node: KubeNode | None = None
    #: Whether tools or a label show GPUs of AMD.
    amd_gpus: bool = False

    @property
    def product(self) -> str | None:
        """The product of its GPUs; None if unknown, or if it has several."""
        products = {gpu.product for gpu in self.gpus}
        return products.pop() if len(products) == 1 else None

    @property
    def without_gpus(self) -> bool:
        """Whether it has no GPU, by its Node object or its PCI functions; False if unknown."""
        if self.gpus:
            return False
        if self.cluster_node is not None:
            return not self.cluster_node.gpu_resources and not self.cluster_node.claimable_gpus
        return self.properties.get("gpus") == "none"

    @property
    def with_gpus(self) -> bool:
        """Whether it has GPUs, by its tools or its Node object; False if unknown."""
        return bool(self.gpus) or (self.cluster_node is not None and not self.without_gpus)


def rate_text(rate: float | None) -> str:
    """Return a rate as text: "400 Gb/s"."""
    return "unknown rate" if rate is None else f"{rate:g} Gb/s"


#: Resources in a GPU vendor's domain that are network cards, or slices of a GPU.
_NO_GPU = re.compile(r"hostdev|sriov|mlnx|rdma|roce|nic|ib|vf|mig-|pgpu|vgpu", re.IGNORECASE)


def _gpu(name: str) -> bool:
    domain, _, short = name.partition("/")
    return domain in ("nvidia.com", "amd.com") and not _NO_GPU.search(short)


# Reconcile the statements of several tools; where they differ, none is chosen.
#
# The order of the statements has no influence.

Value = TypeVar("Value")


class Statement(NamedTuple, Generic[Value]):
    """One tool's value, and its position in a file."""

    value: Value
    tool: str
    file: str
    line: int

    @property
    def position(self) -> str:
        """The file, with the line if it is known: "node1.txt:12"."""
        return f"{self.file}:{self.line}" if self.line else self.file


class Reconciled(NamedTuple, Generic[Value]):
    """The value on which all statements agree."""

    #: None without a statement, or if tools differ.
    value: Value | None
    #: Two statements that differ, or None.
    conflict: tuple[Statement[Value], Statement[Value]] | None = None


def reconcile(
    statements: Iterable[Statement[Value | None]],
    key: Callable[[Value], object] = lambda value: value,
) -> Reconciled[Value]:
    """Return the only value of the statements, or the first two statements that differ.

    Values with the same `key` are equal; the longest spelling of them is returned.
    """
    stated = list(_with_values(statements))
    if not stated:
        return Reconciled(None)
    if all(statement.value == stated[0].value for statement in stated):
        return Reconciled(stated[0].value)
    stated.sort(key=lambda statement: (statement[1:], str(statement.value)))
    first = stated[0]
    other = next(
        (statement for statement in stated if key(statement.value) != key(first.value)), None
    )
    if other is not None:
        return Reconciled(None, (first, other))
    return Reconciled(
        max(
            (statement.value for statement in stated),
            key=lambda value: (len(str(value)), str(value)),
        )
    )


TOOLS_DISAGREE = Code(
    "ToolsDisagree",
    "Two tools, or two outputs of one tool, show different values for a property of a node.",
    "Collect the output of all tools on the node again, in one go, with the script that "
    "`rdma-webhook discover script` prints. Until the values agree, discover uses neither.",
)


def disagreement(
    location: Location,
    topic: str,
    conflict: tuple[Statement[Value], Statement[Value]],
    spell: Callable[[Value], object] = str,
) -> Finding:
    """Return the finding on two statements that differ, with both values and their positions."""
    (tool, first), (other_tool, second) = (
        (statement.tool, f"{spell(statement.value)} ({statement.position})")
        for statement in conflict
    )
    if tool == other_tool:
        text = f"{tool} shows two values for {topic}: {first} and {second}"
    else:
        text = f"tools disagree on {topic}: {tool} shows {first}, {other_tool} shows {second}"
    return TOOLS_DISAGREE.finding("warning", text, location=location)


def _with_values(statements: Iterable[Statement[Value | None]]) -> Iterator[Statement[Value]]:
    for statement in statements:
        if statement.value is not None:
            yield Statement(statement.value, statement.tool, statement.file, statement.line)


# The options of the administrator, which no tool shows.


class DiscoverOptions(NamedTuple):
    """The administrator's choices."""

    #: None: chosen for each fabric.
    mode: Mode | None = None
    #: Multus networks for RoCE in mode shared-device, one for each device.
    networks: tuple[str, ...] = ()
    #: The namespace of the pods, where networks are created.
    namespace: str = "default"
    #: Whether the NicClusterPolicy installs NVIDIA's driver on the nodes.
    ofed: bool = False
    #: The number of nodes, and of usable HCAs of the fabric in each; None: not known.
    expected_nodes: int | None = None
    expected_hcas: int | None = None
    #: In place of `networks`: their common beginning, followed by the number of the rail from 0.
    network_prefix: str = ""

    def networks_for(self, device_count: int) -> tuple[str, ...]:
        """Return the networks of a fabric with this number of devices."""
        if not self.network_prefix:
            return self.networks
        return tuple(f"{self.network_prefix}{rail}" for rail in range(device_count))
