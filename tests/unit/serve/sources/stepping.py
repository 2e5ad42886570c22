"""Run a source whose reflectors are threads, until a test's conditions have become true."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from tests import waiting

#: Seconds between two checks, and between two attempts of a reflector.
PAUSE = 0.001


class Runs(Protocol):
    """A source."""

    def start(self) -> None:
        """Start its threads, in the event loop."""

    def stop(self) -> None:
        """Stop them."""


def run_steps(source: Runs, steps: Iterable[Callable[[], Any]]) -> None:
    """Run until each of the conditions has become true, in this order."""
    asyncio.run(_run(source, steps))


async def _run(source: Runs, steps: Iterable[Callable[[], Any]]) -> None:
    source.start()
    try:
        for step in steps:
            async with asyncio.timeout(waiting.PATIENCE):
                while not step():  # noqa: ASYNC110 -- other threads make it true
                    await asyncio.sleep(PAUSE)
            await asyncio.sleep(0)  # callbacks from those threads run first
    finally:
        source.stop()
