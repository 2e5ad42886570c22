"""Requests that wait for a namespace or a ResourceClaim that a watch has not delivered yet.

If a pod is created at the same moment as its namespace or its claim, its request may arrive before
the watch has delivered that. So the request waits a little; other requests do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

#: The watch delivers an object within some milliseconds; the API server waits for seconds.
LONGEST_WAIT = 0.3
#: Bytes of all requests that wait at once, at most, and of each one besides its body: enough for
#: a thousand typical requests. Beyond that, requests are decided without waiting.
MOST_WAITING, EACH_WAITING = 32 << 20, 16 << 10


def claim_key(namespace: str, name: str) -> str:
    """Return the key of a ResourceClaim in `PendingFacts`; no namespace has such a name."""
    return f"{namespace}/{name}"


class PendingFacts:
    """The requests that wait in one event loop, by the names of namespaces and keys of claims."""

    def __init__(self, seconds: float = LONGEST_WAIT) -> None:
        self._seconds = seconds
        self._arrivals: dict[str, set[asyncio.Future[None]]] = {}
        self._held = 0
        #: Whether all arrived that a request waited for → the number of requests.
        self.counts = {True: 0, False: 0}

    async def wait_for(self, keys: Iterable[str], octets: int) -> bool:
        """Wait for all of these, with a body of `octets` bytes; return whether all arrived."""
        octets += EACH_WAITING
        if self._held + octets > MOST_WAITING:
            return False
        self._held += octets
        arrivals: dict[str, asyncio.Future[None]] = {key: asyncio.Future() for key in keys}
        for key, arrival in arrivals.items():
            self._arrivals.setdefault(key, set()).add(arrival)
        try:
            await asyncio.wait(arrivals.values(), timeout=self._seconds)
        finally:
            self._held -= octets
            for key, arrival in arrivals.items():
                self._leave(key, arrival)
        all_arrived = all(arrival.done() for arrival in arrivals.values())
        self.counts[all_arrived] += 1
        return all_arrived

    def arrived(self, keys: Iterable[str]) -> None:
        """Resume the requests that wait for these namespaces and claims."""
        for key in self._arrivals.keys() & set(keys):
            for arrival in self._arrivals.pop(key):
                arrival.set_result(None)

    def _leave(self, key: str, arrival: asyncio.Future[None]) -> None:
        others = self._arrivals.get(key, set())
        others.discard(arrival)
        if not others:
            self._arrivals.pop(key, None)


class PendingFactsMetric(Collector):
    """The metric of requests that waited for a namespace or a claim."""

    def __init__(self, pending: PendingFacts) -> None:
        self._pending = pending

    def collect(self) -> Iterator[Metric]:
        """Make the metric of the current counts, for a scrape."""
        waits = CounterMetricFamily(
            "rdma_webhook_namespace_waits",
            "Requests that waited for a namespace or a ResourceClaim that was not known yet, by "
            "result.",
            labels=["came"],
        )
        for came, count in self._pending.counts.items():
            waits.add_metric([str(came).lower()], count)
        yield waits
