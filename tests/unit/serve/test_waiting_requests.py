from __future__ import annotations

import asyncio

from prometheus_client.registry import CollectorRegistry

from webhook.serve.waiting_requests import WaitingRequests, WaitingRequestsMetric, claim_key

#: Seconds; a test that waits this long hangs.
NEVER = 600.0


async def settled() -> None:
    """Let all others run until they wait for something."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_requests_continue_when_the_namespace_comes() -> None:
    """All requests for it continue at once; others keep waiting, and time out."""

    async def run() -> list[bool]:
        waiting = WaitingRequests(seconds=NEVER)
        tasks = [asyncio.create_task(waiting.wait_for([name], 5_000)) for name in ("lab", "lab")]
        await asyncio.sleep(0)
        waiting._seconds = 0.05
        tasks.append(asyncio.create_task(waiting.wait_for(["other"], 5_000)))
        await asyncio.sleep(0)
        waiting.resume({"lab", "elsewhere"})
        results = await asyncio.gather(*tasks)
        assert waiting.counts == {True: 2, False: 1}
        return results

    assert asyncio.run(run()) == [True, True, False]


def test_a_request_that_gives_up_leaves_the_others() -> None:
    """A later request still continues when the namespace comes."""

    async def run() -> tuple[bool, bool]:
        waiting = WaitingRequests(seconds=0.05)
        first = asyncio.create_task(waiting.wait_for(["lab"], 5_000))
        await asyncio.sleep(0)
        waiting._seconds = NEVER
        second = asyncio.create_task(waiting.wait_for(["lab"], 5_000))
        gave_up = await first
        waiting.resume(["lab"])
        await settled()
        return gave_up, second.done() and second.result()

    assert asyncio.run(run()) == (False, True)


def test_a_client_that_goes_away_does_not_count() -> None:
    """The wait of a canceled request has no result."""

    async def run() -> None:
        waiting = WaitingRequests(seconds=20)
        request = asyncio.create_task(waiting.wait_for(["lab"], 5_000))
        await asyncio.sleep(0)
        request.cancel()
        await asyncio.wait([request])
        waiting.resume(["lab"])
        assert waiting.counts == {True: 0, False: 0}

    asyncio.run(run())


def test_the_memory_of_waiting_requests_is_limited() -> None:
    """Waiting bodies take memory, so a request beyond 32 MiB is decided at once."""

    async def run() -> None:
        waiting = WaitingRequests(seconds=NEVER)
        large = (8 << 20) - (16 << 10)
        names = [f"n{number}" for number in range(4)]
        tasks = [asyncio.create_task(waiting.wait_for([name], large)) for name in names]
        await settled()
        assert not any(task.done() for task in tasks)
        beyond = asyncio.create_task(waiting.wait_for(["beyond"], 0))
        await settled()
        assert beyond.done()
        assert not beyond.result()
        waiting.resume(names)
        assert all(await asyncio.gather(*tasks))
        assert waiting.counts == {True: 4, False: 0}
        small = asyncio.create_task(waiting.wait_for(["small"], 0))
        await settled()
        waiting.resume(["small"])
        assert await small

    asyncio.run(run())


def test_a_thousand_typical_requests_wait() -> None:
    """They come from pods in a namespace that was created with them."""

    async def run() -> None:
        waiting = WaitingRequests(seconds=NEVER)
        tasks = [asyncio.create_task(waiting.wait_for(["lab"], 16_000)) for _ in range(1000)]
        await settled()
        waiting.resume(["lab"])
        assert all(await asyncio.gather(*tasks))

    asyncio.run(run())


def test_no_request_waits_longer_than_a_watch_needs() -> None:
    """That is some milliseconds, and the API server waits for the answer."""
    assert WaitingRequests()._seconds == 0.3


def test_requests_that_end_leave_nothing_behind() -> None:
    """This holds however they end: names that never arrive do not take memory."""

    async def run() -> None:
        waiting = WaitingRequests(seconds=0.05)
        late = asyncio.create_task(waiting.wait_for(["lab", "other"], 0))
        await settled()
        waiting._seconds = NEVER
        patient = asyncio.create_task(waiting.wait_for(["lab"], 0))
        canceled = asyncio.create_task(waiting.wait_for(["lab"], 0))
        await settled()
        canceled.cancel()
        await asyncio.wait([late, canceled])
        assert {key: len(arrivals) for key, arrivals in waiting._arrivals.items()} == {"lab": 1}
        waiting.resume(["lab"])
        assert await patient
        assert (waiting._arrivals, waiting._octets) == ({}, 0)

    asyncio.run(run())


def test_a_request_for_several_facts_continues_when_all_have_come() -> None:
    """There is a single wait, as long as for a single fact."""

    async def run() -> tuple[bool, bool]:
        waiting = WaitingRequests(seconds=NEVER)
        task = asyncio.create_task(waiting.wait_for(["lab", claim_key("lab", "mine")], 0))
        await settled()
        for arrived in (
            ["lab"],
            [claim_key("else", "mine")],
            [claim_key("lab", "other")],
            ["mine"],
        ):
            waiting.resume(arrived)
            await settled()
            assert not task.done()
        waiting.resume([claim_key("lab", "mine")])
        is_loaded = await task
        waiting._seconds = 0.05
        half = asyncio.create_task(waiting.wait_for(["lab", "other"], 0))
        await settled()
        waiting.resume(["other"])
        return is_loaded, await half

    assert asyncio.run(run()) == (True, False)


def test_the_metric_counts_requests_by_result() -> None:
    """The page on operation has the labels."""
    waiting = WaitingRequests()
    waiting.counts.update({True: 3, False: 2})
    registry = CollectorRegistry()
    registry.register(WaitingRequestsMetric(waiting))
    name = "rdma_webhook_facts_waits_total"
    assert registry.get_sample_value(name, {"arrived": "true"}) == 3
    assert registry.get_sample_value(name, {"arrived": "false"}) == 2
