"""Requests that wait for a namespace that is not known yet.

If a pod is created at the same moment as its namespace, its request may arrive before the
watch has delivered the namespace. So the request waits a little; other requests do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

#: The watch delivers a namespace within some milliseconds; the API server waits for seconds.
SECONDS = 0.3
#: Bytes of all requests that wait at once, at most, and of each one besides its body: enough for
#: a thousand typical requests. Beyond that, requests are decided without waiting.
MOST, EACH = 32 << 20, 16 << 10


class Arrivals:
    """The requests that wait for namespaces, in one event loop."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._awaited: dict[str, set[asyncio.Future[None]]] = {}
        self._held = 0
        #: Whether the namespace came → the number of requests.
        self.counts = {True: 0, False: 0}

    async def of(self, namespace: str, octets: int) -> bool:
        """Wait for a namespace, with a body of `octets` bytes; return whether it has come."""
        octets += EACH
        if self._held + octets > MOST:
            return False
        self._held += octets
        arrival = asyncio.get_running_loop().create_future()
        self._awaited.setdefault(namespace, set()).add(arrival)
        try:
            await asyncio.wait([arrival], timeout=self._seconds)
        finally:
            self._held -= octets
            self._leave(namespace, arrival)
        self.counts[arrival.done()] += 1
        return arrival.done()

    def tell(self, namespaces: Iterable[str]) -> None:
        """Resume the requests that wait for these namespaces."""
        for name in self._awaited.keys() & set(namespaces):
            for arrival in self._awaited.pop(name):
                arrival.set_result(None)

    def _leave(self, namespace: str, arrival: asyncio.Future[None]) -> None:
        others = self._awaited.get(namespace)
        if others is not None:
            others.discard(arrival)
            if not others:
                del self._awaited[namespace]


class NamespaceWaits(Collector):
    """The metric of requests that waited for a namespace."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals

    def collect(self) -> Iterator[Metric]:
        """Make the metric of the current counts, for a scrape."""
        waits = CounterMetricFamily(
            "rdma_webhook_namespace_waits",
            "Requests that waited for a namespace that was not known yet, by result.",
            labels=["came"],
        )
        for came, count in self._arrivals.counts.items():
            waits.add_metric([str(came).lower()], count)
        yield waits
