"""Fair sharing of the worker, and of `/mutate` between large requests: limits, and turns."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from webhook.errors import RequestError

#: Seconds for which a turn continues after the arrival of an urgent request.
SECONDS_LEFT = 1.0
INTERRUPTED = "a validation took precedence: try again"
#: The number of addresses that may take their first amount beyond the total.
_FIRST_AMOUNTS = 32
#: Turns are compared in tenths of a second, for at most so many addresses.
_TENTHS, _MAX_ADDRESSES = 10, 1000


class Quota:
    """A limited resource, with a smaller limit for each address."""

    def __init__(self, noun: str, total: int, per_address: int, first: int = 0) -> None:
        """`first`: an address that has none may take so much even if others have taken the total.

        Otherwise, a few addresses with many requests could keep out everybody else.
        """
        self._first = first
        self._noun = noun
        self._total = total
        self._per_address = per_address
        self._taken: Counter[str] = Counter()

    @contextmanager
    def take(self, client_address: str, amount: int = 1) -> Iterator[None]:
        """Take an amount until the end of the block; raise RequestError beyond a limit."""
        is_first = client_address not in self._taken and amount <= self._first
        limit = self._total + is_first * self._first * _FIRST_AMOUNTS
        if self._taken.total() + amount > limit:
            raise RequestError(503, f"too many {self._noun} at once: try again")
        if self._taken[client_address] + amount > self._per_address:
            wait = "wait until one of them is answered"
            raise RequestError(429, f"too many {self._noun} at once from your address: {wait}")
        self._taken[client_address] += amount
        try:
            yield
        finally:
            self._taken[client_address] -= amount
            if not self._taken[client_address]:
                del self._taken[client_address]


#: Waiting requests by address, the longest without a turn first, in order of arrival.
_Queue = dict[str, deque[asyncio.Future[None]]]


class FairQueue:
    """A queue for one turn at a time, fair between addresses.

    The address that has used the least time is next, so that an address with many or slow requests
    delays others little. Urgent requests come first; when one arrives, a running request that is
    not urgent has one more second.
    """

    def __init__(self) -> None:
        self._taken = False
        self._urgent: _Queue = {}
        self._waiting: _Queue = {}
        #: The tenths of a second that each address has used since nobody waited.
        self._used: Counter[str] = Counter()
        #: Ends the turn of a request that is not urgent.
        self._limit: asyncio.Timeout | None = None

    @asynccontextmanager
    async def turn(
        self, client_address: str, seconds: float, *, urgent: bool = False
    ) -> AsyncIterator[None]:
        """Wait for a turn, and keep it until the end of the block.

        Raises TimeoutError if the turn does not come within `seconds`, and RequestError if an
        urgent request interrupts it.
        """
        async with asyncio.timeout(seconds):
            await self._wait(client_address, urgent=urgent)
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with self._interruptible(urgent=urgent):
                yield
        finally:
            self._record_use(client_address, clock() - began)
            self._call_next()

    def _record_use(self, client_address: str, seconds: float) -> None:
        if len(self._used) >= _MAX_ADDRESSES:
            self._used.clear()
        if tenths := int(seconds * _TENTHS):
            self._used[client_address] += tenths

    @asynccontextmanager
    async def _interruptible(self, *, urgent: bool) -> AsyncIterator[None]:
        """Keep a turn until the end of the block, or until an urgent request ends it."""
        limit = asyncio.timeout(None)
        try:
            async with limit:
                if not urgent:
                    self._limit = limit
                    if self._urgent:
                        self._hurry()
                yield
        except TimeoutError:
            if limit.expired():
                raise RequestError(503, INTERRUPTED) from None
            raise
        finally:
            self._limit = None

    async def _wait(self, client_address: str, *, urgent: bool) -> None:
        if not self._taken:
            self._taken = True
            return
        turn = asyncio.get_running_loop().create_future()
        queue = self._urgent if urgent else self._waiting
        queue.setdefault(client_address, deque()).append(turn)
        if urgent:
            self._hurry()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._call_next()  # its turn came at the same moment
            raise

    def _hurry(self) -> None:
        """End the turn of a request that is not urgent after a second."""
        if self._limit is not None and self._limit.when() is None:
            self._limit.reschedule(asyncio.get_running_loop().time() + SECONDS_LEFT)

    def _call_next(self) -> None:
        self._taken = False
        while not self._taken and (queue := self._urgent or self._waiting):
            client_address = min(queue, key=self._used.__getitem__)  # the first of equals
            waiting = queue.pop(client_address)
            turn = waiting.popleft()
            if waiting:
                queue[client_address] = waiting  # after all other addresses
            if not turn.done():
                turn.set_result(None)
                self._taken = True
        if not self._taken:
            self._used.clear()
