"""How previews share resources fairly: limits in all and for each address, and turns."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from webhook.app.refusal import RequestError


class Allotment:
    """A limited amount of something, with a smaller limit for each address."""

    def __init__(self, what: str, in_all: int, each: int) -> None:
        self._what = what
        self._in_all = in_all
        self._each = each
        self._taken: Counter[str] = Counter()

    @contextmanager
    def take(self, address: str, amount: int = 1) -> Iterator[None]:
        """Hold an amount until the end of the block; RequestError if that exceeds a limit."""
        if self._taken.total() + amount > self._in_all:
            raise RequestError(503, f"too many {self._what} at once: try again")
        if self._taken[address] + amount > self._each:
            wait = "wait for the other answers"
            raise RequestError(429, f"too many {self._what} at once from your address: {wait}")
        self._taken[address] += amount
        try:
            yield
        finally:
            self._taken[address] -= amount
            if not self._taken[address]:
                del self._taken[address]


class Turns:
    """Run one at a time. Addresses take turns, so one with many requests delays others little."""

    def __init__(self) -> None:
        self._taken = False
        #: By address, the next address first; each address's requests in order of arrival.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, address: str, seconds: float) -> AsyncIterator[None]:
        """Wait for a turn, and keep it until the end of the block.

        Raises TimeoutError if the turn does not come within `seconds`.
        """
        async with asyncio.timeout(seconds):
            await self._wait(address)
        try:
            yield
        finally:
            self._call_next()

    async def _wait(self, address: str) -> None:
        if not self._taken:
            self._taken = True
            return
        called = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(address, deque()).append(called)
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                self._call_next()  # its turn came at the same moment
            raise

    def _call_next(self) -> None:
        self._taken = False
        while self._waiting and not self._taken:
            address = next(iter(self._waiting))
            waiting = self._waiting.pop(address)
            called = waiting.popleft()
            if waiting:
                self._waiting[address] = waiting  # behind all other addresses
            if not called.done():
                called.set_result(None)
                self._taken = True
