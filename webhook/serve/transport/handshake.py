"""TLS handshakes outside the event loop, for a listener that requires certificates of clients.

OpenSSL reads the certificates that a client sends before it verifies them. For an elliptic curve of
the client's own making, written into a certificate of 700 bytes, it needs 160 ms (BN_mod_sqrt), and
it accepts 100 KB of certificates. So threads continue these handshakes, without Python's lock, and
each may read MAX_BYTES. One thread serves the addresses that had a slow handshake lately, another
one all others, both in fair turns.
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

#: Bytes of a client's part of a handshake. Go's two hellos have 3.5 kB, a certificate with an RSA
#: key of 4096 bits and one above it 4 kB.
MAX_BYTES = 10 * 1024
#: Seconds for a handshake, as in Go's HTTP clients.
HANDSHAKE_SECONDS = 10.0
#: Seconds of processor time of a slow step; one with an RSA key of 4096 bits takes 5 ms.
SLOW = 0.1
#: Seconds for which an address has to share the thread of slow handshakes.
SLOW_FOR = 600.0
#: The number of such addresses that are remembered.
_MAX_ADDRESSES = 1000


class HandshakeTurns:
    """The turns of a listener's handshakes."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._usual, self._slow = FairQueue(), FairQueue()
        #: Address → the time of its last slow step.
        self._slow_steps: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, client_address: str) -> AsyncIterator[None]:
        """Wait for a turn, and keep it until the end of the block; raises TimeoutError."""
        async with AsyncExitStack() as stack:
            for queue in (self._usual, self._slow):
                if queue is self._queue_of(client_address):
                    await stack.aclose()
                    turn = queue.turn(client_address, HANDSHAKE_SECONDS)
                    await stack.enter_async_context(turn)
            yield

    def _queue_of(self, client_address: str) -> FairQueue:
        """Return the queue of an address, which may change while it waits."""
        since = self._slow_steps.get(client_address, -inf)
        return self._slow if self._clock() - since < SLOW_FOR else self._usual

    def note(self, client_address: str, seconds: float) -> None:
        """Remember an address whose step took this processor time, if that is slow."""
        if seconds < SLOW:
            return
        if len(self._slow_steps) >= _MAX_ADDRESSES:
            self._slow_steps.clear()
        self._slow_steps[client_address] = self._clock()


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
        self._buffer = memoryview(b"")
        #: Bytes that have arrived and have not been passed on, and the number of those that have.
        self._ahead, self._passed = b"", 0
        self._task: asyncio.Task[None] | None = None
        #: Calls for TLS that came while the thread was using it; None at other times.
        self._delayed: list[Callable[[], None]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start TLS."""
        self._transport = cast("asyncio.Transport", transport)
        self._tls.connection_made(transport)

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
        """Return the place for the next piece; what arrives waits for the handshake's turn."""
        self._buffer = cast("memoryview", self._tls.get_buffer(sizehint))
        if not self._usage.handshake_done:
            self._buffer = self._buffer[:MAX_BYTES]
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass a piece on after the handshake, or continue the handshake with it."""
        if self._usage.handshake_done:
            self._tls.buffer_updated(nbytes)
        else:
            self._ahead = bytes(self._buffer[:nbytes])
            self._continue()

    def _call(self, call: Callable[[], None]) -> None:
        """Call TLS, but not while the thread is using it."""
        if self._delayed is None:
            call()
        else:
            self._delayed.append(call)

    def _continue(self) -> None:
        """Continue with as much as a handshake may have; the rest may be the first request."""
        piece = self._ahead[: MAX_BYTES - self._passed]
        if not piece:
            self._usage.close_because("refused")
            return
        self._ahead = self._ahead[len(piece) :]
        self._passed += len(piece)
        self._pass_on(piece)
        self._transport.pause_reading()
        self._task = asyncio.get_running_loop().create_task(self._compute())

    def _pass_on(self, piece: bytes) -> None:
        self._tls.get_buffer(len(piece))[: len(piece)] = piece
        self._tls.buffer_updated(len(piece))

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
        self._pass_on(b"")
        if self._ahead and self._usage.handshake_done:
            self._pass_on(self._ahead)
        elif self._ahead:
            self._continue()
            return
        if not self._transport.is_closing():
            self._transport.resume_reading()
