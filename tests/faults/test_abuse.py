"""Abuse of a replica's port while others create pods, and its effect on them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from math import inf
from typing import Self

import pytest

from tests.cluster.install import Webhook, add_samples
from tests.e2e.installed.calls import WEBHOOK
from tests.e2e.live.replica import Replica, replicas
from tests.faults import abuse
from tests.faults.abuse import Abused
from tests.faults.conftest import Figure, Load
from tests.faults.counts import check_none_lost
from tests.faults.replicas import processes
from tests.faults.scale import SCALE

_TOOK = "apiserver_admission_webhook_admission_duration_seconds"
#: The Deployment's limit is 1 GiB.
MEMORY = 400 << 20
#: The kinds of abuse, with the number of connections to each of the two replicas.
ABUSES: dict[str, tuple[Callable[[str, int], AbstractContextManager[Abused]], int]] = {
    "slow clients": (abuse.slow, SCALE.slow),
    "idle connections": (abuse.idle, SCALE.idle),
    "half-open TLS": (abuse.half_open, SCALE.idle),
    "7.9 MiB reviews": (abuse.large, 1),
    "64 in flight": (abuse.crowd, 32),
}


@pytest.mark.parametrize("case", ABUSES)
def test_others_hardly_notice(webhook: Webhook, load: Load, figure: Figure, case: str) -> None:
    """While both replicas are abused, no pod of others fails, and memory is bounded.

    So no call takes the five seconds after which the API server gives up. The figure is the time
    within which 99% of the calls are answered, by the buckets of the API server's metric. The time
    for a whole pod is shown next to it, since the API server's own work takes time, too.
    """
    running = processes(webhook)
    begin, count = ABUSES[case]
    targets = replicas(webhook)
    with load() as usual:
        usual.continue_for(1)
    before = _calls(webhook)
    with ExitStack() as stack:
        abused = [stack.enter_context(begin(replica.address, count)) for replica in targets]
        memory = stack.enter_context(_Watched(targets))
        creations = stack.enter_context(load())
        creations.continue_for(SCALE.abuse)
    calls = _calls(webhook) - before
    measured = check_none_lost(creations)
    without = f"{usual.p99 * 1000:.0f} ms just before"
    peak = f"{memory.peak / (1 << 20):.0f} MiB at most"
    assert processes(webhook) == running
    bound = min(seconds for seconds in calls if calls[seconds] >= 0.99 * calls[inf])
    answered = f"{calls[inf]} calls, p99 at most {bound:g} s"
    figure(case, f"{' + '.join(map(str, abused))}; {peak}; {answered}; {measured}, {without}")
    assert memory.peak < MEMORY
    assert calls[inf] > 0


def _calls(webhook: Webhook) -> Counter[float]:
    """Return the number of calls answered within each number of seconds; inf has all calls."""
    text = webhook.read("/metrics")
    lines = [line for line in text.splitlines() if line.startswith(_TOOK)]
    counts: Counter[tuple[str, ...]] = Counter()
    add_samples(counts, "\n".join(lines) + "\n", f"{_TOOK}_bucket", ("le",), name=WEBHOOK)
    return Counter({float(le): count for (le,), count in counts.items()})


class _Watched(AbstractContextManager["_Watched"]):
    """Reads the replicas' memory every second."""

    def __init__(self, watched: list[Replica]) -> None:
        self._watched = watched
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)
        #: The largest memory of a replica, in bytes.
        self.peak = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _look(self) -> None:
        while True:
            for replica in self._watched:
                self.peak = max(self.peak, replica.cost().resident_bytes)
            if self._stop.wait(1):
                return
