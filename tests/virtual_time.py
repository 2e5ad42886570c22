"""An event loop whose time passes only while it waits, so that no test depends on the machine."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that skips every wait, and counts it; real input and output is not waited for."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_SkippingSelector(self))

    def time(self) -> float:
        """Return the seconds that have passed."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let seconds pass."""
        self._now += seconds


class _SkippingSelector(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing will ever happen"
        self._loop.advance(max(timeout, 0.0))
        return super().select(0)


def virtual_loop() -> VirtualLoop:
    """Return the loop that runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


def virtual_time() -> float:
    """Return the seconds that have passed in the loop that runs."""
    return virtual_loop().time()


def run(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a coroutine, as asyncio.run does, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
