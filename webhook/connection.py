"""A connection: uvicorn's, with bounds on what may arrive and fewer pieces in what leaves."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

#: A head has one long line at most; Go's server takes 1 MiB, which nobody needs here.
HEAD_BYTES = 64 * 1024
#: How the head of an answer begins; `100 Continue` is none, and is waited for.
_FINAL = tuple(b"HTTP/1.1 %d" % hundreds for hundreds in (2, 3, 4, 5))


class Connection(HttpToolsProtocol):
    """Bounds a request's head in size, and head and body in time, which uvicorn does not.

    A request that arrives in one piece, as nearly all do, pays for two flags and no timer.
    An answer leaves in one piece too.
    """

    #: How long a request may take to arrive.
    seconds: float

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._arriving = True  # a connection that says nothing is no better than a slow one
        self._head_bytes = 0  # -1 as soon as the head is complete
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin: what is to come has a time limit."""
        self._joining = _Joining(transport)
        super().connection_made(cast("asyncio.Transport", self._joining))
        self._deadline = self.loop.call_later(self.seconds, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        super().connection_lost(exc)
        self._in_time()

    def on_response_complete(self) -> None:
        """Let out what is left of the answer."""
        self._joining.flush()  # the answer to HEAD is a head alone
        super().on_response_complete()

    def on_message_begin(self) -> None:
        """Begin to count and to time a request."""
        super().on_message_begin()
        self._arriving = True
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        """Count no more: bodies have a bound of their own."""
        self._head_bytes = -1
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Time no more."""
        self._arriving = False
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Take what arrived, and see whether that was in time and not too much."""
        super().data_received(data)
        if not self._arriving:
            if self._deadline is not None:
                self._in_time()
            return
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.seconds, self._too_slow)
        if self._head_bytes >= 0:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._end(431)

    def _too_slow(self) -> None:
        self._end(408)

    def _end(self, status: int) -> None:
        """Answer the request that is arriving, unless it has its answer, and close."""
        if self.transport.is_closing():
            return
        if self._head_bytes > 0 or (self._head_bytes < 0 and not self.cycle.response_started):
            head = STATUS_LINE[status] + b"connection: close\r\ncontent-length: 0\r\n\r\n"
            self.transport.write(head)
        self.transport.close()

    def _in_time(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Joining:
    """A transport that keeps the head of an answer until its body comes.

    uvicorn writes the two apart: two TLS records and two system calls, 5% of what a request
    to /mutate costs.
    """

    __slots__ = ("_head", "_transport", "_write")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._write = transport.write
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write what there is so far, unless it is a head."""
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(_FINAL):
            self._head = data
            return
        self._write(data)

    def flush(self) -> None:
        """Write a head to which no body comes."""
        if self._head:
            self._write(self._head)
            self._head = b""

    def close(self) -> None:
        """Write what is left, and close."""
        self.flush()
        self._transport.close()
