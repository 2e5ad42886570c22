from __future__ import annotations

import asyncio

from webhook.app import namespace_waits
from webhook.app.namespace_waits import Arrivals, claim_arrival

#: Seconds; a test that waits this long hangs.
NEVER = 600.0


def test_who_waits_goes_on_when_the_namespace_comes() -> None:
    """All requests for it continue at once; others keep waiting, and time out."""

    async def run() -> list[bool]:
        waiting = Arrivals(seconds=NEVER)
        asked = [asyncio.create_task(waiting.of([name], 5_000)) for name in ("lab", "lab")]
        await asyncio.sleep(0)
        waiting._seconds = 0.05
        asked.append(asyncio.create_task(waiting.of(["other"], 5_000)))
        await asyncio.sleep(0)
        waiting.tell({"lab", "elsewhere"})
        found = await asyncio.gather(*asked)
        assert waiting.counts == {True: 2, False: 1}
        return found

    assert asyncio.run(run()) == [True, True, False]


def test_one_that_gives_up_leaves_the_others() -> None:
    """A later request still learns that the namespace came."""

    async def run() -> tuple[bool, bool]:
        waiting = Arrivals(seconds=0.05)
        first = asyncio.create_task(waiting.of(["lab"], 5_000))
        await asyncio.sleep(0)
        waiting._seconds = NEVER
        second = asyncio.create_task(waiting.of(["lab"], 5_000))
        gave_up = await first
        waiting.tell(["lab"])
        return gave_up, await second

    assert asyncio.run(run()) == (False, True)


def test_a_client_that_goes_away_is_not_told() -> None:
    """A canceled request does not count."""

    async def run() -> None:
        waiting = Arrivals(seconds=20)
        request = asyncio.create_task(waiting.of(["lab"], 5_000))
        await asyncio.sleep(0)
        request.cancel()
        await asyncio.wait([request])
        waiting.tell(["lab"])
        assert waiting.counts == {True: 0, False: 0}

    asyncio.run(run())


def test_so_much_waits_and_no_more() -> None:
    """Waiting bodies take memory, so a request beyond the bound is decided at once."""

    async def run() -> None:
        waiting = Arrivals(seconds=0.05)
        large = namespace_waits.MOST // 4 - namespace_waits.EACH
        asked = [asyncio.create_task(waiting.of([f"n{n}"], large)) for n in range(4)]
        await asyncio.sleep(0)
        waiting._seconds = NEVER
        assert await waiting.of(["one-more"], 0) is False
        assert not any(await asyncio.gather(*asked))
        assert waiting.counts == {True: 0, False: 4}
        small = asyncio.create_task(waiting.of(["one-more"], 0))
        await asyncio.sleep(0)
        waiting.tell(["one-more"])
        assert await small

    asyncio.run(run())


def test_who_waits_for_several_goes_on_when_all_have_come() -> None:
    """One wait, however many it is for: it is as long as for one."""

    async def run() -> tuple[bool, bool]:
        waiting = Arrivals(seconds=NEVER)
        both = asyncio.create_task(waiting.of(["lab", claim_arrival("lab", "mine")], 0))
        await asyncio.sleep(0)
        waiting.tell(["lab"])
        await asyncio.sleep(0)
        assert not both.done()
        waiting.tell([claim_arrival("else", "mine"), claim_arrival("lab", "mine")])
        came = await both
        waiting._seconds = 0.05
        half = asyncio.create_task(waiting.of(["lab", "other"], 0))
        await asyncio.sleep(0)
        waiting.tell(["other"])
        return came, await half

    assert asyncio.run(run()) == (True, False)
