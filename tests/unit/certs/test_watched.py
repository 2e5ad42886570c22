"""Rounds of a replica whose objects are watched: few, and never too few."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from certs.durations import Durations
from certs.errors import ApiError
from certs.self_managed import SelfManaged
from certs.serving import ServingContext
from tests.unit.certs.clocks import Ticking
from tests.unit.certs.objects import INSTALLATION, SECRET, Objects
from tests.waiting import until

DAY = 86400
RESYNC = Durations().resync.total_seconds()


class Counted(Objects):
    """Objects whose reads are counted."""

    reads = 0

    def read(self, path: str) -> dict[str, Any] | None:
        """Count a read."""
        self.reads += 1
        return super().read(path)


class ManualWatch:
    """A watch whose changes a test reports."""

    def __init__(self) -> None:
        self.current = True
        self.stopped = False
        self.changed: Callable[[], None] = lambda: None

    def start(self, changed: Callable[[], None]) -> None:
        """Keep the function."""
        self.changed = changed

    def stop(self) -> None:
        """Record it."""
        self.stopped = True


class Watched:
    """A replica, its API server, and the watch between them."""

    def __init__(self) -> None:
        self.api, self.clock, self.watch = Counted(), Ticking(), ManualWatch()
        self.api.configure()
        serving = ServingContext(clock=self.clock)
        self.managed = SelfManaged(
            INSTALLATION, serving, lambda: self.api, clock=self.clock, watch=self.watch
        )
        self.watch.changed = self.managed.changed.set

    def rounds(self, seconds: float) -> int:
        """Let time pass, with a look every five seconds; return the number of rounds."""
        return sum(self._looks(seconds))

    def _looks(self, seconds: float) -> Iterator[bool]:
        for _ in range(int(seconds / 5)):
            self.clock.tick(5)
            if due := self.managed.due:
                self.managed.attempt()
            yield due

    def ask(self, requested: str = "rotate") -> None:
        """Request a rotation, and report the change."""
        metadata = self.api.stored[SECRET]["metadata"]
        metadata["annotations"] = {**metadata.get("annotations", {}), "rdma.lab/rotate": requested}
        metadata["resourceVersion"] += "'"
        self.watch.changed()


@pytest.fixture
def watched() -> Watched:
    """Return a replica that has done its first round."""
    replica = Watched()
    assert replica.managed.due
    assert replica.managed.attempt()
    return replica


def test_while_nothing_happens_little_is_read(watched: Watched) -> None:
    """Three reads in about two minutes, and not in five seconds."""
    before = watched.api.reads
    rounds = watched.rounds(3600)
    assert 3600 / RESYNC - 1 <= rounds <= 3600 / (0.8 * RESYNC) + 1
    assert watched.api.reads - before == 3 * rounds


def test_a_change_is_read_at_once(watched: Watched) -> None:
    """Once, whatever it was."""
    watched.clock.tick(1)  # a write waits for that
    watched.api.configure("")
    watched.watch.changed()
    assert watched.managed.due
    assert watched.managed.attempt()
    assert b64decode(watched.api.bundle) == b64decode(watched.api.stored[SECRET]["data"]["ca.crt"])
    assert not watched.managed.due


def test_a_change_during_a_round_is_for_the_next_one(watched: Watched) -> None:
    """The round may have read the object before."""

    def read(path: str) -> dict[str, Any] | None:
        watched.watch.changed()
        return Counted.read(watched.api, path)

    watched.api.read = read  # type: ignore[method-assign]
    watched.managed.attempt()
    assert watched.managed.due


def test_a_lost_change_is_repaired(watched: Watched) -> None:
    """It is repaired with a delay, which is shorter than a drain."""
    del watched.api.stored[SECRET]
    watched.rounds(RESYNC + 5)
    assert SECRET in watched.api.stored
    assert Durations().resync < Durations().drain


def test_without_a_watch_each_round_reads(watched: Watched) -> None:
    """This happens while the API server is unreachable, or if RBAC does not allow watching."""
    watched.watch.current = False
    assert watched.rounds(60) == 12
    assert not watched.managed.watched
    watched.watch.current = True
    assert watched.rounds(60) == 0


def test_what_failed_is_tried_again(watched: Watched) -> None:
    """Without waiting for a change."""
    watched.api.broken = ApiError("gone")
    watched.watch.changed()
    assert watched.rounds(60) == 12
    watched.api.broken = None
    assert watched.rounds(60) == 1


def test_the_leaf_is_renewed_by_time(watched: Watched) -> None:
    """No change of an object triggers this."""
    before = watched.managed.status.not_after
    watched.clock.tick(16 * 3600)
    watched.managed._resync = watched.clock.monotonic() + DAY
    assert watched.managed.due
    watched.managed.attempt()
    assert watched.managed.status.not_after != before
    watched.managed._resync = watched.clock.monotonic() + DAY
    assert not watched.managed.due


def test_the_ca_is_replaced_by_time(watched: Watched) -> None:
    """So is the next CA, two thirds through the year of the first."""
    watched.clock.tick(244 * DAY)
    watched.managed._resync = watched.clock.monotonic() + DAY
    assert watched.managed.due
    watched.managed.attempt()
    assert watched.managed.status.phase == "publishing"


@pytest.mark.parametrize(
    ("requested", "drain"), [("rotate", 24 * 3600 + 90), ("revoke", 225)], ids=["rotate", "revoke"]
)
def test_a_rotation_takes_no_longer(watched: Watched, requested: str, drain: int) -> None:
    """Its steps come in time, and during the day between two of them little is read."""
    watched.ask(requested)
    watched.rounds(5)
    assert watched.managed.status.phase == "publishing"
    watched.rounds(120 + 5)
    assert watched.managed.status.phase == "draining"
    watched.rounds(drain - 10)
    assert watched.managed.status.phase == "draining"
    rounds = watched.rounds(225 + 30)
    assert watched.managed.status.phase == "settled"
    assert rounds <= 255 / 5
    if requested == "rotate":
        watched.ask()
        watched.rounds(200)
        assert watched.rounds(3600) <= 3600 / (0.8 * RESYNC) + 1


def test_the_thread_wakes_up_for_a_change() -> None:
    """With an hour between two looks, it still does a round; and it ends at once."""
    api, watch = Counted(), ManualWatch()
    durations = Durations(round_interval=timedelta(hours=1), leaf=timedelta(hours=6))
    managed = SelfManaged(INSTALLATION, ServingContext(), lambda: api, durations, watch=watch)
    api.configure()
    managed.start()
    until(lambda: managed.status.trusted)
    del api.stored[SECRET]
    watch.changed()
    until(lambda: SECRET in api.stored)
    managed.stop()
    managed._thread.join(60)
    assert (managed._thread.is_alive(), watch.stopped) == (False, True)
