"""A request that fails leaves nothing to Python's collector, which would find a body much later."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from starlette.types import Message

from webhook.errors import RequestError
from webhook.serve.fair_queue import FairQueue
from webhook.serve.http.asgi import DisconnectedError, finished_once_begun, until_disconnect

LONG = 1000.0


class Body:
    """A body that can have weak references."""

    size = 8 << 20


Work = Callable[[Body], Awaitable[None]]


async def _stays() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


async def _leaves() -> Message:
    await asyncio.sleep(0)
    return {"type": "http.disconnect"}


async def _wait(body: Body) -> None:
    """Wait until the client leaves."""
    assert body.size
    async with asyncio.timeout(LONG):
        await asyncio.Event().wait()


async def _fail(body: Body) -> None:
    """Run into a time limit, which becomes the client's error."""
    assert body.size
    try:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    except TimeoutError:
        raise RequestError(504, "late") from None


async def _wait_in_turn(body: Body) -> None:
    """Wait for others in the queue, in a task of its own."""
    queue, begun = FairQueue(), asyncio.Event()

    async def ask_in_turn() -> None:
        async with asyncio.timeout(LONG), queue.turn("b", LONG, urgent=True):
            begun.set()

    async with queue.turn("a", LONG):
        assert body.size
        await finished_once_begun(ask_in_turn(), begun, LONG)


async def _be_interrupted(body: Body) -> None:
    """Have a turn that an urgent request ends."""
    queue, begun = FairQueue(), asyncio.Event()

    async def ask_in_turn() -> None:
        async with queue.turn("a", LONG):
            begun.set()
            assert body.size
            assert queue._limit is not None
            queue._limit.reschedule(0.0)
            await asyncio.Event().wait()

    await finished_once_begun(ask_in_turn(), begun, LONG)


async def _answer_late(body: Body) -> None:
    """Answer that the work took too long."""

    async def be_late() -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    with suppress(TimeoutError):
        await finished_once_begun(be_late(), asyncio.Event(), LONG)
    assert body.size


@pytest.mark.parametrize(
    ("work", "receive"),
    [
        (_wait, _leaves),
        (_wait_in_turn, _leaves),
        (_fail, _stays),
        (_be_interrupted, _stays),
        (_answer_late, _stays),
    ],
    ids=["leaves", "leaves the queue", "time limit", "interrupted", "late"],
)
def test_a_failed_request_leaves_no_cycle(
    work: Callable[[Body], Awaitable[None]], receive: Callable[[], Awaitable[Message]]
) -> None:
    """Neither the frames of the work nor that of its caller outlive the request."""
    bodies: list[weakref.ref[Body]] = []

    async def application() -> None:
        body = Body()
        bodies.append(weakref.ref(body))

        async def answer() -> None:
            await work(body)

        with suppress(DisconnectedError, RequestError):
            await until_disconnect(answer(), receive)

    async def serve() -> None:
        await asyncio.create_task(application())
        await asyncio.sleep(0)  # callbacks
        assert bodies[0]() is None

    gc.collect()
    gc.disable()
    try:
        asyncio.run(serve())
    finally:
        gc.enable()
