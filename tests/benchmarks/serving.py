"""The cost of a request to `/mutate`, compared with other servers.

One of them is a FastAPI endpoint that only allows, another an endpoint that does not even parse the
request, which shows what TLS and HTTP cost, and a third the webhook without its decision cache. All
are the same server over TLS, each in a process of its own, and another process sends the requests.
Two servers are measured in turns, and a result is the median of the turns' ratios, so that a slow
moment of the machine affects both.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.benchmarks.decide import FABRICS
from tests.benchmarks.endpoints import EndpointProcess
from tests.benchmarks.figures import Row, figure_text
from tests.benchmarks.full_load import IN_FLIGHT, rate
from tests.benchmarks.steady_load import PER_SECOND, load
from tests.integration.serving import Process, certificates, fabrics

TURNS = 5
#: Requests per second, processor time, and time for each request: see docs/benchmarks.md.
FASTER, CHEAPER, NEW = 0.9, 1.2, 1.3
_HITS, _MISSES = (f"rdma_webhook_decision_cache_{name}_total" for name in ("hits", "misses"))


class _Compared(NamedTuple):
    """The median of the turns' ratios, and the medians of both figures."""

    ratio: float
    first: float
    second: float


def run() -> list[Row]:
    """Measure the rows of the table that need a server."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tls, config, ca = certificates(folder), fabrics(folder, FABRICS), folder / "ca.crt"
        ca.write_bytes(tls.ca.certificate)
        ours = Process(tls, config, folder / "ours", os.environ)
        plain = EndpointProcess("fastapi", tls, config, folder / "plain", os.environ)
        bare = EndpointProcess("bare", tls, config, folder / "bare", os.environ)
        uncached = Process(tls, config, folder / "uncached", os.environ, decision_cache=0)
        with ours, plain, bare, uncached:
            rows = [_faster(ours, plain, ca), _limit(_rates(bare, plain, ca), "requests/s")]
            rows += [
                _cheaper(ours, plain, ca),
                _limit(_processor_times(bare, plain, ca), "µs"),
            ]
            assert ours.metric(_MISSES) == 1, "the pods of one workload have several decisions"
            return [*rows, _new(ours, uncached, ca)]


def _faster(ours: Process, plain: Process, ca: Path) -> Row:
    """Compare the requests per second for pods of one workload."""
    compared = _rates(ours, plain, ca)
    return Row(
        f"/mutate, pods of a known workload / FastAPI that only allows, {IN_FLIGHT} in flight "
        f"({compared.first:.0f} / {compared.second:.0f} requests/s)",
        figure_text(compared.ratio, FASTER),
        f">= {FASTER:g}",
        compared.ratio >= FASTER,
    )


def _limit(compared: _Compared, unit: str) -> Row:
    """Return the row with the best ratio that any webhook can have in this server."""
    title = "an endpoint that parses nothing / FastAPI that only allows, measured in the same way"
    figures = f"({compared.first:.0f} / {compared.second:.0f} {unit})"
    return Row(f"{title} {figures}", f"{compared.ratio:.2f}")


def _rates(first: Process, second: Process, ca: Path) -> _Compared:
    return _in_turns(lambda: rate(first, ca, "siblings"), lambda: rate(second, ca, "siblings"))


def _cheaper(ours: Process, plain: Process, ca: Path) -> Row:
    """Compare the processor time of requests at a steady pace, for pods of one workload."""
    compared = _processor_times(ours, plain, ca)
    return Row(
        f"/mutate at {PER_SECOND}/s, processor time, pods of a known workload / FastAPI that only "
        f"allows ({compared.first:.0f} / {compared.second:.0f} µs)",
        figure_text(compared.ratio, CHEAPER),
        f"<= {CHEAPER:g}",
        compared.ratio <= CHEAPER,
    )


def _processor_times(first: Process, second: Process, ca: Path) -> _Compared:
    return _in_turns(
        lambda: load(first, ca, "siblings").processor,
        lambda: load(second, ca, "siblings").processor,
    )


def _new(ours: Process, uncached: Process, ca: Path) -> Row:
    """Compare the times of requests for pods that no decision is cached for."""
    hits = ours.metric(_HITS)
    compared = _in_turns(lambda: rate(uncached, ca, "new-pods"), lambda: rate(ours, ca, "new-pods"))
    assert ours.metric(_HITS) == hits, "a pod was not new"
    return Row(
        "/mutate, time per request, each pod new / without the decision cache "
        f"({compared.second:.0f} / {compared.first:.0f} requests/s)",
        figure_text(compared.ratio, NEW),
        f"<= {NEW:g}",
        compared.ratio <= NEW,
    )


def _in_turns(first: Callable[[], float], second: Callable[[], float]) -> _Compared:
    """Measure two figures in turns; the first turn does not count."""
    turns = [(first(), second()) for _ in range(TURNS + 1)][1:]
    ratio = median(left / right for left, right in turns)
    return _Compared(ratio, *(median(turn[column] for turn in turns) for column in (0, 1)))


if __name__ == "__main__":
    for measured in run():
        print(*measured)
