"""Accept connections, and count them from that moment on.

uvicorn learns of a connection only after its TLS handshake, and never of answers that the client
does not read.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import cast

from uvloop.loop import SSLProtocol  # type: ignore[attr-defined]

from webhook.serve.transport.budget import Budget, ConnectionUsage, Reason
from webhook.serve.transport.connection import Connection
from webhook.serve.transport.process import trim_memory

#: The same as Go's HTTP clients allow for a handshake.
HANDSHAKE_SECONDS = 10.0
#: For the client to read the end of the last answer and to close its side of TLS too.
SHUTDOWN_SECONDS = 30.0
#: Connections that are accepted before the event loop serves others again.
_AT_ONCE = 64
#: After this many connections have ended, it is worth some milliseconds to return their memory:
#: OpenSSL's many small allocations leave the heap full of holes, each of which keeps its page.
_MANY = 100
#: How long to wait if the system has no resources for another connection.
_PAUSE_SECONDS = 0.1


class Acceptor:
    """Accepts on a socket until it is closed; uvicorn uses it like a server of asyncio.

    `seconds`: how long an answer may wait to be read. Both callbacks are called once for each
    connection.
    """

    def __init__(
        self,
        listening: socket.socket,
        *,
        tls: ssl.SSLContext | None,
        connection: Callable[[], Connection],
        budget: Budget,
        seconds: float,
        opened: Callable[[], None],
        closed: Callable[[Reason], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = listening
        self._tls = tls
        self._connection = connection
        self._budget = budget
        self._opened = opened
        self._closed = closed
        self._accepted: set[_Accepted] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._again: asyncio.TimerHandle | None = None
        self._seconds = seconds
        #: How many connections have ended whose memory may not have been returned yet.
        self._gone = 0
        listening.setblocking(False)
        self._listen()
        self._looks = self._loop.call_later(self._look_seconds, self._look)

    @property
    def _look_seconds(self) -> float:
        return min(1.0, self._seconds / 4)

    @property
    def connections(self) -> int:
        """The number of open connections, handshakes included."""
        return len(self._accepted)

    def stop_accepting(self) -> None:
        """Accept what has been dialed, then close the socket; all connections continue."""
        if self._socket.fileno() < 0:
            return
        self._accept()
        self._loop.remove_reader(self._socket.fileno())
        if self._again is not None:
            self._again.cancel()
        self._socket.close()

    def close(self) -> None:
        """Accept no more, and end handshakes; established connections continue."""
        self.stop_accepting()
        for one in list(self._accepted):
            if not one.begun:
                one.end()

    async def wait_closed(self) -> None:
        """Stop checking connections: uvicorn has waited until they ended."""
        self._looks.cancel()

    def _listen(self) -> None:
        self._loop.add_reader(self._socket.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, peer = self._socket.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue
            except OSError:  # accept(2): no descriptors or memory, or an error of the network
                self._pause()
                return
            self._take(accepted, str(peer[0]))

    def _take(self, accepted: socket.socket, address: str) -> None:
        self._opened()
        one = _Accepted(self._budget, address, self._left)
        if one.left:  # the budget is full, and all others have requests that are being answered
            accepted.close()
            return
        self._accepted.add(one)
        task = self._loop.create_task(self._begin(one, accepted))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _pause(self) -> None:
        """Close the connection that has waited longest, and accept again a little later."""
        self._budget.end_longest()
        self._loop.remove_reader(self._socket.fileno())
        self._again = self._loop.call_later(_PAUSE_SECONDS, self._listen)

    async def _begin(self, one: _Accepted, accepted: socket.socket) -> None:
        protocol = _Tls(one, self._made, self._tls) if self._tls else self._made(one)
        try:
            raw, _ = await self._loop.connect_accepted_socket(lambda: protocol, accepted)
        except OSError:
            accepted.close()
            one.leave()
            return
        if one.left:
            raw.abort()
        else:
            one.raw = raw

    def _made(self, one: _Accepted) -> Connection:
        connection = self._connection()
        connection.share = one
        return connection

    def _left(self, one: _Accepted) -> None:
        self._accepted.discard(one)
        self._gone += 1
        self._closed(one.reason if one.begun or one.reason != "ended" else "handshake")

    def _look(self) -> None:
        """End connections that have not read their answers for too long."""
        now = self._loop.time()
        for one in list(self._accepted):
            if one.unread_since(now) < now - self._seconds:
                one.make_go("unread")
        if self._gone >= _MANY:
            trim_memory()
            self._gone = 0
        self._looks = self._loop.call_later(self._look_seconds, self._look)


class _Accepted(ConnectionUsage):
    """A connection, from the moment it was accepted."""

    __slots__ = ("_since", "_tell", "raw")

    def __init__(self, budget: Budget, address: str, tell: Callable[[_Accepted], None]) -> None:
        #: The transport under TLS, or the only one.
        self.raw: asyncio.Transport | None = None
        self._since: float | None = None
        self._tell = tell
        super().__init__(budget, address)

    def end(self) -> None:
        """Close the connection at once; data that is not sent is lost."""
        if self.raw is not None:
            self.raw.abort()

    def leave(self) -> None:
        """Release all memory, and report the end once."""
        if not self.left:
            super().leave()
            self.raw = None  # breaks the reference cycle
            self._tell(self)

    def unread_since(self, now: float) -> float:
        """Return since when data to send has been stuck; `now` if there is none."""
        if self.raw is None or not self.raw.get_write_buffer_size():
            self._since = None
        elif self._since is None:
            self._since = now
        return now if self._since is None else self._since


class _Tls(SSLProtocol):  # type: ignore[misc]
    """uvloop's TLS, as in `connect_accepted_socket(ssl=…)`, but `_Accepted` keeps the transport."""

    def __init__(
        self, accepted: _Accepted, made: Callable[[_Accepted], Connection], tls: ssl.SSLContext
    ) -> None:
        super().__init__(
            asyncio.get_running_loop(),
            _Handshake(accepted, made),
            tls,
            None,
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=SHUTDOWN_SECONDS,
        )
        self._accepted = accepted

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection, even during the handshake, when nothing else would be notified."""
        super().connection_lost(exc)
        self._accepted.leave()


class _Handshake(asyncio.Protocol):
    """Creates the connection after the handshake, so that an unfinished handshake creates none."""

    def __init__(self, accepted: _Accepted, made: Callable[[_Accepted], Connection]) -> None:
        self._accepted = accepted
        self._made = made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Create the connection and give it the transport."""
        connection = self._made(self._accepted)
        cast("asyncio.Transport", transport).set_protocol(connection)
        connection.connection_made(cast("asyncio.Transport", transport))
