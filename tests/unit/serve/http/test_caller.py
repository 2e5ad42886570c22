from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import Message

from tests.unit.serve.client import Answer
from webhook.errors import RequestError
from webhook.serve.fair_queue import Quota
from webhook.serve.http import asgi
from webhook.serve.http.asgi import DisconnectedError, PiecewiseResponse, until_disconnect


async def _stays() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


def test_work_for_a_client_that_stays_is_done() -> None:
    """The caller gets the work's result or error."""

    async def work() -> int:
        return 7

    async def fail() -> int:
        raise ZeroDivisionError

    assert asyncio.run(until_disconnect(work(), _stays)) == 7
    with pytest.raises(ZeroDivisionError):
        asyncio.run(until_disconnect(fail(), _stays))


def test_work_for_a_client_that_leaves_is_cancelled() -> None:
    """Other messages from the client are ignored; the work has ended before the error is raised."""
    ended: list[str] = []

    async def work() -> int:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        raise AssertionError

    messages = [{"type": "http.request"}, {"type": "http.disconnect"}]

    async def leaves() -> Message:
        await asyncio.sleep(0)
        return messages.pop(0)

    with pytest.raises(DisconnectedError):
        asyncio.run(until_disconnect(work(), leaves))
    assert (ended, messages) == (["cancelled"], [])


def _sent(response: PiecewiseResponse, *, after: int = 1000) -> list[Message]:
    """Send an answer to a client that takes `after` messages and then no more."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        if len(sent) == after:
            await asyncio.Event().wait()
        sent.append(message)

    scope: dict[str, Any] = {"type": "http"}
    asyncio.run(response(scope, _stays, send))
    return sent


def test_an_answer_is_sent_in_its_pieces() -> None:
    """Each piece is one message, so that none waits in this process for a slow reader."""
    share = Quota("answers", 10, 10)
    sent = _sent(PiecewiseResponse([b"abc", b"de"], "text/plain", share, "a"))
    answer = Answer(
        sent[0]["status"], dict(sent[0]["headers"]), b"".join(m["body"] for m in sent[1:])
    )

    assert [message["body"] for message in sent[1:]] == [b"abc", b"de", b""]
    assert [message["more_body"] for message in sent[1:-1]] == [True, True]
    assert (answer.status, answer.body) == (200, b"abcde")
    assert dict(sent[0]["headers"])[b"content-length"] == b"5"


def test_an_answer_counts_until_it_is_sent() -> None:
    """Beyond its address's share it is refused before anything is sent."""
    share = Quota("answers", 10, 4)

    with pytest.raises(RequestError, match="too many answers at once from your address"):
        _sent(PiecewiseResponse([b"abcde"], "text/plain", share, "a"))
    assert len(_sent(PiecewiseResponse([b"abcd"], "text/plain", share, "a"))) == 3


def test_a_client_that_does_not_read_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer stays incomplete, so the server closes the connection; it no longer counts."""
    monkeypatch.setattr(asgi, "SECONDS", 0.01)
    share = Quota("answers", 10, 10)
    sent = _sent(PiecewiseResponse([b"abc", b"de"], "text/plain", share, "a"), after=2)

    assert [message.get("body") for message in sent] == [None, b"abc"]
    assert not share._taken
