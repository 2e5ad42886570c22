from __future__ import annotations

import threading
from collections import Counter

import pytest

from webhook.kube import notice_queue
from webhook.kube.notice_queue import (
    BURST,
    INTERVAL,
    PENDING,
    RECENT_SECONDS,
    NoticeQueue,
    Source,
)

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


def test_a_burst_may_leave_and_then_one_each_second() -> None:
    """Anybody who reaches /mutate can make owners up, so the rate is that of all sources."""
    sources = [Source(f"192.0.2.{number % 100}", f"n{number}") for number in range(PENDING)]
    queue = filled(*sources, number=1)
    assert created(queue, START).total() == BURST
    assert created(queue, START + INTERVAL - 0.1) == {}
    assert created(queue, START + INTERVAL).total() == 1
    assert created(queue, START + 11 * INTERVAL).total() == 10
    assert created(queue, START + 1000 * INTERVAL).total() == BURST


def test_a_namespace_with_many_notices_delays_no_other() -> None:
    """Another namespace's notice is next, even if the first has used up the burst."""
    queue = filled(LAB)
    created(queue, START)
    queue.put(OTHER, OTHER)
    assert queue.pop(START + INTERVAL) == OTHER


def test_many_namespaces_delay_no_other() -> None:
    """Somebody with rights in 40 of them, with all of the room and rate, takes no place of it."""
    namespaces = [Source(API_SERVER, f"n{number}") for number in range(40)]
    queue = filled(*namespaces)
    for second in range(30):
        created(queue, START + second)
        for source in namespaces:
            queue.put(source, source)
    assert queue.put(OTHER, OTHER) in namespaces
    assert queue.pop(START + 30) == OTHER


def test_namespaces_take_turns() -> None:
    """The one that has gone longest without a turn is next, and each in order of arrival."""
    queue = NoticeQueue[str]()
    for source, notice in ((LAB, "a1"), (LAB, "a2"), (OTHER, "b1"), (OTHER, "b2")):
        queue.put(source, notice)
    assert [queue.pop(START) for _ in range(5)] == ["a1", "b1", "a2", "b2", None]


def test_a_namespace_with_few_notices_comes_before_those_with_many() -> None:
    """Of namespaces with as many recent ones: somebody has just sent many of each of 40."""
    queue = filled(*(Source(API_SERVER, f"n{number}") for number in range(40)), number=10)
    queue.put(OTHER, OTHER)
    assert queue.pop(START) == OTHER


def test_a_turn_counts_for_a_minute() -> None:
    """After it, the namespace is no later than others."""
    queue = filled(LAB, number=1)
    assert queue.pop(START) == LAB
    for source in (LAB, OTHER):
        queue.put(source, source)
    assert queue.pop(START + RECENT_SECONDS - 0.1) == OTHER
    queue.put(OTHER, OTHER)
    assert queue.pop(START + RECENT_SECONDS) == LAB


def test_addresses_come_before_namespaces() -> None:
    """A stranger makes up a namespace for each notice; those by the API server come between."""
    strangers = [Source(STRANGER, f"n{number}") for number in range(PENDING)]
    queue = filled(*strangers, number=1)
    for _ in range(3):
        assert queue.put(LAB, LAB) in strangers
    notices = [queue.pop(START) for _ in range(6)]
    assert [notice and notice.client_address for notice in notices] == [STRANGER, API_SERVER] * 3


def test_the_newest_of_the_longest_is_dropped() -> None:
    """Of the address with the most notices, and there of the namespace with the most."""
    queue = NoticeQueue[str]()
    stranger = Source(STRANGER, "lab")
    for number in range(PENDING // 2 - 2):
        queue.put(LAB, f"lab{number}")
    for number in range(PENDING // 2 + 2):
        queue.put(stranger, f"stranger{number}")
    assert queue.put(OTHER, "other") == f"stranger{PENDING // 2 + 1}"
    assert queue.put(OTHER, "other") == f"stranger{PENDING // 2}"
    assert queue.put(OTHER, "other") == f"lab{PENDING // 2 - 3}"


def test_who_has_the_most_gets_no_place() -> None:
    """Its older notices stay."""
    queue = NoticeQueue[int]()
    for number in range(PENDING):
        assert queue.put(LAB, number) is None
    assert queue.put(LAB, PENDING) == PENDING
    assert queue.pop(START) == 0
    assert queue.put(LAB, PENDING) is None


def test_a_notice_more_than_its_equals_is_dropped() -> None:
    """A source with as many as any other does not push theirs out."""
    sources = [Source(API_SERVER, f"n{number}") for number in range(PENDING)]
    queue = filled(*sources, number=1)
    assert queue.put(OTHER, OTHER) == OTHER
    assert created(queue, START) == dict.fromkeys(sources[:BURST], 1)


def test_nothing_is_kept_of_a_source_without_notices() -> None:
    """Strangers make up any number of them."""
    queue = filled(LAB, number=1)
    queue.pop(START)
    assert not queue._waiting
    assert not queue._waiting_by_address
    queue.put(OTHER, OTHER)
    queue.pop(START + RECENT_SECONDS)
    assert [source for _, source in queue._recent] == [OTHER]


def test_the_reader_waits_until_the_rate_allows_more() -> None:
    """Without notices, it waits for one."""
    queue = filled(LAB)
    created(queue, START)
    assert queue.seconds_to_wait(START + INTERVAL / 4) == INTERVAL * 3 / 4
    assert queue.seconds_to_wait(START + 2 * INTERVAL) == 0.0
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
    monkeypatch.setattr(notice_queue, "INTERVAL", 0.1)
    number = BURST + 2
    queue, notices = filled(LAB, number=number), list[Source]()
    reader = threading.Thread(
        target=lambda: notices.extend(queue.get() for _ in range(number)), daemon=True
    )
    reader.start()
    reader.join(300)
    assert notices == [LAB] * number
