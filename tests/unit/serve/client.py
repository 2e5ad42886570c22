"""Call an ASGI application in this process, and read what it logs."""

from __future__ import annotations

import asyncio
import json
import os
import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Message

from webhook.serve.log import Log
from webhook.serve.worker_supervisor import WorkerAnswer

JSON = (b"content-type", b"application/json")


class Answer(NamedTuple):
    """The application's answer; the status is 0 if it sent nothing."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """Return the body as text."""
        return self.body.decode()

    @property
    def response(self) -> Any:
        """Return the response in the AdmissionReview."""
        return json.loads(self.body)["response"]


def call(
    app: ASGIApp,
    method: str,
    path: str,
    *chunks: bytes | None,
    headers: Iterable[tuple[bytes, bytes]] = (),
    query: str = "",
) -> Answer:
    """Send one request with its body in chunks; at None the client goes away."""
    return asyncio.run(request(app, method, path, *chunks, headers=headers, query=query))


async def request(
    app: ASGIApp,
    method: str,
    path: str,
    *chunks: bytes | None,
    headers: Iterable[tuple[bytes, bytes]] = (),
    query: str = "",
    client: str = "127.0.0.1",
) -> Answer:
    """Send one request in the running event loop."""
    sent: list[Message] = []
    waiting = list(chunks or (b"",))

    async def receive() -> Message:
        if not waiting:
            await asyncio.Event().wait()  # the client sends nothing more
        chunk = waiting.pop(0)
        if chunk is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": chunk, "more_body": bool(waiting)}

    async def send(message: Message) -> None:
        await asyncio.sleep(0)
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "https",
        "server": ("webhook", 443),
        "client": (client, 1),
        "root_path": "",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": list(headers),
    }
    await app(scope, receive, send)
    if not sent:
        return Answer(0, {}, b"")
    written = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Answer(sent[0]["status"], written, body)


class HeldWorker:
    """A worker that answers only when it may."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.end = ""

    async def ask(self, *_: Any, **__: Any) -> WorkerAnswer:
        """Record whether the request was cancelled."""
        self.began.set()
        self.end = "cancelled"
        await self.may_answer.wait()
        self.end = "answered"
        return WorkerAnswer(200, {"errors": 0, "warnings": 0})


class Lines:
    """A log whose lines can be read."""

    def __init__(self, level: str = "debug", *, buffered: bool = False) -> None:
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        self.log = Log(level, write, buffered=buffered)
        for descriptor in (self._read, write):
            weakref.finalize(self.log, os.close, descriptor)

    def read(self) -> list[dict[str, Any]]:
        """Return the lines since the last call."""
        try:
            return [json.loads(line) for line in os.read(self._read, 1 << 20).splitlines()]
        except BlockingIOError:
            return []
