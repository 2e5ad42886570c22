"""uvicorn's connection, with limits on arriving data, and answers in one piece."""

from __future__ import annotations

import asyncio
from typing import cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.protocols.utils import is_ssl
from uvicorn.server import ServerState

from webhook.serve.transport.budget import USAGE, ConnectionUsage, EndReason
from webhook.serve.transport.tls_limits import BYTES_PER_RECORD

#: Bytes that may arrive besides bodies before an answer: heads, sizes and extensions of chunks,
#: trailers. A head has at most one long line; Go's server accepts 1 MiB, more than needed here.
BESIDE_BODY = 64 * 1024
#: Fields in a head and its trailers, like Apache's LimitRequestFields: a field that arrives as four
#: bytes (`a:`) takes 130 in memory.
FIELDS = 100
#: Requests of a connection that wait for an earlier answer: Go, curl and Python send none.
PIPELINED = 8
#: Bytes that may wait in the buffers of TLS in each direction; beyond that, reads or writes pause.
_BUFFERED = 64 * 1024
#: Sizes of pieces that are part of the basic cost of a connection. A larger piece makes buffers
#: of twice its size (encrypted and decrypted), which stay until the connection ends.
_USUAL_PIECE = 8 * 1024
_USUAL_ANSWER = 16 * 1024
_BUFFERS = 2
#: The beginnings of heads of answers; `100 Continue` is not an answer, and the client waits for it.
_FINAL = tuple(b"HTTP/1.1 %d" % hundreds for hundreds in (2, 3, 4, 5))
_MESSAGES = {
    400: "this is not an HTTP request",
    408: "the request took too long to arrive",
    431: (
        f"head, trailers and chunk sizes must have fewer than {BESIDE_BODY} bytes and {FIELDS} "
        "fields"
    ),
}


class _TooManyError(Exception):
    """More requests than PIPELINED; stops the parser."""


class Connection(HttpToolsProtocol):
    """A connection with limits on data besides bodies, and on the time for a request's arrival.

    uvicorn has neither. For a request that arrives in one piece, as nearly all do, this costs two
    flags and no timer. An answer is sent in one piece too.
    """

    #: The seconds for a request to arrive, and for its answer to be read.
    time_limit: float
    #: The connection's use of its listener's budget; set by `Acceptor`.
    usage: ConnectionUsage

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, object]
    ) -> None:
        super().__init__(config, server_state, app_state)
        self.headers = []
        self._silent = True  # nothing has arrived yet
        self._arriving = True
        self._heading = False  # whether the head of the arriving request is incomplete
        #: Bytes besides bodies, of requests without an answer, before the current piece.
        self._beside = 0
        self._piece = 0
        #: Bytes of that piece that belong to bodies.
        self._bodies = 0
        #: Data to send after the answers still owed, before the connection is closed.
        self._last_words: bytes | None = None
        self._fault = 400  # the status to answer if the parser stops
        #: Bytes of a request in several pieces without an answer.
        self._incomplete = 0
        self._largest_piece = _USUAL_PIECE
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit within which the first request must begin.

        It is the keep-alive timeout of idle connections: Go's HTTP client may dial a connection for
        a request that then uses another one, and keep the new one for later.
        """
        self.usage.handshake_done = True
        if is_ssl(transport):
            transport.set_write_buffer_limits(_BUFFERED)
            transport.set_read_buffer_limits(_BUFFERED)  # type: ignore[attr-defined]
        self._joining = _Joining(transport, self.usage)
        super().connection_made(cast("asyncio.Transport", self._joining))
        self._deadline = self.loop.call_later(self.timeout_keep_alive, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after the end."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # the timer would keep a reset connection in memory
        self._cancel_deadline()
        self.usage.release()

    def on_response_complete(self) -> None:
        """Send the rest of the answer, and close a connection that has to end after it."""
        self._joining.flush()  # the answer to HEAD has no body
        all_answered = not self.pipeline
        super().on_response_complete()
        if self._incomplete:
            self._release()
        if self._arriving or not self._owes_answer():
            self.usage.mark_closable()
        if all_answered and self._last_words is not None:
            self._close(self._last_words)

    def on_message_begin(self) -> None:
        """Start the counters and the time limit of a request."""
        super().on_message_begin()
        self.scope["extensions"] = {USAGE: {USAGE: self.usage}}
        self._arriving = self._heading = True
        if not self._owes_answer():
            self._beside = 0

    def on_headers_complete(self) -> None:
        """Accept a request, unless too many wait already."""
        if len(self.pipeline) >= PIPELINED:
            self._fault = 431
            raise _TooManyError
        self._heading = False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count the bytes of bodies, which have their own limit."""
        self._bodies += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Record that the request is complete."""
        self._arriving = False
        self.usage.tls_records = 0
        super().on_message_complete()
        if self._owes_answer():
            self.usage.mark_protected()
        else:
            self.usage.mark_closable()

    def data_received(self, data: bytes) -> None:
        """Parse the data that arrived, and check the limits of size and time."""
        self.usage.tls_records = max(0, self.usage.tls_records - len(data) // BYTES_PER_RECORD)
        if self._last_words is not None:
            return
        if self._silent:
            self._silent = False
            self._cancel_deadline()
        self._piece, self._bodies = len(data), 0
        super().data_received(data)
        self._beside += len(data) - self._bodies
        if len(data) > self._largest_piece:
            self.usage.grow(_BUFFERS * (len(data) - self._largest_piece))
            self._largest_piece = len(data)
        if self._beside > BESIDE_BODY or len(self.headers) > FIELDS:
            self._end(431, self._latest())
        elif self._arriving:
            self._count_piece(len(data))
            if self._deadline is None:
                self._deadline = self.loop.call_later(self.time_limit, self._too_slow)
        elif self._deadline is not None:
            self._cancel_deadline()

    def send_400_response(self, msg: str) -> None:
        """Reject invalid data after the answers still owed; uvicorn would reject it before them."""
        del msg
        self._end(self._fault, self._latest() if self._arriving else None)

    def _count_piece(self, octets: int) -> None:
        """Count a piece of a request, unless its answer is sent and the rest is dropped."""
        if self._heading or self._owes_answer():
            self._incomplete += octets
            self.usage.grow(octets)

    def _release(self) -> None:
        self.usage.shrink(self._incomplete)
        self._incomplete = 0

    def _too_slow(self) -> None:
        self._end(408, self._latest(), "slow")

    def _latest(self) -> RequestResponseCycle | None:
        """Return the arriving or the last request, if its head is complete."""
        return None if self._heading else self.cycle

    def _end(
        self, status: int, request: RequestResponseCycle | None, reason: EndReason = "refused"
    ) -> None:
        """Reject a complete or incomplete request after the answers still owed, and close."""
        if self._last_words is not None or self.transport.is_closing():
            return
        self._cancel_deadline()
        del self.headers[FIELDS:]  # many fields would stay in memory until it has closed
        self.usage.reason = reason
        has_sent = self._piece > 0  # a client that sent nothing gets no answer
        self._last_words = _refusal(status) if has_sent and not _has_answer_begun(request) else b""
        if not self._give_up(request):
            self._close(self._last_words)

    def _give_up(self, request: RequestResponseCycle | None) -> bool:
        """Drop a request, and return whether answers to other requests are still owed."""
        if request is None:
            return self._owes_answer()
        if self.pipeline and self.pipeline[0][0] is request:
            self.pipeline.popleft()
            return True
        request.disconnected = True  # tells the application, which may be reading, that it can stop
        request.message_event.set()
        return False

    def _owes_answer(self) -> bool:
        """Return whether a request whose head has arrived has no complete answer yet."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _close(self, last_words: bytes) -> None:
        if last_words:
            self.transport.write(last_words)
        self.transport.close()

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _has_answer_begun(cycle: RequestResponseCycle | None) -> bool:
    return cycle is not None and cycle.response_started


def _refusal(status: int) -> bytes:
    line = f"{_MESSAGES[status]}\n".encode()
    return STATUS_LINE[status] + (
        b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n"
        b"connection: close\r\n\r\n%b" % (len(line), line)
    )


class _Joining:
    """A transport that delays the head of an answer until its body arrives.

    uvicorn writes them separately: two TLS records and two system calls, 5% of the cost of a
    request to /mutate.
    """

    __slots__ = ("_head", "_largest", "_transport", "_usage", "_write")

    def __init__(self, transport: asyncio.Transport, usage: ConnectionUsage) -> None:
        self._transport = transport
        self._write = transport.write
        self._usage = usage
        self._largest = _USUAL_ANSWER
        self._head = b""

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write data after a delayed head; delay a head."""
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(_FINAL):
            self._head = data
            return
        if len(data) > self._largest:
            self._usage.grow(_BUFFERS * (len(data) - self._largest))
            self._largest = len(data)
        self._write(data)

    def flush(self) -> None:
        """Write a head without a body."""
        if self._head:
            self._write(self._head)
            self._head = b""

    def close(self) -> None:
        """Write a delayed head, and close."""
        self.flush()
        self._transport.close()
