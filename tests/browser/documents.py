"""Documents that discover and verify write: each with what its picture has to show."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from tests.unit.diagnose.discover.observed_nodes import (
    IBSTAT,
    discovered,
    down,
    ethernet,
    gpus,
    near,
    observed,
    port,
)
from tests.unit.diagnose.verify.measured_runs import NO_MEMORY, Outcome, measured_run
from webhook.diagnose.discover.page import site_page
from webhook.diagnose.discover.site import SourcedObservation
from webhook.diagnose.tools.observations import CounterObservation
from webhook.diagnose.verify.matrix_page import matrix_page
from webhook.diagnose.verify.results import NodePair
from webhook.diagnose.verify.runs.errors import interruption

WRITTEN_AT = datetime(2026, 11, 29, 14, 5, tzinfo=UTC)
_FIRMWARE = "28.39.1002"
_HOSTILE = '<img src=x onerror="alert(1)">\u202e"&amp;'


def _card(number: int, **fields: object) -> object:
    return port(
        f"mlx5_{number}",
        **{"rate_gbps": 400.0, "device_id": 0x1021, "firmware": _FIRMWARE, **fields},
    )


def _node(*ports: object, product: str = "NVIDIA H100 80GB HBM3") -> list[SourcedObservation]:
    """Return a node with eight GPUs, each near a card and less near the card of its neighbor."""
    bond = ethernet("mlx5_bond_0", rate_gbps=25.0, device_id=0x1015)
    numbers = [number for number in range(8) if any(_number(card) == number for card in ports)]
    topology = [
        near(f"GPU{gpu}", f"mlx5_{number}", distance)
        for number in numbers
        for gpu, distance in ((number, "PIX"), (number ^ 1, "PXB"))
    ]
    far = [near(f"GPU{number}", "mlx5_bond_0", "NODE") for number in range(8)]
    return observed(ports, bond, gpus(product), topology, far)  # type: ignore[arg-type]


def _number(card: object) -> int:
    return int(str(getattr(card, "device", "mlx5_0")).removeprefix("mlx5_"))


def _cards(changed: dict[int, object] | None = None, lacking: Iterable[int] = ()) -> list[object]:
    cards = {number: _card(number) for number in range(8)} | (changed or {})
    return [card for number, card in cards.items() if number not in [*lacking]]


def _faulty_site() -> str:
    nodes = {f"h100-{number:02}": _node(*_cards()) for number in range(1, 13)}
    nodes["h100-13"] = _node(*_cards(lacking=[5]))
    nodes["h100-14"] = _node(*_cards({2: _card(2, firmware="28.35.1012")}))
    nodes["h100-15"] = [
        *_node(*_cards({3: down("mlx5_3", device_id=0x1021), 6: _card(6, rate_gbps=200.0)})),
        *observed(CounterObservation(IBSTAT, "mlx5_0", 1, "symbol_error", 4711)),
    ]
    nodes["login"] = observed(gpus(number=0))
    return site_page(discovered(nodes), WRITTEN_AT)


def _hostile_site() -> str:
    product = f"NVIDIA {_HOSTILE}"
    nodes = {f"{_HOSTILE}{number}": _node(*_cards(), product=product) for number in range(2)}
    nodes["x" * 300] = _node(*_cards(lacking=[1]), product=product)
    return site_page(discovered(nodes), WRITTEN_AT)


def _run(pair: NodePair, device: str) -> Outcome:
    if pair == ("gpu-01", "gpu-02"):
        return NO_MEMORY
    if "gpu-03" in pair and device == "mlx5_1":
        return 12.5
    return 80 if pair.server == "gpu-04" else 97


_LATE = interruption(20, 24).finding


def _faulty_run(nodes: int) -> str:
    names = [f"gpu-{number:02}" for number in range(1, nodes + 1)]
    report = measured_run(names, _run, devices=("mlx5_0", "mlx5_1"), findings=(_LATE,))
    return matrix_page(report, WRITTEN_AT, "lab")


def _ring() -> str:
    names = [f"gpu-{number:02}" for number in range(1, 7)]
    pairs = [NodePair(*pair) for pair in zip(names, [*names[1:], names[0]], strict=True)]
    report = measured_run(names, _run, devices=("mlx5_0", "mlx5_1"), pairs=pairs)
    return matrix_page(report, WRITTEN_AT, "lab")


def _hostile_run() -> str:
    names = [f"{_HOSTILE}{number}" for number in range(2)] + ["x" * 300]
    report = measured_run(names, lambda _pair, _device: 12.5, findings=(_LATE,))
    return matrix_page(report, WRITTEN_AT, _HOSTILE)


#: What writes each document, by name.
DOCUMENTS: dict[str, Callable[[], str]] = {
    "discover": _faulty_site,
    "discover-hostile": _hostile_site,
    "verify": lambda: _faulty_run(5),
    "verify-many": lambda: _faulty_run(12),
    "verify-ring": _ring,
    "verify-hostile": _hostile_run,
}
