"""Requests that wait for a namespace or a ResourceClaim that a watch has not delivered yet.

If a pod is created at the same moment as its namespace or its claim, its request may arrive before
the watch delivers them. So the request waits a little; other requests do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

#: The watch delivers an object within some milliseconds; the API server waits for seconds.
MAX_WAIT = 0.3
#: The maximum bytes of all waiting requests, and bytes of each besides its body: enough for a
#: thousand typical requests. Beyond that, requests are decided without waiting.
MAX_WAITING_BYTES, WAITING_OVERHEAD = 32 << 20, 16 << 10


def claim_key(namespace: str, name: str) -> str:
    """Return the key of a ResourceClaim in `WaitingRequests`; no namespace has such a name."""
    return f"{namespace}/{name}"


class WaitingRequests:
    """The requests that wait in one event loop, by the names of namespaces and keys of claims."""

    def __init__(self, seconds: float = MAX_WAIT) -> None:
        self._seconds = seconds
        self._arrivals: dict[str, set[asyncio.Future[None]]] = {}
        self._octets = 0
        #: Whether all awaited facts arrived → the number of requests.
        self.counts = {True: 0, False: 0}

    async def wait_for(self, keys: Iterable[str], octets: int) -> bool:
        """Wait for all keys, with a body of `octets` bytes; return whether all arrived."""
        octets += WAITING_OVERHEAD
        if self._octets + octets > MAX_WAITING_BYTES:
            return False
        self._octets += octets
        arrivals: dict[str, asyncio.Future[None]] = {key: asyncio.Future() for key in keys}
        for key, arrival in arrivals.items():
            self._arrivals.setdefault(key, set()).add(arrival)
        try:
            await asyncio.wait(arrivals.values(), timeout=self._seconds)
        finally:
            self._octets -= octets
            for key, arrival in arrivals.items():
                self._leave(key, arrival)
        all_arrived = all(arrival.done() for arrival in arrivals.values())
        self.counts[all_arrived] += 1
        return all_arrived

    def resume(self, keys: Iterable[str]) -> None:
        """Resume requests that wait for these namespaces and claims."""
        for key in self._arrivals.keys() & set(keys):
            for arrival in self._arrivals.pop(key):
                arrival.set_result(None)

    def _leave(self, key: str, arrival: asyncio.Future[None]) -> None:
        waiting = self._arrivals.get(key, set())
        waiting.discard(arrival)
        if not waiting:
            self._arrivals.pop(key, None)


class WaitingRequestsMetric(Collector):
    """The metric of requests that waited for namespaces or claims."""

    def __init__(self, waiting: WaitingRequests) -> None:
        self._waiting = waiting

    def collect(self) -> Iterator[Metric]:
        """Yield the metric with the current counts, for a scrape."""
        waits = CounterMetricFamily(
            "rdma_webhook_facts_waits",
            "Requests that waited for a namespace or a ResourceClaim that had not been read yet, "
            "by result.",
            labels=["arrived"],
        )
        for arrived, count in self._waiting.counts.items():
            waits.add_metric([str(arrived).lower()], count)
        yield waits
