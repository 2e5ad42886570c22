"""The limit on the CPU time of a decision."""

from __future__ import annotations

import re
import signal
from threading import Thread
from time import thread_time

import pytest

from tests.builders import decision_input, gpu, pod
from tests.families import busy_decision_input
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.model.decision import Decision
from webhook.model.pod import PodManifest
from webhook.serve.cpu_limit import CpuLimit, CpuTimeError

#: Seconds of CPU; an ordinary decision takes a hundredth of it, the first of a process included.
LIMIT = 0.5
#: Seconds of CPU after which a loop gives up, so that a failed test ends.
GIVE_UP = 20.0
#: A pattern and a text that it would search for years.
ENDLESS = re.compile(r"(?:a+)+b"), "a" * 64


def _spin(_pod: PodManifest, _decision_input: DecisionInput) -> Decision:
    end = thread_time() + GIVE_UP
    while thread_time() < end:
        pass
    raise AssertionError("not ended")


def _search(_pod: PodManifest, _decision_input: DecisionInput) -> Decision:
    pattern, text = ENDLESS
    pattern.search(text)
    raise AssertionError("not ended")


@pytest.mark.parametrize("endless", [_spin, _search])
def test_a_decision_that_does_not_end_is_ended(endless: object) -> None:
    """Also within a single search, which is one step for Python; the next pod is decided."""
    limit = CpuLimit(LIMIT)
    with limit.enforced():
        for _ in range(2):
            with pytest.raises(CpuTimeError, match=f"more than {LIMIT} s of CPU time"):
                limit.of(endless)(pod(gpu()), decision_input())  # type: ignore[arg-type]
        assert limit.of(decide)(pod(gpu()), busy_decision_input()).allowed


def test_the_limit_ends_with_the_decision() -> None:
    """What the event loop does between decisions has no limit, and afterwards no signal either."""
    limit = CpuLimit(LIMIT)
    with limit.enforced():
        limit.of(decide)(pod(gpu()), busy_decision_input())
        assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
        signal.raise_signal(signal.SIGPROF)
    assert signal.getsignal(signal.SIGPROF) == signal.SIG_DFL


def test_time_of_other_threads_does_not_count() -> None:
    """The timer counts the time of all threads, and TLS handshakes may take most of it."""
    limit = CpuLimit(LIMIT)

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
    limit = CpuLimit(LIMIT)

    def slow(manifest: PodManifest, given: DecisionInput) -> Decision:
        _burn(2 * LIMIT)
        return decide(manifest, given)

    assert limit.of(slow)(pod(gpu()), busy_decision_input()).allowed
