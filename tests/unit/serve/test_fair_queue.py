"""Tests of quotas and turns, all in one event loop, so that the order is certain."""

from __future__ import annotations

import asyncio

import pytest

from tests.virtual_time import run, virtual_time
from webhook.errors import RequestError
from webhook.serve import fair_queue
from webhook.serve.fair_queue import INTERRUPTED, SECONDS_LEFT, FairQueue, Quota


def test_a_quota_limits_the_total_and_each_address() -> None:
    """Beyond the common quota a request gets a 503, and beyond the quota of its address a 429."""
    quota = Quota("cakes", 4, 3)
    with quota.take("a"), quota.take("a", 2):
        with pytest.raises(RequestError) as address_error, quota.take("a"):
            pass
        with quota.take("b"), pytest.raises(RequestError) as all_, quota.take("b"):
            pass
    assert (address_error.value.status, str(address_error.value)) == (
        429,
        "too many cakes at once from your address; wait until one of them is answered",
    )
    assert (all_.value.status, str(all_.value)) == (503, "too many cakes at once; try again")


def test_a_quota_is_given_back() -> None:
    """This holds even after an error, and addresses that have taken nothing are not remembered."""
    quota = Quota("cakes", 4, 3)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), quota.take("a", 3):
            raise ZeroDivisionError
    assert not quota._taken


def test_others_do_not_take_the_first_amount_of_an_address() -> None:
    """A small first amount goes beyond the total; a large or a second one does not."""
    quota = Quota("cakes", 4, 3, first=1)
    with quota.take("a", 2), quota.take("b", 2):
        for address, amount in (("a", 1), ("c", 2)):
            with pytest.raises(RequestError) as refusal, quota.take(address, amount):
                pass
            assert refusal.value.status == 503
        with quota.take("c"), pytest.raises(RequestError), quota.take("c"):
            pass
        with quota.take("c"):  # it has given the first one back
            pass


def test_first_amounts_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many addresses as there are could take all memory."""
    monkeypatch.setattr(fair_queue, "_FIRST_AMOUNTS", 2)
    quota = Quota("cakes", 4, 4, first=3)
    with (
        quota.take("a", 4),
        quota.take("b", 3),
        quota.take("c", 3),
        pytest.raises(RequestError),
        quota.take("d", 1),
    ):
        pass


@pytest.fixture(autouse=True)
def _virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_queue, "perf_counter", virtual_time)


async def _order(*parties: str) -> list[str]:
    """Let these wait behind a request with the turn; return the order of their turns.

    Each is an address, or an address and a namespace: "a", "a/x".
    """
    turns, called = FairQueue(), []

    async def wait(number: int, party: str) -> None:
        address, _, namespace = party.partition("/")
        async with turns.turn(address, 60, namespace=namespace):
            called.append(f"{party}{number}")

    async with asyncio.TaskGroup() as tasks, turns.turn("first", 60):
        for number, party in enumerate(parties):
            tasks.create_task(wait(number, party))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert called == []
    return called


def test_addresses_take_turns() -> None:
    """An address with many requests delays another by one turn only, whichever came first."""
    assert run(_order("a", "a", "a", "b", "c", "b")) == ["a0", "b3", "c4", "a1", "b5", "a2"]


def test_namespaces_of_an_address_take_turns() -> None:
    """The API server has one address for all users; one with many requests delays others little."""
    order = run(_order("a/x", "a/x", "a/x", "a/y", "b/x", "a/y"))
    assert order == ["a/x0", "b/x4", "a/y3", "a/x1", "a/y5", "a/x2"]


async def _shared(*waiting: tuple[str, float]) -> list[str]:
    """Let requests that take some seconds wait behind a slow one of "a"; return their order."""
    turns, called = FairQueue(), list[str]()

    async def work(address: str, seconds: float) -> None:
        async with turns.turn(address, 60):
            called.append(address)
            await asyncio.sleep(seconds)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(work("a", 0.125))
        await asyncio.sleep(0)
        for address, seconds in waiting:
            tasks.create_task(work(address, seconds))
    assert not turns._shares._seconds
    return called


def test_the_address_that_used_the_least_time_is_next() -> None:
    """A few addresses with slow requests do not make another one wait for all of them."""
    order = run(_shared(("a", 0.125), ("b", 0.5), ("c", 0.0), ("b", 0.0), ("c", 0.0)))
    assert order == ["a", "b", "c", "c", "a", "b"]
    order = run(_shared(("a", 0.125), ("a", 0.0), ("b", 0.25), ("b", 0.0)))
    assert order == ["a", "b", "a", "b", "a"]


async def _waits_beside(seconds: float, *turns_of_other: float) -> list[float]:
    """Let an address have quick turns of `seconds` without an end; return the waits of another."""
    turns, waits = FairQueue(), []

    async def quick() -> None:
        while True:
            async with turns.turn("quick", 60):
                await asyncio.sleep(seconds)

    crowd = [asyncio.create_task(quick()) for _ in range(8)]
    for other in turns_of_other:
        await asyncio.sleep(seconds)
        began = virtual_time()
        async with turns.turn("other", 60):
            waits.append(virtual_time() - began)
            await asyncio.sleep(other)
    for task in crowd:
        task.cancel()
    return waits


def test_quick_turns_count() -> None:
    """An address with many quick requests does not keep out one that had a slow request."""
    first, second = run(_waits_beside(1 / 32, 0.5, 0.0))
    assert first <= 1 / 32
    assert second <= 0.5 + 1 / 32


def test_an_address_that_comes_is_owed_little() -> None:
    """It does not have all turns until it has used as much time as others before it."""

    async def late() -> list[str]:
        turns, called = FairQueue(), []

        async def work(address: str, seconds: float) -> None:
            async with turns.turn(address, 60):
                called.append(address)
                await asyncio.sleep(seconds)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(4):
                tasks.create_task(work("a", 1.0))
                tasks.create_task(work("b", 1.0))
            await asyncio.sleep(5.5)
            for _ in range(4):
                tasks.create_task(work("c", 1.0))
        return called

    assert "".join(run(late())) == "abababccabcc"


def test_few_addresses_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise an attacker's would fill the memory; then all are equal again."""
    monkeypatch.setattr(fair_queue, "_MAX_ADDRESSES", 1)
    order = run(_shared(("a", 0.0), ("b", 0.25), ("a", 0.0), ("b", 0.0)))
    assert order == ["a", "b", "a", "b", "a"]


def test_nobody_has_a_turn_during_a_rest() -> None:
    """It is as long as the turn before it, within a limit; without a turn before, there is none."""

    async def in_sequence() -> list[float]:
        turns, begins = FairQueue(0.25), []

        async def work(seconds: float) -> None:
            async with turns.turn("a", 60):
                begins.append(virtual_time())
                await asyncio.sleep(seconds)

        await asyncio.gather(work(0.125), work(1.0), work(0.0))
        await work(0.0)
        return begins

    assert run(in_sequence()) == [0.0, 0.25, 1.5, 1.5]


def test_a_rest_is_not_the_time_of_the_next_address() -> None:
    """The turns of "b" are quick, so it comes again before "a", whose rests it waited for."""

    async def resting() -> list[str]:
        turns, called = FairQueue(0.5), []

        async def work(address: str, seconds: float) -> None:
            async with turns.turn(address, 60):
                called.append(address)
                await asyncio.sleep(seconds)

        waiting = [("a", 0.5), ("a", 0.5), ("b", 0.125), ("b", 0.125), ("b", 0.125)]
        await asyncio.gather(*(work(*item) for item in waiting))
        return called

    assert "".join(run(resting())) == "abbba"


def test_a_free_turn_needs_no_wait() -> None:
    """Each of several turns, one after the other, is free at once."""

    async def in_sequence() -> None:
        turns = FairQueue()
        for _ in range(3):
            async with turns.turn("a", 0):
                pass

    run(in_sequence())


def test_a_request_that_waits_too_long_is_passed_over() -> None:
    """The next waiting request then gets the turn."""

    async def late() -> None:
        turns = FairQueue()
        async with turns.turn("a", 60):
            with pytest.raises(TimeoutError):
                async with turns.turn("b", 0.01):
                    pass
        async with turns.turn("c", 0):
            pass

    run(late())


def test_requests_that_have_left_are_forgotten() -> None:
    """Also of an address whose turn does not come, of whose clients many come and leave."""

    async def leave() -> None:
        turns = FairQueue()
        async with turns.turn("a", 60):
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    async with turns.turn("b", 0.01):
                        pass
            assert not turns._waiting

    run(leave())


def test_a_request_canceled_before_it_is_called_is_passed_over() -> None:
    """Its task has not run since, so that it is still in the queue."""

    async def leave() -> None:
        turns = FairQueue()
        async with turns.turn("a", 60):
            leaving, staying = await _queued(turns, "b", "c")
            leaving.cancel()
        assert await staying == "c"
        assert leaving.cancelled()

    run(leave())


def test_a_request_canceled_when_called_passes_the_turn_on() -> None:
    """If a request is called and canceled at the same moment, the turn is not lost."""

    async def leave() -> None:
        turns = FairQueue()
        async with turns.turn("a", 60):
            leaving, staying = await _queued(turns, "b", "c")
        leaving.cancel()
        assert await asyncio.wait_for(staying, 60) == "c"
        assert leaving.cancelled()

    run(leave())


async def _queued(turns: FairQueue, *addresses: str) -> list[asyncio.Task[str]]:
    """Return tasks that wait for a turn, in this order; each returns its address."""

    async def wait(address: str) -> str:
        async with turns.turn(address, 60):
            return address

    tasks = [asyncio.create_task(wait(address)) for address in addresses]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def _mixed(*waiting: str) -> list[str]:
    """Let these wait behind a request with the turn, capitals as urgent; return the order."""
    turns, called = FairQueue(), []

    async def wait(name: str) -> None:
        async with turns.turn(name[0], 60, urgent=name.isupper()):
            called.append(name)

    async with asyncio.TaskGroup() as tasks, turns.turn("first", 60, urgent=True):
        for name in waiting:
            tasks.create_task(wait(name))
        for _ in range(3):
            await asyncio.sleep(0)
        assert called == []
    return called


def test_urgent_requests_come_first() -> None:
    """Among them, too, addresses take turns."""
    assert run(_mixed("a", "b", "XY", "X", "Z", "c")) == ["XY", "Z", "X", "a", "b", "c"]


def test_an_urgent_request_interrupts_another() -> None:
    """The request with the turn keeps it for a moment; the next waiting request is not ended."""

    async def interrupted() -> None:
        turns = FairQueue()
        began = asyncio.Event()

        async def endless() -> None:
            async with turns.turn("a", 60):
                began.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(endless())
        await began.wait()
        async with turns.turn("b", 60, urgent=True):
            assert task.done()
            assert virtual_time() == SECONDS_LEFT
        with pytest.raises(RequestError) as error:
            await task
        assert (error.value.status, str(error.value)) == (503, INTERRUPTED)

    run(interrupted())


def test_only_requests_that_are_not_urgent_are_interrupted() -> None:
    """Urgent ones wait for each other, and a request that is done in time is not interrupted."""

    async def undisturbed() -> list[str]:
        turns, done = FairQueue(), []

        async def work(name: str, seconds: float, *, urgent: bool) -> None:
            async with turns.turn(name, 60, urgent=urgent):
                await asyncio.sleep(seconds)
                done.append(name)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(work("quick", 0.5, urgent=False))
            await asyncio.sleep(0)
            tasks.create_task(work("first", 5.0, urgent=True))
            tasks.create_task(work("second", 0.0, urgent=True))
        return done

    assert run(undisturbed()) == ["quick", "first", "second"]


def test_a_timeout_of_the_work_is_its_own() -> None:
    """A TimeoutError in the block is not taken for an interruption."""

    async def late() -> None:
        async with FairQueue().turn("a", 60):
            raise TimeoutError

    with pytest.raises(TimeoutError):
        run(late())
