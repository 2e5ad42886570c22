"""Requests that wait for a namespace that is not known yet.

A pod may be asked about before the watch has brought its namespace: both were created at
the same moment. So its request waits a little, and others go on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

#: The watch brings a namespace within some milliseconds; the API server waits for seconds.
SECONDS = 0.3
#: Requests that may wait at once, each with its body; more are not made to.
MOST = 256


class Arrivals:
    """Who waits for which namespace, in one event loop."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._awaited: dict[str, set[asyncio.Future[None]]] = {}
        self._waiting = 0
        #: Whether the namespace came → how many requests.
        self.counts = {True: 0, False: 0}

    async def of(self, namespace: str) -> bool:
        """Wait for a namespace, and return whether it has come."""
        if self._waiting >= MOST:
            return False
        self._waiting += 1
        arrival = asyncio.get_running_loop().create_future()
        self._awaited.setdefault(namespace, set()).add(arrival)
        try:
            await asyncio.wait([arrival], timeout=self._seconds)
        finally:
            self._waiting -= 1
            self._leave(namespace, arrival)
        self.counts[arrival.done()] += 1
        return arrival.done()

    def tell(self, namespaces: Iterable[str]) -> None:
        """Let those go on who wait for these."""
        for name in self._awaited.keys() & set(namespaces):
            for arrival in self._awaited.pop(name):
                arrival.set_result(None)

    def _leave(self, namespace: str, arrival: asyncio.Future[None]) -> None:
        others = self._awaited.get(namespace)
        if others is not None:
            others.discard(arrival)
            if not others:
                del self._awaited[namespace]
