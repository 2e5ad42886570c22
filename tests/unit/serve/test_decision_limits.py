"""The limits on the CPU time and the memory of a decision."""

from __future__ import annotations

import json
import re
import signal
import tracemalloc
from threading import Thread
from time import thread_time

import pytest

from tests.builders import decision_input, gpu, pod
from tests.families import FAMILIES, Family, busy_decision_input
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.model.decision import Decision
from webhook.model.pod import PodManifest
from webhook.serve import decision_limits
from webhook.serve.decision_limits import MAX_DECISION_BYTES, CpuTimeError, DecisionLimits

#: Seconds of CPU; an ordinary decision takes a hundredth of it, the first of a process included.
LIMIT = 0.5
#: Seconds of CPU after which a loop gives up, so that a failed test ends.
GIVE_UP = 20.0
#: Bytes, and bytes after which a loop gives up.
LIMIT_BYTES, GIVE_UP_BYTES = 32 << 20, 1 << 30
#: Entries of the largest pods that are decided.
LARGE = 4_000
#: A pattern and a text that it would search for years.
ENDLESS = re.compile(r"(?:a+)+b"), "a" * 64


def _spin(_pod: PodManifest, _decision_input: DecisionInput) -> Decision:
    end = thread_time() + GIVE_UP
    while thread_time() < end:
        pass
    raise AssertionError("not ended")


def _spin_twice(manifest: PodManifest, given: DecisionInput) -> Decision:
    """Spin; when that is ended, nothing ends what comes next."""
    try:
        return _spin(manifest, given)
    finally:
        assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def _search(_pod: PodManifest, _decision_input: DecisionInput) -> Decision:
    pattern, text = ENDLESS
    pattern.search(text)
    raise AssertionError("not ended")


@pytest.mark.parametrize("endless", [_spin, _search])
def test_a_decision_that_does_not_end_is_ended(endless: object) -> None:
    """Also within a single search, which is one step for Python; the next pod is decided."""
    limit = DecisionLimits(LIMIT)
    with limit.enforced():
        for _ in range(2):
            with pytest.raises(CpuTimeError, match=f"more than {LIMIT} s of CPU time"):
                limit.of(endless)(pod(gpu()), decision_input())  # type: ignore[arg-type]
        assert limit.of(decide)(pod(gpu()), busy_decision_input()).allowed


def _grow(_pod: PodManifest, _decision_input: DecisionInput) -> Decision:
    texts = [str(number) * (1 << 20) for number in range(GIVE_UP_BYTES >> 20)]
    raise AssertionError(f"not ended: {len(texts)}")


def test_a_decision_that_needs_much_memory_is_ended() -> None:
    """The next pod is decided."""
    limit = DecisionLimits(max_bytes=LIMIT_BYTES)
    with limit.enforced():
        for _ in range(2):
            with pytest.raises(MemoryError, match="more than 32 MiB of memory"):
                limit.of(_grow)(pod(gpu()), decision_input())
        assert limit.of(decide)(pod(gpu()), busy_decision_input()).allowed


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_the_largest_pods_need_half_of_the_memory(family: Family) -> None:
    """The limit is there for defects alone."""
    manifest = json.loads(json.dumps(family(LARGE)))
    decide(manifest, busy_decision_input())  # fills the caches
    tracemalloc.start()
    try:
        decide(manifest, busy_decision_input())
        assert tracemalloc.get_traced_memory()[1] < MAX_DECISION_BYTES // 2
    finally:
        tracemalloc.stop()


def test_where_the_size_is_unknown_memory_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside Linux, CPU time alone has one."""
    monkeypatch.setattr(decision_limits, "_sizes_file", lambda: None)
    limit = DecisionLimits(LIMIT, max_bytes=0)
    with limit.enforced(), pytest.raises(CpuTimeError):
        limit.of(_spin)(pod(gpu()), decision_input())


def test_without_proc_the_size_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then there is no file to read."""
    monkeypatch.setattr(decision_limits, "_SIZES", "/proc/none")
    assert decision_limits._sizes_file.__wrapped__() is None


def test_the_limit_ends_with_the_decision() -> None:
    """What the event loop does between decisions has no limit, and afterwards no signal either."""
    limit = DecisionLimits(LIMIT)
    with limit.enforced():
        limit.of(decide)(pod(gpu()), busy_decision_input())
        assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
        signal.raise_signal(signal.SIGPROF)
        with pytest.raises(CpuTimeError):
            limit.of(_spin_twice)(pod(gpu()), decision_input())
    assert signal.getsignal(signal.SIGPROF) == signal.SIG_DFL


def test_time_of_other_threads_does_not_count() -> None:
    """The timer counts the time of all threads, and TLS handshakes may take most of it."""
    limit = DecisionLimits(LIMIT)

    def beside(manifest: PodManifest, given: DecisionInput) -> Decision:
        for _ in range(3):
            thread = Thread(target=_burn, args=(LIMIT,))
            thread.start()
            thread.join()
        return decide(manifest, given)

    with limit.enforced():
        assert limit.of(beside)(pod(gpu()), busy_decision_input()).allowed


def _burn(seconds: float) -> None:
    end = thread_time() + seconds
    while thread_time() < end:
        pass


def test_without_signals_there_is_no_limit() -> None:
    """A server in a thread cannot handle them; a timer without a handler would end the process."""
    limit = DecisionLimits(LIMIT)

    def slow(manifest: PodManifest, given: DecisionInput) -> Decision:
        _burn(2 * LIMIT)
        return decide(manifest, given)

    assert limit.of(slow)(pod(gpu()), busy_decision_input()).allowed
