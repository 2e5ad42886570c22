"""A connection of a load: one request at a time, whose answer is read to its end."""

from __future__ import annotations

import asyncio
from typing import cast


class Asking(asyncio.Protocol):
    """Sends a request, and calls `on_answer` once the whole answer, which must be 200, is here."""

    def __init__(self) -> None:
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection, and begin."""
        self._transport = cast("asyncio.Transport", transport)
        self.on_connection()

    def data_received(self, data: bytes) -> None:
        """Read on; an answer may come in several pieces."""
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
        if len(body) < length:
            return
        assert head.startswith(b"HTTP/1.1 200"), head
        self._received = b""
        self.on_answer()

    def send(self, request: bytes) -> None:
        """Send a request; the last one must have been answered."""
        self._transport.write(request)

    def on_connection(self) -> None:
        """Begin: the connection is open."""
        raise NotImplementedError

    def on_answer(self) -> None:
        """Continue: the request was answered."""
        raise NotImplementedError
