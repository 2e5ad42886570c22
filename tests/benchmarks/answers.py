"""The connections of a load: one request at a time on each, whose answer is read to its end."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import TypeVar, cast

_HEAD = (
    b"POST /mutate?timeout=5s HTTP/1.1\r\nHost: rdma-webhook.rdma-webhook.svc\r\n"
    b"User-Agent: kube-apiserver-admission\r\nAccept: application/json, */*\r\n"
    b"Content-Length: %d\r\nContent-Type: application/json\r\n\r\n"
)


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

    def send(self, body: bytes) -> None:
        """Send a request to `/mutate`; the last one must have been answered."""
        self._transport.write(_HEAD % len(body) + body)

    def on_connection(self) -> None:
        """Begin: the connection is open."""
        raise NotImplementedError

    def on_answer(self) -> None:
        """Continue: the request was answered."""
        raise NotImplementedError


_Client = TypeVar("_Client", bound=Asking)


async def connect(make: Callable[[], _Client], number: int, port: int, ca: str) -> list[_Client]:
    """Open connections to a server whose certificate the CA in a file has signed."""
    trust = ssl.create_default_context(cafile=ca)
    loop = asyncio.get_running_loop()
    pairs = [
        await loop.create_connection(
            make, "127.0.0.1", port, ssl=trust, server_hostname="localhost"
        )
        for _ in range(number)
    ]
    return [client for _, client in pairs]
