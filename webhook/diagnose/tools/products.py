"""Recognize the machine type of a node, such as DGX H100, exactly or not at all.

A machine type is recognized by the product and the number of its GPUs, and by a unique property:
its DMI fields, the names that a cloud gives to its RDMA devices, or the addresses of its cards. No
other observation may contradict: if two tools disagree, or a part of the evidence is missing, none
is recognized.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from webhook.diagnose.tools.observations import (
    CardObservation,
    GpuObservation,
    NodeProperty,
    Observation,
    PortObservation,
    PropertyObservation,
)

_H100 = ("NVIDIA H100 80GB HBM3",)
_H200 = ("NVIDIA H200",)
_B200 = ("NVIDIA B200",)
_GB200 = ("NVIDIA GB200",)
_A100_40 = ("NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB")
_A100_80 = ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB")
_V100 = ("Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB")


class MachineType(NamedTuple):
    """A type of machine, and the evidence that identifies it."""

    name: str
    #: The product of its GPUs: one of these, the same for all GPUs.
    products: tuple[str, ...]
    gpus: int
    #: Regular expressions for DMI fields: each must be shown, and match.
    dmi: tuple[tuple[NodeProperty, str], ...] = ()
    #: The same, for fields that may be missing.
    if_shown: tuple[tuple[NodeProperty, str], ...] = ()
    #: RDMA devices with a unique form of name: exactly these must be shown.
    devices: tuple[str, ...] = ()
    #: Addresses of network cards, with their device ids: each must be shown.
    cards: tuple[tuple[str, int], ...] = ()
    source: str = ""


class Recognition(NamedTuple):
    """A recognized machine type, and the evidence."""

    name: str
    #: The evidence as text: "8 x NVIDIA H200, RDMA devices mlx5_ib0 to mlx5_ib7".
    because: str
    #: The documentation of these properties.
    source: str


def _numbered_names(prefix: str, count: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{number}" for number in range(count))


def _dgx(generation: str, products: tuple[str, ...]) -> MachineType:
    """Describe a DGX; on some, a part number follows: DGXA100 920-23687-2530-000."""
    name = rf"(?:NVIDIA )?DGX[ _-]?{generation}(?: 920-[0-9-]{{5,20}})?"
    return MachineType(
        f"DGX {generation}",
        products,
        8,
        dmi=(("product", name),),
        if_shown=(("vendor", r"NVIDIA.{0,20}"),),
        source="dmidecode on a DGX A100 (DGXA100 920-23687-2531-001); NVIDIA, DGX user guides",
    )


def _azure(name: str, products: tuple[str, ...], gpus: int, profile: str) -> MachineType:
    """Describe an Azure virtual machine, whose images name InfiniBand devices mlx5_ib0, ..."""
    return MachineType(
        f"Azure {name}",
        products,
        gpus,
        if_shown=(("vendor", "Microsoft Corporation"), ("product", "Virtual Machine")),
        devices=_numbered_names("mlx5_ib", gpus),
        source=f"Azure/azurehpc-health-checks, conf/{profile}.conf (check_hw_ib)",
    )


def _aws(size: str, products: tuple[str, ...], gpus: int = 8) -> MachineType:
    """Describe an EC2 instance, whose type is the product in DMI."""
    return MachineType(
        f"AWS {size}",
        products,
        gpus,
        dmi=(("vendor", "Amazon EC2"), ("product", re.escape(size))),
        source="Amazon EC2 User Guide, Identify EC2 instances; Instance types",
    )


def _coreweave(name: str, products: tuple[str, ...], gpus: int = 8) -> MachineType:
    """Describe a machine type of CoreWeave, which names its InfiniBand devices ibp0, ..."""
    return MachineType(
        f"CoreWeave {name}",
        products,
        gpus,
        devices=_numbered_names("ibp", gpus),
        source="CoreWeave documentation, NCCL configuration reference (UCX_NET_DEVICES)",
    )


def _hgx(server: str, product: str, generation: str, products: tuple[str, ...]) -> MachineType:
    """Describe a server of another maker with eight GPUs on NVIDIA's HGX board."""
    return MachineType(
        f"HGX {generation} ({server})",
        products,
        8,
        dmi=(("product", product),),
        source="NVIDIA/k8s-launch-kit, presets (machineType); the makers' data sheets",
    )


def _oci(shape: str, products: tuple[str, ...], front: int) -> MachineType:
    """Describe a bare-metal shape of Oracle's cloud; `front` cards are not for RDMA."""
    buses = ("0c", "2a", "41", "58", "86", "a5", "bd", "d5")
    rdma = tuple((f"0000:{bus}:00.{port}", 0x1021) for bus in buses for port in (0, 1))
    return MachineType(
        f"OCI {shape}",
        products,
        8,
        dmi=(("asset-tag", r"OracleCloud\.com"),),
        cards=(*rdma, ("0000:1f:00.0", front), ("0000:9a:00.0", front)),
        source="Oracle, shapes.json (oci-dr-hpc-v2, internal/shapes); cloud-init, DataSourceOracle",
    )


_XE9680 = "PowerEdge XE9680"
MACHINE_TYPES = (
    MachineType(
        "DGX-1",
        _V100,
        8,
        dmi=(("product", r"DGX-1 with V100(?:-32)?"),),
        source="dmidecode on a DGX-1 (DGX-1 with V100)",
    ),
    _dgx("A100", (*_A100_40, *_A100_80)),
    _dgx("H100", _H100),
    _dgx("H200", _H200),
    _dgx("B200", _B200),
    _hgx(_XE9680, _XE9680, "H100", _H100),
    _hgx(_XE9680, _XE9680, "H200", _H200),
    _hgx("ThinkSystem SR680a V3", r"ThinkSystem SR680a V3(?: .{0,40})?", "H100", _H100),
    _hgx("ThinkSystem SR680a V3", r"ThinkSystem SR680a V3(?: .{0,40})?", "H200", _H200),
    _hgx("UCS C885A M8", "UCSC-885A-M8-H22", "H200", _H200),
    _azure("ND A100 v4 (40 GB)", _A100_40, 8, "nd96asr_v4"),
    _azure("NDm A100 v4 (80 GB)", _A100_80, 8, "nd96amsr_a100_v4"),
    _azure("ND H100 v5", _H100, 8, "nd96isr_h100_v5"),
    _azure("ND H200 v5", _H200, 8, "nd96isr_h200_v5"),
    _azure("ND GB200 v6 (GB200 NVL72)", _GB200, 4, "nd128isr_ndr_gb200_v6"),
    _oci("BM.GPU.H100.8", _H100, 0x101D),
    _oci("BM.GPU.H100T.8", _H100, 0x1021),
    _coreweave("gd-8xh100ib-i128", _H100),
    _coreweave("gd-8xh200ib-i128", _H200),
    _coreweave("b200-8x", _B200),
    _coreweave("gb200-4x (GB200 NVL72)", _GB200, 4),
    _aws("p4d.24xlarge", _A100_40),
    _aws("p4de.24xlarge", _A100_80),
    _aws("p5.48xlarge", _H100),
    _aws("p5e.48xlarge", _H200),
    _aws("p5en.48xlarge", _H200),
    _aws("p6-b200.48xlarge", _B200),
    _aws("p6e-gb200.36xlarge", _GB200, 4),
    MachineType(
        "GB200 NVL72",
        _GB200,
        4,
        dmi=(("product", r"(?:.{0,60}\b)?GB200[ _-]NVL72\b.{0,60}"),),
        source="NVIDIA, GB200 NVL72: 18 compute trays with four GPUs each",
    ),
)


#: Product names in DMI that only a known machine type has; other makers' names may be anything.
_PRODUCTS = re.compile(
    "|".join(
        pattern
        for machine_type in MACHINE_TYPES
        for name, pattern in machine_type.dmi
        if name == "product"
    )
)


def is_known_product(text: str) -> bool:
    """Return whether a text is exactly the product name of a known machine type."""
    return _PRODUCTS.fullmatch(text) is not None


def machine_type_of(observations: Iterable[Observation]) -> str | None:
    """Return the name of the machine type with these observations, or None."""
    recognition = recognize_machine(observations)
    return recognition.name if recognition else None


def recognize_machine(observations: Iterable[Observation]) -> Recognition | None:
    """Return the known machine type with these observations; None unless exactly one fits."""
    evidence = _evidence(observations)
    machine_types = [
        machine_type for machine_type in MACHINE_TYPES if _fits(machine_type, evidence)
    ]
    if len(machine_types) != 1:
        return None
    (machine_type,) = machine_types
    return Recognition(machine_type.name, _because(machine_type, evidence), machine_type.source)


class _Evidence(NamedTuple):
    #: The product and the number of the GPUs, if all tools agree.
    product: str | None
    gpus: int
    #: The DMI fields; "" if tools disagree.
    dmi: dict[NodeProperty, str]
    #: The RDMA devices that were shown as InfiniBand.
    infiniband: frozenset[str]
    #: Each card's device ids, by its address with the domain.
    cards: dict[str, frozenset[int]]


def _evidence(observations: Iterable[Observation]) -> _Evidence:
    gpus: dict[str, dict[object, str]] = {}
    dmi: dict[NodeProperty, set[str]] = {}
    infiniband: set[str] = set()
    cards: dict[str, set[int]] = {}
    for observation in observations:
        if isinstance(observation, GpuObservation) and observation.product is not None:
            gpus.setdefault(observation.origin.tool, {})[_identity(observation)] = (
                observation.product
            )
        elif isinstance(observation, PropertyObservation):
            dmi.setdefault(observation.name, set()).add(observation.value)
        elif (
            isinstance(observation, PortObservation)
            and observation.device
            and observation.link_layer == "InfiniBand"
        ):
            infiniband.add(observation.device)
        if (
            isinstance(observation, CardObservation | PortObservation)
            and observation.pci
            and observation.device_id is not None
        ):
            cards.setdefault(_with_domain(observation.pci), set()).add(observation.device_id)
    product, count = _gpus_of_all_tools([*of_tool.values()] for of_tool in gpus.values())
    return _Evidence(
        product,
        count,
        {name: values.pop() if len(values) == 1 else "" for name, values in dmi.items()},
        frozenset(infiniband),
        {pci: frozenset(ids) for pci, ids in cards.items()},
    )


def _identity(gpu: GpuObservation) -> object:
    """Return a key that identifies a GPU in the output of a tool, which may have been run twice."""
    identity = (gpu.number, gpu.uuid, gpu.pci)
    return gpu.origin.line if identity == (None, None, None) else identity


def _gpus_of_all_tools(products_by_tool: Iterable[list[str]]) -> tuple[str | None, int]:
    """Return the product and number of GPUs on which all tools agree, else (None, 0)."""
    statements = {(frozenset(products), len(products)) for products in products_by_tool}
    if len(statements) != 1:
        return None, 0
    ((products, count),) = statements
    return (next(iter(products)), count) if len(products) == 1 else (None, 0)


def _with_domain(pci: str) -> str:
    return pci if pci.count(":") > 1 else f"0000:{pci}"


def _fits(machine_type: MachineType, evidence: _Evidence) -> bool:
    if evidence.product not in machine_type.products or evidence.gpus != machine_type.gpus:
        return False
    named = all(
        re.fullmatch(pattern, evidence.dmi.get(name, "")) for name, pattern in machine_type.dmi
    )
    agrees = all(
        re.fullmatch(pattern, evidence.dmi[name])
        for name, pattern in machine_type.if_shown
        if name in evidence.dmi
    )
    placed = all(
        evidence.cards.get(pci) == frozenset({device_id}) for pci, device_id in machine_type.cards
    )
    return named and agrees and placed and _has_devices(machine_type, evidence)


def _has_devices(machine_type: MachineType, evidence: _Evidence) -> bool:
    if not machine_type.devices:
        return True
    pattern = re.compile(re.escape(machine_type.devices[0].rstrip("0")) + r"\d+", re.ASCII)
    return {name for name in evidence.infiniband if pattern.fullmatch(name)} == set(
        machine_type.devices
    )


def _because(machine_type: MachineType, evidence: _Evidence) -> str:
    parts = [f"{evidence.gpus} x {evidence.product}"]
    parts += [f"{name} {evidence.dmi[name]}" for name, _ in machine_type.dmi]
    if machine_type.devices:
        parts.append(f"RDMA devices {machine_type.devices[0]} to {machine_type.devices[-1]}")
    if machine_type.cards:
        parts.append(f"{len(machine_type.cards)} network cards at their addresses")
    return ", ".join(parts)
