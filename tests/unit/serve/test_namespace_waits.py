from __future__ import annotations

import asyncio

from webhook.serve import state
from webhook.serve.state import PendingFacts, claim_key

#: Seconds; a test that waits this long hangs.
NEVER = 600.0


def test_who_waits_goes_on_when_the_namespace_comes() -> None:
    """All requests for it continue at once; others keep waiting, and time out."""

    async def run() -> list[bool]:
        waiting = PendingFacts(seconds=NEVER)
        asked = [asyncio.create_task(waiting.wait_for([name], 5_000)) for name in ("lab", "lab")]
        await asyncio.sleep(0)
        waiting._seconds = 0.05
        asked.append(asyncio.create_task(waiting.wait_for(["other"], 5_000)))
        await asyncio.sleep(0)
        waiting.arrived({"lab", "elsewhere"})
        found = await asyncio.gather(*asked)
        assert waiting.counts == {True: 2, False: 1}
        return found

    assert asyncio.run(run()) == [True, True, False]


def test_one_that_gives_up_leaves_the_others() -> None:
    """A later request still learns that the namespace came."""

    async def run() -> tuple[bool, bool]:
        waiting = PendingFacts(seconds=0.05)
        first = asyncio.create_task(waiting.wait_for(["lab"], 5_000))
        await asyncio.sleep(0)
        waiting._seconds = NEVER
        second = asyncio.create_task(waiting.wait_for(["lab"], 5_000))
        gave_up = await first
        waiting.arrived(["lab"])
        return gave_up, await second

    assert asyncio.run(run()) == (False, True)


def test_a_client_that_goes_away_is_not_told() -> None:
    """A canceled request does not count."""

    async def run() -> None:
        waiting = PendingFacts(seconds=20)
        request = asyncio.create_task(waiting.wait_for(["lab"], 5_000))
        await asyncio.sleep(0)
        request.cancel()
        await asyncio.wait([request])
        waiting.arrived(["lab"])
        assert waiting.counts == {True: 0, False: 0}

    asyncio.run(run())


def test_so_much_waits_and_no_more() -> None:
    """Waiting bodies take memory, so a request beyond the bound is decided at once."""

    async def run() -> None:
        waiting = PendingFacts(seconds=0.05)
        large = state.MOST_WAITING // 4 - state.EACH_WAITING
        asked = [asyncio.create_task(waiting.wait_for([f"n{n}"], large)) for n in range(4)]
        await asyncio.sleep(0)
        waiting._seconds = NEVER
        assert await waiting.wait_for(["one-more"], 0) is False
        assert not any(await asyncio.gather(*asked))
        assert waiting.counts == {True: 0, False: 4}
        small = asyncio.create_task(waiting.wait_for(["one-more"], 0))
        await asyncio.sleep(0)
        waiting.arrived(["one-more"])
        assert await small

    asyncio.run(run())


def test_who_waits_for_several_goes_on_when_all_have_come() -> None:
    """One wait, however many it is for: it is as long as for one."""

    async def run() -> tuple[bool, bool]:
        waiting = PendingFacts(seconds=NEVER)
        both = asyncio.create_task(waiting.wait_for(["lab", claim_key("lab", "mine")], 0))
        await asyncio.sleep(0)
        waiting.arrived(["lab"])
        await asyncio.sleep(0)
        assert not both.done()
        waiting.arrived([claim_key("else", "mine"), claim_key("lab", "mine")])
        came = await both
        waiting._seconds = 0.05
        half = asyncio.create_task(waiting.wait_for(["lab", "other"], 0))
        await asyncio.sleep(0)
        waiting.arrived(["other"])
        return came, await half

    assert asyncio.run(run()) == (True, False)
