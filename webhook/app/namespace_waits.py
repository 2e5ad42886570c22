"""Requests that wait for a namespace that is not known yet.

A pod may be asked about before the watch has brought its namespace: both were created at
the same moment. So its request waits a little, and others go on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

#: The watch brings a namespace within some milliseconds; the API server waits for seconds.
SECONDS = 0.3
#: Bytes of the requests that may wait at once, and what each costs besides its body; more are
#: not made to wait. A thousand usual ones.
MOST, EACH = 32 << 20, 16 << 10


class Arrivals:
    """Who waits for which namespace, in one event loop."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._awaited: dict[str, set[asyncio.Future[None]]] = {}
        self._held = 0
        #: Whether the namespace came → how many requests.
        self.counts = {True: 0, False: 0}

    async def of(self, namespace: str, octets: int) -> bool:
        """Wait with a body of so many bytes for a namespace, and return whether it has come."""
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
