"""Accepted connections, counted from that moment on.

uvicorn counts a connection only after its TLS handshake, and does not notice if the client
leaves an answer unread.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import cast

from uvloop.loop import SSLProtocol  # type: ignore[attr-defined]

from webhook.serve.transport.budget import Budget, ConnectionUsage, EndReason
from webhook.serve.transport.connection import Connection
from webhook.serve.transport.handshake import (
    HANDSHAKE_SECONDS,
    HandshakeTurns,
    SteppedContext,
    ThreadedHandshake,
)
from webhook.serve.transport.process import trim_memory
from webhook.serve.transport.tls_limits import HandshakePace, TlsLimits

#: Seconds for the client to read the end of the last answer and to close its side of TLS.
SHUTDOWN_SECONDS = 30.0
#: Connections to accept before the event loop serves others again.
_AT_ONCE = 64
#: After this many ended connections, returning their memory is worth a few milliseconds:
#: OpenSSL's many small allocations leave the heap full of holes, and each hole keeps its page.
_TRIM_AFTER = 100
#: Seconds to wait if the system has no resources for another connection.
_PAUSE_SECONDS = 0.1


class Acceptor:
    """An acceptor of connections on a socket; uvicorn uses it like a server of asyncio.

    `time_limit`: how many seconds an answer may stay unread. `opened` and `closed` are
    called once for each connection.
    """

    def __init__(
        self,
        listening: socket.socket,
        *,
        tls: ssl.SSLContext | None,
        connection: Callable[[], Connection],
        budget: Budget,
        time_limit: float,
        opened: Callable[[], None],
        closed: Callable[[EndReason], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = listening
        self._tls = tls
        self._handshakes, self._pace = HandshakeTurns(), HandshakePace()
        self._connection = connection
        self._budget = budget
        self._opened = opened
        self._closed = closed
        self._accepted: set[_Accepted] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._resumption: asyncio.TimerHandle | None = None
        self._time_limit = time_limit
        #: The number of ended connections since the last return of memory.
        self._ended = 0
        listening.setblocking(False)
        self._listen()
        self._next_check = self._loop.call_later(self._check_seconds, self._check)

    @property
    def _check_seconds(self) -> float:
        return min(1.0, self._time_limit / 4)

    @property
    def connections(self) -> int:
        """The number of open connections, handshakes included."""
        return len(self._accepted)

    def stop_accepting(self) -> None:
        """Accept pending connections, then close the socket; all connections continue."""
        if self._socket.fileno() < 0:
            return
        self._accept()
        self._loop.remove_reader(self._socket.fileno())
        if self._resumption is not None:
            self._resumption.cancel()
        self._socket.close()

    def close(self) -> None:
        """Stop accepting, and end handshakes; established connections continue."""
        self.stop_accepting()
        for accepted in list(self._accepted):
            if not accepted.handshake_done:
                accepted.end()

    async def wait_closed(self) -> None:
        """Stop the periodic check; uvicorn has already waited for all connections to close."""
        self._next_check.cancel()

    def _listen(self) -> None:
        self._loop.add_reader(self._socket.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                client, peer = self._socket.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue
            except OSError:  # accept(2): no descriptors or memory, or an error of the network
                self._pause()
                return
            self._take(client, str(peer[0]))

    def _take(self, client: socket.socket, address: str) -> None:
        self._opened()
        accepted = _Accepted(self._budget, address, self._count_end)
        if (
            accepted.released
        ):  # the budget is full, and all others have requests that are being answered
            client.close()
            return
        self._accepted.add(accepted)
        task = self._loop.create_task(self._begin(accepted, client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _pause(self) -> None:
        """Close the connection that has gone longest without a complete request, and pause."""
        self._budget.end_longest()
        self._loop.remove_reader(self._socket.fileno())
        self._resumption = self._loop.call_later(_PAUSE_SECONDS, self._listen)

    async def _begin(self, accepted: _Accepted, client: socket.socket) -> None:
        protocol = (
            TlsLimits(accepted, self._tls_for(accepted, self._tls), self._pace)
            if self._tls
            else self._connection_for(accepted)
        )
        try:
            raw, _ = await self._loop.connect_accepted_socket(lambda: protocol, client)
        except OSError:
            client.close()
            accepted.release()
            return
        if accepted.released:
            raw.abort()
        else:
            accepted.raw = raw

    def _tls_for(self, accepted: _Accepted, context: ssl.SSLContext) -> SSLProtocol:
        """Return TLS; its handshake continues in a thread if the client sends a certificate."""
        if context.verify_mode is ssl.CERT_NONE:
            return _Tls(accepted, self._connection_for, context)
        stepped = SteppedContext(context)
        tls = _Tls(accepted, self._connection_for, stepped)
        return ThreadedHandshake(accepted, tls, stepped, self._handshakes)

    def _connection_for(self, accepted: _Accepted) -> Connection:
        connection = self._connection()
        connection.usage = accepted
        return connection

    def _count_end(self, accepted: _Accepted) -> None:
        self._accepted.discard(accepted)
        self._ended += 1
        is_incomplete = accepted.reason == "ended" and not accepted.handshake_done
        self._closed("handshake" if is_incomplete else accepted.reason)

    def _check(self) -> None:
        """End connections whose answers have been unread for too long."""
        now = self._loop.time()
        for accepted in list(self._accepted):
            if accepted.unread_since(now) < now - self._time_limit:
                accepted.close_because("unread")
        if self._ended >= _TRIM_AFTER:
            trim_memory()
            self._ended = 0
        self._next_check = self._loop.call_later(self._check_seconds, self._check)


class _Accepted(ConnectionUsage):
    """An accepted connection, before and after its handshake."""

    __slots__ = ("_on_release", "_since", "raw")

    def __init__(
        self, budget: Budget, address: str, on_release: Callable[[_Accepted], None]
    ) -> None:
        #: The transport under TLS, or the only one.
        self.raw: asyncio.Transport | None = None
        self._since: float | None = None
        self._on_release = on_release
        super().__init__(budget, address)

    def end(self) -> None:
        """Close the connection at once; unsent data is lost."""
        if self.raw is not None:
            self.raw.abort()

    def release(self) -> None:
        """Release all memory, and report the end, but only once."""
        if not self.released:
            super().release()
            self.raw = None  # breaks the reference cycle
            self._on_release(self)

    def unread_since(self, now: float) -> float:
        """Return the time since which data has been unsent; `now` if all is sent."""
        if self.raw is None or not self.raw.get_write_buffer_size():
            self._since = None
        elif self._since is None:
            self._since = now
        return now if self._since is None else self._since


class _Tls(SSLProtocol):  # type: ignore[misc]
    """uvloop's TLS of `connect_accepted_socket(ssl=…)`, with the transport in `_Accepted`."""

    def __init__(
        self,
        accepted: _Accepted,
        connection_for: Callable[[_Accepted], Connection],
        tls: ssl.SSLContext | SteppedContext,
    ) -> None:
        super().__init__(
            asyncio.get_running_loop(),
            _Handshake(accepted, connection_for),
            tls,
            None,
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=SHUTDOWN_SECONDS,
        )
        self._accepted = accepted

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection, even during the handshake, when only TLS is notified."""
        super().connection_lost(exc)
        self._accepted.release()


class _Handshake(asyncio.Protocol):
    """A protocol that creates the connection only after a complete handshake."""

    def __init__(
        self, accepted: _Accepted, connection_for: Callable[[_Accepted], Connection]
    ) -> None:
        self._accepted = accepted
        self._connection_for = connection_for

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Create the connection with the transport."""
        connection = self._connection_for(self._accepted)
        cast("asyncio.Transport", transport).set_protocol(connection)
        connection.connection_made(cast("asyncio.Transport", transport))
