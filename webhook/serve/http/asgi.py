"""HTTP helpers of the listeners: reading bodies within limits, and sending answers.

The server can answer before it has read a body, and need not close the connection: uvicorn
keeps reading and discards the rest, so a client that sends everything first gets its answer.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import TypeVar

from fastapi import Response
from starlette.types import Message, Receive, Scope, Send

from webhook.errors import RequestError
from webhook.serve.fair_queue import FairQueue, Quota
from webhook.serve.transport.budget import USAGE, ConnectionUsage, address_key

Headers = Mapping[bytes, bytes]

TEXT = b"text/plain; charset=utf-8"
JSON = b"application/json"

#: The API server accepts objects of up to 3 MiB (apiserver, MaxRequestBodyBytes); the managed
#: fields and the review around the object come on top.
MAX_BODY_BYTES = 8 * 1024 * 1024


class DisconnectedError(Exception):
    """The client has disconnected and cannot receive an answer."""


def address_of(scope: Scope) -> str:
    """Return the address of a client, for limits; "" if it has none.

    Of IPv6, the part that one host may not choose.
    """
    client = scope.get("client")
    return address_key(client[0]) if client else ""


@contextmanager
def connection_closable(scope: Scope) -> Iterator[None]:
    """Let the server close the connection of a complete request meanwhile, to make room.

    Otherwise, clients with many requests that wait could use all memory of a listener.
    """
    usage: ConnectionUsage | None = scope.get("extensions", {}).get(USAGE, {}).get(USAGE)
    if usage is None:
        yield
        return
    usage.mark_closable()
    try:
        yield
    finally:
        usage.mark_protected()


@asynccontextmanager
async def closable_turn(
    queue: FairQueue, scope: Scope, seconds: float, *, namespace: str = ""
) -> AsyncIterator[None]:
    """Wait for a turn of the request's address, and keep it until the end of the block.

    The connection may be closed until the turn comes. Raises TimeoutError after `seconds`.
    """
    async with AsyncExitStack() as stack:
        with connection_closable(scope):
            turn = queue.turn(address_of(scope), seconds, namespace=namespace)
            await stack.enter_async_context(turn)
        await asyncio.sleep(0)  # others that have arrived can wait for the next turn
        yield


class BodyReader:
    """A reader of request bodies up to a size; the server limits their time and total size."""

    def __init__(self, limit: int = MAX_BODY_BYTES) -> None:
        self._limit = limit

    async def read(self, headers: Headers, receive: Receive) -> bytes:
        """Return a body.

        Raises RequestError if it is too large, DisconnectedError if the client disconnects in the
        meantime.
        """
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared) > self._limit:
            raise self._too_large()
        message = await receive()
        if message["type"] == "http.request" and not message["more_body"]:
            return self._within_limit(message["body"])
        return await self._collect(message, receive)

    async def _collect(self, message: Message, receive: Receive) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            if message["type"] == "http.disconnect":
                raise DisconnectedError
            chunks.append(message["body"])
            size += len(message["body"])
            if size > self._limit:
                raise self._too_large()
            if not message["more_body"]:
                return b"".join(chunks)
            message = await receive()

    def _within_limit(self, body: bytes) -> bytes:
        if len(body) > self._limit:
            raise self._too_large()
        return body

    def _too_large(self) -> RequestError:
        return RequestError(413, f"the body is larger than {self._limit} bytes")


async def respond(
    send: Send, status: int, body: bytes, content_type: bytes = TEXT, *, close: bool = False
) -> None:
    """Send an answer; `close` makes the client open a new connection."""
    headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(body))]
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def refuse(send: Send, error: RequestError, *, close: bool = False) -> None:
    """Send a refusal as one line of text."""
    line = f"{error}\n".encode(errors="replace")
    await respond(send, error.status, line, close=close or error.close)


# Callers who may leave before their answer is ready, or read it slowly.

#: The time limit for sending an answer.
SECONDS = 60.0
_Result = TypeVar("_Result")


async def until_disconnect(work: Coroutine[None, None, _Result], receive: Receive) -> _Result:
    """Await `work`; if the caller disconnects first, cancel it and raise DisconnectedError.

    The request's body must have been read before.
    """
    working = _forgetful(work)
    leaving = _forgetful(_disconnection(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise DisconnectedError
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)
        del working, leaving  # its error refers to this frame, which would refer to it


def _forgetful(work: Coroutine[None, None, _Result]) -> asyncio.Task[_Result]:
    """Return a task whose failure does not keep what its frames hold, such as a body of 8 MiB.

    A timeout in the task refers to it (asyncio.Timeout), so the task, its error and the frames make
    a cycle, which Python's collector would find much later.
    """
    task = asyncio.ensure_future(work)
    task.add_done_callback(_forget_failure)
    return task


def _forget_failure(task: asyncio.Task[_Result]) -> None:
    try:
        error = task.exception()
    except asyncio.CancelledError as cancellation:
        clear_frames(cancellation)
    else:
        clear_frames(error)


def clear_frames(error: BaseException | None) -> None:
    """Drop what the frames hold that an error and its contexts have passed through."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


async def finished_once_begun(
    work: Coroutine[None, None, _Result], has_begun: asyncio.Event, seconds: float
) -> _Result:
    """Await `work`; if its caller leaves after it has begun, let it end first, for `seconds`.

    A cancelled request ends the worker, and others would have to wait until the next one is ready.
    """
    working = _forgetful(work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        if has_begun.is_set():
            await asyncio.wait((working,), timeout=seconds)
        raise
    finally:
        working.cancel()
        del working  # as above


async def _disconnection(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class PiecewiseResponse(Response):
    """An answer, sent at the caller's reading speed.

    It counts against `quota` until it is sent; after SECONDS, the connection is closed.
    """

    def __init__(
        self, pieces: Sequence[bytes], media_type: str, quota: Quota, address: str
    ) -> None:
        self._pieces = pieces
        self._size = sum(map(len, pieces))
        self._quota = quota
        self._address = address
        super().__init__(media_type=media_type, headers={"content-length": str(self._size)})

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the answer; raise RequestError if too many bytes are being sent already."""
        with self._quota.take(self._address, self._size), suppress(TimeoutError):
            await asyncio.wait_for(self._send(send), SECONDS)

    async def _send(self, send: Send) -> None:
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        for piece in self._pieces:
            body = {"body": piece, "more_body": True}
            await send({"type": "http.response.body", **body})
        await send({"type": "http.response.body", "body": b""})
