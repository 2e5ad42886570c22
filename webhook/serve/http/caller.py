"""Callers who may leave before their answer is ready, or read it slowly."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import TypeVar

from fastapi import Response

from webhook.serve.http.asgi import DisconnectedError, Receive, Scope, Send
from webhook.serve.worker.queue import Allotment

#: How long an answer may take to be sent.
SECONDS = 60.0
_Result = TypeVar("_Result")


async def while_there(work: Coroutine[None, None, _Result], receive: Receive) -> _Result:
    """Await `work`; if the caller leaves first, cancel it and raise DisconnectedError.

    The request's body must have been read before.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise DisconnectedError
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Pieces(Response):
    """An answer that is sent as fast as the caller reads it.

    It counts against `share` until it is sent; after SECONDS, the connection is closed.
    """

    def __init__(
        self, pieces: Sequence[bytes], media_type: str, share: Allotment, address: str
    ) -> None:
        self._pieces = pieces
        self._size = sum(map(len, pieces))
        self._share = share
        self._address = address
        super().__init__(media_type=media_type, headers={"content-length": str(self._size)})

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the answer; RequestError if too many bytes are being sent already."""
        with self._share.take(self._address, self._size), suppress(TimeoutError):
            await asyncio.wait_for(self._send(send), SECONDS)

    async def _send(self, send: Send) -> None:
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        for piece in self._pieces:
            body = {"body": piece, "more_body": True}
            await send({"type": "http.response.body", **body})
        await send({"type": "http.response.body", "body": b""})
