"""Known machines are recognized exactly, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from webhook.diagnose.tools.observations import (
    CardObservation,
    GpuObservation,
    NodeProperty,
    Observation,
    Origin,
    PortObservation,
    PropertyObservation,
)
from webhook.diagnose.tools.products import (
    MACHINE_TYPES,
    MachineType,
    machine_type_of,
    recognize_machine,
)

L = Origin("nvidia-smi -L", 1)
QUERY = Origin("nvidia-smi --query-gpu", 20)
H100, H200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200"
#: Values that match the expressions of the table.
DMI: dict[str, dict[NodeProperty, str]] = {
    "DGX-1": {"product": "DGX-1 with V100-32"},
    "DGX A100": {"product": "DGXA100 920-23687-2531-001"},
    "DGX H100": {"product": "DGXH100"},
    "DGX H200": {"product": "NVIDIA DGX H200"},
    "DGX B200": {"product": "DGX-B200"},
    "HGX H100 (ThinkSystem SR680a V3)": {"product": "ThinkSystem SR680a V3 -[7DHECTO1WW]-"},
    "HGX H200 (ThinkSystem SR680a V3)": {"product": "ThinkSystem SR680a V3"},
    "GB200 NVL72": {"product": "Example GB200 NVL72 tray"},
}


def gpus(product: str, count: int, origin: Origin = L) -> list[Observation]:
    """Return the numbered GPUs of a tool."""
    return [GpuObservation(origin, number, product) for number in range(count)]


def dmi(**values: str) -> list[Observation]:
    """Return DMI fields."""
    keys: dict[str, NodeProperty] = {"product": "product", "vendor": "vendor", "tag": "asset-tag"}
    origin = Origin("sysfs", 30)
    return [PropertyObservation(origin, keys[key], value) for key, value in values.items()]


def infiniband(*devices: str) -> list[Observation]:
    """Return InfiniBand devices of ibstat."""
    origin = Origin("ibstat", 40)
    return [PortObservation(origin, device, 1, link_layer="InfiniBand") for device in devices]


def cards(*addresses: tuple[str, int]) -> list[Observation]:
    """Return cards of `lspci -n`."""
    origin = Origin("lspci", 60)
    return [CardObservation(origin, pci, device_id=device) for pci, device in addresses]


def shows(machine_type: MachineType) -> list[Observation]:
    """Return the observations of a machine of the table, each part once."""
    values = {name: form.replace("\\", "") for name, form in machine_type.dmi}
    values.update(DMI.get(machine_type.name, {}))
    return [
        *gpus(machine_type.products[-1], machine_type.gpus),
        *(PropertyObservation(Origin("sysfs", 30), name, value) for name, value in values.items()),
        *infiniband(*machine_type.devices),
        *cards(*machine_type.cards),
    ]


each_machine_type = pytest.mark.parametrize(
    "machine_type", MACHINE_TYPES, ids=lambda row: str(row.name)
)
AZURE = [*gpus(H100, 8), *infiniband(*(f"mlx5_ib{number}" for number in range(8)))]
DGX = [*gpus(H100, 8), *dmi(product="DGXH100")]


@each_machine_type
def test_a_machine_is_recognized_by_what_it_shows(machine_type: MachineType) -> None:
    """A machine of the table is recognized by its evidence, with any other observations."""
    ethernet = PortObservation(L, "mlx5_an0", 1, link_layer="Ethernet")
    recognition = recognize_machine([ethernet, GpuObservation(L, 0, numa=0), *shows(machine_type)])
    assert recognition is not None
    assert (recognition.name, recognition.source) == (machine_type.name, machine_type.source)
    assert recognition.because.startswith(f"{machine_type.gpus} x {machine_type.products[-1]}, ")


@each_machine_type
def test_every_part_is_needed(machine_type: MachineType) -> None:
    """Without any one part of the evidence, the machine is not recognized."""
    parts = shows(machine_type)
    for left_out in range(len(parts)):
        assert machine_type_of(parts[:left_out] + parts[left_out + 1 :]) != machine_type.name


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param(dmi(vendor="NVIDIA"), id="NVIDIA"),
        pytest.param(dmi(vendor="NVIDIA Corporation"), id="NVIDIA Corporation"),
    ],
)
def test_what_need_not_be_shown_may_be(extra: Sequence[Observation]) -> None:
    """Optional evidence only must not contradict."""
    assert machine_type_of(DGX) == machine_type_of([*DGX, *extra]) == "DGX H100"


@each_machine_type
def test_rows_of_machines_are_whole(machine_type: MachineType) -> None:
    """Each row has evidence besides its GPUs, and a source."""
    assert machine_type.dmi or machine_type.devices or machine_type.cards
    assert machine_type.source


@pytest.mark.parametrize(
    "observations",
    [
        pytest.param([], id="nothing"),
        pytest.param(gpus(H100, 8), id="GPUs alone"),
        pytest.param([*gpus(H100, 9), *dmi(product="DGXH100")], id="too many GPUs"),
        pytest.param([*gpus(H200, 8), *dmi(product="DGXH100")], id="other GPUs"),
        pytest.param(
            [*gpus(H100, 7), GpuObservation(L, 7, H200), *dmi(product="DGXH100")], id="mixed GPUs"
        ),
        pytest.param([*DGX, *gpus(H100, 4, QUERY)], id="two tools count differently"),
        pytest.param([*DGX, *dmi(vendor="Other")], id="another vendor"),
        pytest.param([*DGX, *dmi(product="DGXH200")], id="two products"),
        pytest.param([*gpus(H100, 8), *dmi(product="MyDGXH100")], id="a product around it"),
        pytest.param([*gpus(H100, 8), *dmi(product="DGXH1000")], id="a longer product"),
        pytest.param([*AZURE, *infiniband("mlx5_ib8")], id="one more device of the form"),
        pytest.param([*AZURE, *dmi(product="SYS-821GE")], id="no virtual machine"),
        pytest.param(
            [*AZURE, *infiniband(*(f"ibp{number}" for number in range(8)))], id="two machines"
        ),
    ],
)
def test_nothing_is_guessed(observations: Sequence[Observation]) -> None:
    """If evidence is missing or contradictory, no machine is recognized."""
    assert machine_type_of(observations) is None


def test_ethernet_devices_do_not_count_as_infiniband() -> None:
    """A device named like Azure's is evidence only if it is InfiniBand."""
    ports = [PortObservation(L, f"mlx5_ib{number}", 1) for number in range(8)]
    assert machine_type_of([*gpus(H100, 8), *ports]) is None


def test_a_tool_that_ran_twice_counts_once() -> None:
    """The same GPUs shown twice are the same GPUs; two tools that agree are no contradiction."""
    repeated = [gpu._replace(origin=Origin("nvidia-smi -L", 50)) for gpu in gpus(H100, 8)]
    assert machine_type_of([*DGX, *repeated, *gpus(H100, 8, QUERY)]) == "DGX H100"


def test_rows_without_a_number_count_each() -> None:
    """If a tool shows only the product, each of its lines is a GPU."""
    rows = [
        GpuObservation(Origin("nvidia-smi --query-gpu", line), product=H100) for line in range(8)
    ]
    assert machine_type_of([*rows, *dmi(product="DGXH100")]) == "DGX H100"


def test_addresses_without_a_domain_are_in_the_first() -> None:
    """Lspci omits the domain 0000, and two tools may show the same card."""
    machine_type = next(row for row in MACHINE_TYPES if row.name == "OCI BM.GPU.H100.8")
    short = [(pci.removeprefix("0000:"), device) for pci, device in machine_type.cards]
    ports = [PortObservation(L, "mlx5_0", 1, pci="0000:0c:00.0", device_id=0x1021)]
    parts = [*gpus(H100, 8), *dmi(tag="OracleCloud.com"), *cards(*short), *ports]
    assert machine_type_of(parts) == machine_type.name
    assert machine_type_of([*parts, *cards(("0c:00.0", 0x101E))]) is None


def test_it_says_what_it_rests_on() -> None:
    """The evidence is named, so that people can check it."""
    azure, dgx = recognize_machine(AZURE), recognize_machine(DGX)
    assert azure is not None
    assert dgx is not None
    assert azure.because == f"8 x {H100}, RDMA devices mlx5_ib0 to mlx5_ib7"
    assert dgx.because == f"8 x {H100}, product DGXH100"
    machine_type = next(row for row in MACHINE_TYPES if row.name == "OCI BM.GPU.H100.8")
    oracle = recognize_machine(shows(machine_type))
    assert oracle is not None
    assert oracle.because.endswith(
        ", asset-tag OracleCloud.com, 18 network cards at their addresses"
    )
