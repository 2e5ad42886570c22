"""The cost of the slowest of the files that are written to take long."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import yaml

from tests.benchmarks.figures import Row, figure_text
from tests.unit.config import hostile
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import LIMITS, MAX_FABRICS, parse_fabrics


def run() -> list[Row]:
    """Measure the rows about hostile files."""
    return [_fabrics()]


def _fabrics() -> Row:
    """Check fabrics files of every hostile shape, each nearly as large as is accepted."""
    took = {name: _cpu(text) for name, text in files()}
    slowest = max(took, key=lambda name: took[name])
    return Row(
        f"fabrics files of {len(took)} hostile shapes, the slowest ({slowest})",
        f"{figure_text(took[slowest], 1)} s",
        "<= 1 s",
        took[slowest] <= 1,
    )


def files() -> list[tuple[str, str]]:
    """Write the files, each with nearly as many values or bytes as the limits allow."""
    by_count = [(name, _largest(make)) for name, make in hostile.GROWING.items()]
    long = [(name, make(LIMITS.size - 1000)) for name, make in hostile.LONG.items()]
    return by_count + long + [*hostile.EXPANDING.items()]


def _largest(make: Callable[[int], str]) -> str:
    per_step = (_values(make(200)) - _values(make(100))) / 100
    fabrics = make(100).count("\n  - ") / 100 if per_step > 1 else 0  # each begins a line
    count = min(0.95 * LIMITS.values / max(per_step, 1), 0.99 * MAX_FABRICS / max(fabrics, 0.1))
    return make(int(count))


def _values(text: str) -> int:
    """Count the events that do not end anything, which is about the number of values."""
    return sum(
        "End" not in type(event).__name__ for event in yaml.parse(text, Loader=yaml.SafeLoader)
    )


def _cpu(text: str) -> float:
    started = time.process_time()
    with suppress(InvalidConfiguration):
        parse_fabrics(text, "fabrics.yaml")
    return time.process_time() - started
