"""TLS handshakes outside the event loop, for a listener that requires certificates of clients.

OpenSSL reads the certificates that a client sends before it verifies them. For an elliptic curve of
the client's own making, written into a certificate of 700 bytes, it needs 160 ms (BN_mod_sqrt), and
a handshake has room for 14 of them. So threads continue these handshakes, without Python's lock,
each in fair turns: one for addresses that had a slow handshake lately, one for those that had a
complete one, such as API servers, and one for all others.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from math import inf
from time import monotonic, thread_time
from typing import cast

from uvloop.loop import SSLProtocol  # type: ignore[attr-defined]

from webhook.serve.fair_queue import FairQueue
from webhook.serve.transport.budget import ConnectionUsage

#: Seconds for a handshake, as in Go's HTTP clients.
HANDSHAKE_SECONDS = 10.0
#: Seconds of processor time of a slow step; one with an RSA key of 4096 bits takes 5 ms.
SLOW = 0.1
#: Seconds for which an address has to share the thread of slow handshakes.
SLOW_FOR = 600.0
#: Seconds for which an address keeps the thread of complete handshakes.
COMPLETE_FOR = 86_400.0
#: The number of addresses that are remembered for each of the two threads.
_MAX_ADDRESSES = 1000
#: Bytes that OpenSSL reserves for certificates when a client declares that these follow.
CERTIFICATES = 100 * 1024


class HandshakeTurns:
    """The turns of a listener's handshakes."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._usual = FairQueue()
        self._slow = _RememberedAddresses(SLOW_FOR, clock)
        self._complete = _RememberedAddresses(COMPLETE_FOR, clock)

    @asynccontextmanager
    async def turn(self, client_address: str) -> AsyncIterator[None]:
        """Wait for a turn, and keep it until the end of the block; raises TimeoutError."""
        async with AsyncExitStack() as stack:
            for queue in (self._complete.queue, self._usual, self._slow.queue):
                if queue is self._queue_of(client_address):
                    await stack.aclose()
                    turn = queue.turn(client_address, HANDSHAKE_SECONDS)
                    await stack.enter_async_context(turn)
            yield

    def _queue_of(self, client_address: str) -> FairQueue:
        """Return the queue of an address, which may change while it waits."""
        for remembered in (self._slow, self._complete):
            if client_address in remembered:
                return remembered.queue
        return self._usual

    def note(self, client_address: str, seconds: float) -> None:
        """Remember an address whose step took this processor time, if that is slow."""
        if seconds >= SLOW:
            self._slow.add(client_address)

    def note_complete(self, client_address: str) -> None:
        """Remember an address that has shown a valid certificate."""
        self._complete.add(client_address)


class _RememberedAddresses:
    """Addresses that share a queue for some time."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self.queue = FairQueue()
        self._seconds = seconds
        self._clock = clock
        #: Address → the time at which it was added last.
        self._since: dict[str, float] = {}

    def __contains__(self, client_address: str) -> bool:
        return self._clock() - self._since.get(client_address, -inf) < self._seconds

    def add(self, client_address: str) -> None:
        """Remember an address from now on; forget the one added first if there are too many."""
        self._since.pop(client_address, None)
        if len(self._since) >= _MAX_ADDRESSES:
            del self._since[next(iter(self._since))]
        self._since[client_address] = self._clock()


class SteppedContext:
    """A context for uvloop's TLS, whose handshake continues only in `compute`."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._waiting = True
        #: Why the handshake failed; no exception, which would keep this object in a cycle.
        self._fault = ""

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool,
        server_hostname: str | None,
    ) -> SteppedContext:
        """Begin a handshake."""
        self._tls = self._context.wrap_bio(incoming, outgoing, server_side, server_hostname)
        return self

    def __getattr__(self, name: str) -> object:
        return getattr(self._tls, name)

    def do_handshake(self) -> None:
        """Return or raise what the last `compute` did; raise SSLWantReadError before the first."""
        if self._waiting:
            raise ssl.SSLWantReadError
        if self._fault:
            raise ssl.SSLError(self._fault)

    def compute(self) -> float:
        """Continue the handshake with what has arrived; nothing else may use it meanwhile.

        Return the processor time in seconds.
        """
        began = thread_time()
        try:
            self._tls.do_handshake()
            self._waiting = False
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self._waiting, self._fault = False, str(error)
        return thread_time() - began


class ThreadedHandshake(asyncio.BufferedProtocol):
    """A protocol above a socket and below uvloop's TLS, which does the handshake in a thread."""

    def __init__(
        self,
        usage: ConnectionUsage,
        tls: SSLProtocol,
        context: SteppedContext,
        turns: HandshakeTurns,
    ) -> None:
        """`tls` must use `context`."""
        self._usage = usage
        self._tls = tls
        self._context = context
        self._turns = turns
        self._task: asyncio.Task[None] | None = None
        #: Calls for TLS that came while the thread was using it; None at other times.
        self._delayed: list[Callable[[], None]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start TLS, which may need room for certificates until the handshake is done."""
        self._transport = cast("asyncio.Transport", transport)
        self._tls.connection_made(transport)
        self._usage.grow(CERTIFICATES)

    def connection_lost(self, exc: Exception | None) -> None:
        """End TLS, and a handshake that waits for its turn."""
        if self._task is not None and self._delayed is None:
            self._task.cancel()
        self._call(lambda: self._tls.connection_lost(exc))

    def eof_received(self) -> None:
        """End TLS; the transport then closes itself."""
        self._call(self._tls.eof_received)

    def pause_writing(self) -> None:
        """Stop writing until the client has read."""
        self._call(self._tls.pause_writing)

    def resume_writing(self) -> None:
        """Write again."""
        self._call(self._tls.resume_writing)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the place for the next piece."""
        return cast("memoryview", self._tls.get_buffer(sizehint))

    def buffer_updated(self, nbytes: int) -> None:
        """Pass a piece on after the handshake, or continue the handshake with it."""
        self._tls.buffer_updated(nbytes)
        if not self._usage.handshake_done:
            self._transport.pause_reading()
            self._task = asyncio.get_running_loop().create_task(self._compute())

    def _call(self, call: Callable[[], None]) -> None:
        """Call TLS, but not while the thread is using it."""
        if self._delayed is None:
            call()
        else:
            self._delayed.append(call)

    async def _compute(self) -> None:
        """Continue in the thread, in this connection's turn, and then in the event loop."""
        with suppress(TimeoutError):  # uvloop has the same limit, and closes the connection
            async with self._turns.turn(self._usage.client_address):
                self._delayed = []
                seconds = await asyncio.to_thread(self._context.compute)
            self._turns.note(self._usage.client_address, seconds)
            self._proceed()

    def _proceed(self) -> None:
        """Use the outcome, unless the connection has ended meanwhile."""
        delayed, self._delayed = self._delayed or [], None
        for call in delayed:
            call()
        if self._transport.is_closing():
            return
        self._tls.get_buffer(0)
        self._tls.buffer_updated(0)
        if self._usage.handshake_done:
            self._usage.shrink(CERTIFICATES)
            self._turns.note_complete(self._usage.client_address)
        if not self._transport.is_closing():
            self._transport.resume_reading()
