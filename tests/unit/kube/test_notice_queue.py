from __future__ import annotations

import threading
from collections import Counter

import pytest

from webhook.kube import notice_queue
from webhook.kube.notice_queue import PENDING, RATE, RATE_SECONDS, NoticeQueue, Shares, Source

API_SERVER, STRANGER = "192.0.2.1", "192.0.2.2"
LAB, OTHER = Source(API_SERVER, "lab"), Source(API_SERVER, "other")
START = 1000.0


def filled(*sources: Source, number: int = PENDING) -> NoticeQueue[Source]:
    """Return a queue with so many notices of each source, one source after the other."""
    queue = NoticeQueue[Source]()
    for source in sources:
        for _ in range(number):
            queue.put(source, source)
    return queue


def created(queue: NoticeQueue[Source], now: float) -> Counter[Source]:
    """Remove all notices that the rate allows at this time; count them by source."""
    notices = Counter[Source]()
    while (notice := queue.pop(now)) is not None:
        notices[notice] += 1
    return notices


def test_a_namespace_has_a_quarter_of_the_rate() -> None:
    """Its next notices are due when its first ones are a minute old."""
    queue = filled(LAB)
    assert created(queue, START) == {LAB: RATE // 4}
    assert created(queue, START + RATE_SECONDS - 0.1) == {}
    assert created(queue, START + RATE_SECONDS) == {LAB: RATE // 4}


def test_a_namespace_with_many_notices_delays_no_other() -> None:
    """Another namespace's notice is created next, even if the first has used up its rate."""
    queue = filled(LAB)
    assert queue.pop(START) == LAB
    assert queue.put(OTHER, OTHER)
    assert [queue.pop(START) for _ in range(2)] == [LAB, OTHER]
    created(queue, START)
    assert queue.put(OTHER, OTHER)
    assert queue.pop(START) == OTHER


def test_namespaces_take_turns() -> None:
    """The one that has gone longest without a turn is next, and each in order of arrival."""
    queue = NoticeQueue[str]()
    for source, notice in ((LAB, "a1"), (LAB, "a2"), (LAB, "a3"), (OTHER, "b1"), (OTHER, "b2")):
        queue.put(source, notice)
    assert [queue.pop(START) for _ in range(6)] == ["a1", "b1", "a2", "b2", "a3", None]


def test_a_namespace_has_a_quarter_of_the_room() -> None:
    """A notice beyond it is refused, until another of the same namespace has left."""
    queue = filled(LAB, number=PENDING // 4)
    assert not queue.put(LAB, LAB)
    assert queue.put(OTHER, OTHER)
    assert queue.pop(START) == LAB
    assert queue.pop(START) == OTHER
    assert queue.put(LAB, LAB)
    assert not queue.put(LAB, LAB)


def test_an_address_has_half_even_with_many_namespaces() -> None:
    """A stranger makes up a namespace for each notice; those by the API server come at once."""
    strangers = [Source(STRANGER, f"n{number}") for number in range(PENDING)]
    queue = filled(*strangers, number=1)
    assert queue.put(LAB, LAB)
    assert queue.pop(START) == strangers[0]
    assert created(queue, START) == {**dict.fromkeys(strangers[1 : RATE // 2], 1), LAB: 1}
    assert queue.put(LAB, LAB)
    assert queue.pop(START) == LAB


def test_a_stranger_takes_no_place_of_other_namespaces() -> None:
    """Even after one namespace has had all that it may have, others are created at once."""
    queue = filled(LAB)
    created(queue, START)
    for number in range(PENDING):
        queue.put(Source(STRANGER, f"n{number}"), LAB)
    created(queue, START)
    assert queue.put(OTHER, OTHER)
    assert queue.pop(START) == OTHER


def test_half_is_also_the_limit_of_the_room() -> None:
    """The namespaces that a stranger makes up do not fill the queue."""
    queue = NoticeQueue[str]()
    puts = [queue.put(Source(STRANGER, f"n{number}"), "") for number in range(PENDING)]
    assert puts == [True] * (PENDING // 2) + [False] * (PENDING // 2)


def test_a_stranger_cannot_cause_many_events() -> None:
    """Anybody who reaches /mutate can make owners up: 60 notices leave in a minute."""
    sources = [Source(f"192.0.2.{number % 100}", f"n{number}") for number in range(PENDING)]
    queue = filled(*sources, number=1)
    assert created(queue, START).total() == RATE
    assert created(queue, START + RATE_SECONDS - 0.1) == {}


def test_the_reader_waits_until_the_rate_allows_more() -> None:
    """Without notices, it waits for one."""
    queue = filled(LAB)
    created(queue, START)
    assert queue.seconds_to_wait(START + 1.0) == RATE_SECONDS - 1.0
    assert queue.seconds_to_wait(START + RATE_SECONDS + 1.0) == 0.0
    assert filled().seconds_to_wait(START) is None


def test_the_reader_gets_a_notice_that_comes_later() -> None:
    """It waits in `get` meanwhile."""
    queue, notices = NoticeQueue[Source](), list[Source]()
    reader = threading.Thread(target=lambda: notices.append(queue.get()), daemon=True)
    reader.start()
    queue.put(LAB, LAB)
    reader.join(300)
    assert notices == [LAB]


def test_the_reader_gets_what_the_rate_has_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody wakes it but the clock."""
    monkeypatch.setattr(notice_queue, "RATE_SECONDS", 0.2)
    number = RATE // 4 + 1
    queue, notices = filled(LAB, number=number), list[Source]()
    reader = threading.Thread(
        target=lambda: notices.extend(queue.get() for _ in range(number)), daemon=True
    )
    reader.start()
    reader.join(300)
    assert notices == [LAB] * number


def test_shares_forget_what_is_returned() -> None:
    """Nothing is kept of a source that has nothing: strangers make up any number of them."""
    shares = Shares(RATE)
    for source in (LAB, LAB, OTHER):
        shares.add(source)
    for source in (LAB, OTHER):
        shares.remove(source)
    assert set(shares._numbers) == {(), (API_SERVER,), LAB}
    shares.remove(LAB)
    assert not shares._numbers
