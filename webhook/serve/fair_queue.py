"""Fair sharing of the worker, and of the event loop between requests to `/mutate`."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import perf_counter

from webhook.errors import RequestError

#: The longest rest in seconds after a large request, which is otherwise as long as the request
#: took. Small requests are answered meanwhile.
MAX_REST = 0.5
#: Seconds for which a turn continues after the arrival of an urgent request.
SECONDS_LEFT = 1.0
INTERRUPTED = "a validation took precedence; try again"
#: The number of addresses that may take their first amount beyond the total.
_FIRST_AMOUNTS = 32
#: The number of addresses whose time is compared.
_MAX_ADDRESSES = 1000
#: The maximum seconds for which an address comes before those that have used more time.
_CREDIT = 1.0


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
            raise RequestError(503, f"too many {self._noun} at once; try again")
        if self._taken[client_address] + amount > self._per_address:
            wait = "wait until one of them is answered"
            raise RequestError(429, f"too many {self._noun} at once from your address; {wait}")
        self._taken[client_address] += amount
        try:
            yield
        finally:
            self._taken[client_address] -= amount
            if not self._taken[client_address]:
                del self._taken[client_address]


class _Shares:
    """The seconds that each address has used, for a comparison.

    An address that comes, or comes back, is at most _CREDIT seconds ahead of the address that had
    the last turn. Without a limit, it would have all turns until it has used as much as one that
    was busy for hours. As start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996), except for
    the credit, with which an address with few requests waits for none of many others.
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        #: The seconds of the address that had the last turn, when it began.
        self._latest = 0.0

    def of(self, client_address: str) -> float:
        """Return the seconds with which an address competes now."""
        return max(self._seconds.get(client_address, 0.0), self._latest - _CREDIT)

    def begin(self, client_address: str) -> None:
        """Record that an address has the turn."""
        self._latest = max(self._latest, self.of(client_address))

    def add(self, client_address: str, seconds: float) -> None:
        """Record that an address has used its turn."""
        if len(self._seconds) >= _MAX_ADDRESSES:
            self._seconds.clear()
        self._seconds[client_address] = self.of(client_address) + seconds


class _Waiting:
    """Waiting requests by address and by namespace, in order of arrival.

    Within an address, the namespace that has gone longest without a turn is next.
    """

    def __init__(self) -> None:
        self._by_address: dict[str, dict[str, deque[asyncio.Future[None]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_address)

    def add(self, client_address: str, namespace: str) -> asyncio.Future[None]:
        """Return the future of another request; it is done when its turn comes."""
        turn = asyncio.get_running_loop().create_future()
        namespaces = self._by_address.setdefault(client_address, {})
        namespaces.setdefault(namespace, deque()).append(turn)
        return turn

    def discard(self, client_address: str, namespace: str, turn: asyncio.Future[None]) -> None:
        """Forget a request that no longer waits, if it is not forgotten yet."""
        turns = self._by_address.get(client_address, {}).get(namespace) or deque()
        if turn in turns:
            turns.remove(turn)
            self._drop_empty(client_address, namespace)

    def pop(self, shares: _Shares) -> asyncio.Future[None]:
        """Remove the next request, and return its future."""
        client_address = min(self._by_address, key=shares.of)  # the first of equals
        namespaces = self._by_address.pop(client_address)
        self._by_address[client_address] = namespaces  # after all other addresses
        namespace = next(iter(namespaces))
        turns = namespaces.pop(namespace)
        namespaces[namespace] = turns  # after all other namespaces
        turn = turns.popleft()
        self._drop_empty(client_address, namespace)
        return turn

    def _drop_empty(self, client_address: str, namespace: str) -> None:
        namespaces = self._by_address[client_address]
        if not namespaces[namespace]:
            del namespaces[namespace]
        if not namespaces:
            del self._by_address[client_address]


class FairQueue:
    """A queue for one turn at a time, fair between addresses.

    The address that has used the least time is next, so that an address with many or slow requests
    delays others little. Within an address, namespaces take turns: the users of all namespaces come
    with the address of the API server. Urgent requests come first; when one arrives, a running
    request that is not urgent has one more second.
    """

    def __init__(self, max_rest: float = 0.0) -> None:
        """`max_rest`: after each turn, nobody has one for as long as it took, but no longer."""
        self._max_rest = max_rest
        self._taken = False
        self._urgent = _Waiting()
        self._waiting = _Waiting()
        #: Since nobody waited.
        self._shares = _Shares()
        #: Ends the turn of a request that is not urgent.
        self._limit: asyncio.Timeout | None = None

    @property
    def is_free(self) -> bool:
        """Whether nobody has a turn, waits for one, or rests."""
        return not self._taken

    @asynccontextmanager
    async def turn(
        self, client_address: str, seconds: float, *, namespace: str = "", urgent: bool = False
    ) -> AsyncIterator[None]:
        """Wait for a turn, and keep it until the end of the block.

        Raises TimeoutError if the turn does not come within `seconds`, and RequestError if an
        urgent request interrupts it.
        """
        async with asyncio.timeout(seconds):
            await self._wait(client_address, namespace, urgent=urgent)
        self._shares.begin(client_address)
        began = perf_counter()  # the loop's clock may stand still during a turn
        try:
            async with self._interruptible(urgent=urgent):
                yield
        finally:
            took = perf_counter() - began
            self._shares.add(client_address, took)
            self._call_next_after(min(took, self._max_rest))

    def _call_next_after(self, rest: float) -> None:
        if rest:
            asyncio.get_running_loop().call_later(rest, self._call_next)
        else:
            self._call_next()

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

    async def _wait(self, client_address: str, namespace: str, *, urgent: bool) -> None:
        if not self._taken:
            self._taken = True
            return
        waiting = self._urgent if urgent else self._waiting
        turn = waiting.add(client_address, namespace)
        if urgent:
            self._hurry()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._call_next()  # its turn came at the same moment
            else:
                waiting.discard(client_address, namespace, turn)
            raise

    def _hurry(self) -> None:
        """End the turn of a request that is not urgent after a second."""
        if self._limit is not None and self._limit.when() is None:
            self._limit.reschedule(asyncio.get_running_loop().time() + SECONDS_LEFT)

    def _call_next(self) -> None:
        self._taken = False
        while not self._taken and (waiting := self._urgent or self._waiting):
            turn = waiting.pop(self._shares)
            if not turn.done():
                turn.set_result(None)
                self._taken = True
        if not self._taken:
            self._shares = _Shares()
