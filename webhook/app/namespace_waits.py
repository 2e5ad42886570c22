"""Requests that wait for a namespace, or for a ResourceClaim, that is not known yet.

If a pod is created at the same moment as its namespace or its claim, its request may arrive before
the watch has delivered that. So the request waits a little; other requests do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

#: The watch delivers an object within some milliseconds; the API server waits for seconds.
SECONDS = 0.3
#: Bytes of all requests that wait at once, at most, and of each one besides its body: enough for
#: a thousand typical requests. Beyond that, requests are decided without waiting.
MOST, EACH = 32 << 20, 16 << 10


def claim_arrival(namespace: str, name: str) -> str:
    """Return what `Arrivals` calls a ResourceClaim; no namespace has such a name."""
    return f"{namespace}/{name}"


class Arrivals:
    """The requests that wait for namespaces and claims, in one event loop."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._awaited: dict[str, set[asyncio.Future[None]]] = {}
        self._held = 0
        #: Whether all came that a request waited for → the number of requests.
        self.counts = {True: 0, False: 0}

    async def of(self, names: Iterable[str], octets: int) -> bool:
        """Wait for all of these, with a body of `octets` bytes; return whether all have come."""
        octets += EACH
        if self._held + octets > MOST:
            return False
        self._held += octets
        loop = asyncio.get_running_loop()
        arrivals = {name: loop.create_future() for name in names}
        for name, arrival in arrivals.items():
            self._awaited.setdefault(name, set()).add(arrival)
        try:
            await asyncio.wait(arrivals.values(), timeout=self._seconds)
        finally:
            self._held -= octets
            for name, arrival in arrivals.items():
                self._leave(name, arrival)
        came = all(arrival.done() for arrival in arrivals.values())
        self.counts[came] += 1
        return came

    def tell(self, names: Iterable[str]) -> None:
        """Resume the requests that wait for these namespaces and claims."""
        for name in self._awaited.keys() & set(names):
            for arrival in self._awaited.pop(name):
                arrival.set_result(None)

    def _leave(self, name: str, arrival: asyncio.Future[None]) -> None:
        others = self._awaited.get(name)
        if others is not None:
            others.discard(arrival)
            if not others:
                del self._awaited[name]


class NamespaceWaits(Collector):
    """The metric of requests that waited for a namespace or a claim."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals

    def collect(self) -> Iterator[Metric]:
        """Make the metric of the current counts, for a scrape."""
        waits = CounterMetricFamily(
            "rdma_webhook_namespace_waits",
            "Requests that waited for a namespace or a ResourceClaim that was not known yet, by "
            "result.",
            labels=["came"],
        )
        for came, count in self._arrivals.counts.items():
            waits.add_metric([str(came).lower()], count)
        yield waits
