from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.builders import fabrics
from webhook.config.findings import Truncation
from webhook.config.load import FabricsText, LoadedConfiguration
from webhook.config.replica_reports import (
    LIVE,
    REFRESH,
    ReplicaReport,
    live_reports,
    replica_reports,
)
from webhook.errors import ClusterError
from webhook.serve.sources.configuration_object import ObservedObject
from webhook.serve.status.own_part import OwnPart
from webhook.serve.status.replicas import EXPIRY, expired

START = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)
SPEC = {"fabrics": [{"name": "v100-ib"}]}
LOADED = LoadedConfiguration(fabrics(), (), FabricsText(""), Truncation())
REPORT = ReplicaReport("0123456789ab", 3, "1.0")


class Pod:
    """A replica, with an API server that records merge patches; the test delivers its objects."""

    def __init__(self) -> None:
        self.now = START
        self.report = REPORT
        self.holds = False
        self.failure = ""
        self.merged: list[dict[str, Any]] = []
        self.accepted = True
        self.observed: ObservedObject | None = ObservedObject(3, LOADED, "", SPEC, {}, "17")
        self.part = OwnPart("me", lambda: self.observed, lambda: self.report, lambda: self.now)

    def is_writer(self) -> bool:
        """Return whether it writes the holder's part."""
        return self.holds

    def read(self, path: str) -> None:
        """Fail: the watch delivers the object."""
        raise AssertionError(path)

    def apply(self, path: str, body: dict[str, Any]) -> bool:
        """Fail: the holder applies."""
        raise AssertionError((path, body))

    def merge(self, path: str, body: dict[str, Any]) -> bool:
        """Record a patch."""
        assert path == "/apis/rdma.lab/v1alpha1/fabricconfigurations/default/status"
        if self.failure:
            raise ClusterError(self.failure)
        self.merged.append(body)
        return self.accepted

    def write(self, **minutes: float) -> list[dict[str, Any]]:
        """Let time pass and write; return the patches of `replicas` and `kept`."""
        self.now += timedelta(**minutes)
        self.merged.clear()
        self.part.write(self, self)
        return [patch["status"] for patch in self.merged]

    def deliver(self, **status: Any) -> None:
        """Deliver a stored status by the watch."""
        assert self.observed is not None
        self.observed = self.observed._replace(status=status)


def entry(report: ReplicaReport = REPORT, seen: datetime = START) -> dict[str, Any]:
    """Return an entry as it is stored."""
    return {**report._asdict(), "seen": f"{seen:%Y-%m-%dT%H:%M:%SZ}"}


def test_a_replica_writes_its_entry_at_each_change() -> None:
    """It does so at once, and again before the entry is old or if somebody removed it."""
    replica = Pod()
    kept, own = replica.write()
    assert own == {"replicas": {"me": entry()}}
    assert replica.write(seconds=1) == []
    replica.report = REPORT._replace(generation=4)
    (own,) = replica.write(seconds=1)
    stored = {"me": entry(replica.report, replica.now)}
    assert own == {"replicas": stored}
    replica.deliver(replicas=stored, **kept)
    assert replica.write(seconds=299) == []
    assert replica.write(seconds=1) == [{"replicas": {"me": entry(replica.report, replica.now)}}]
    replica.deliver(replicas={}, **kept)
    assert replica.write(seconds=9.9) == []
    assert len(replica.write(seconds=0.1)) == 1


def test_an_entry_that_was_not_stored_is_written_again() -> None:
    """The object may be missing for a moment."""
    replica = Pod()
    replica.accepted = False
    replica.write()
    replica.accepted = True
    assert replica.write(seconds=1) == [{"replicas": {"me": entry(seen=replica.now)}}]


def test_the_holder_removes_entries_of_pods_that_are_gone() -> None:
    """Their replicas were killed; an entry of an unknown form has no age."""
    replica = Pod()
    old, recent = START - EXPIRY - timedelta(seconds=1), START - EXPIRY
    stored = {"me": entry(), "old": entry(seen=old), "recent": entry(seen=recent), "odd": 3}
    replica.deliver(replicas=stored, kept=[KEPT])
    assert replica.write() == []
    replica.holds = True
    assert replica.write() == [{"replicas": {"old": None, "odd": None}}]


@pytest.mark.parametrize(
    "odd",
    [
        None,
        3,
        {},
        {"seen": 3},
        {**entry(), "seen": "yesterday"},
        {**entry(), "seen": "9999-12-31T23:59:59-23:00"},
        {**entry(), "seen": "0001-01-01T00:00:00+23:00"},
        {**entry(), "seen": "9999-12-31T23:59:59Z"},
        {**entry(), "generation": "x"},
        {**entry(), "config": 3},
        {**entry(), "version": []},
        {"seen": entry()["seen"]},
    ],
    ids=str,
)
def test_an_entry_of_an_unknown_form_does_not_count(odd: Any) -> None:
    """Another version may have written it."""
    stored = replica_reports({"replicas": {"odd": odd, "me": entry()}})
    assert live_reports(stored, START) == {"me": REPORT}
    assert expired(stored, START) == ["odd"]


@pytest.mark.parametrize("status", [{}, {"replicas": None}, {"replicas": [1]}], ids=str)
def test_without_entries_there_are_no_reports(status: Any) -> None:
    """The first replica finds none."""
    assert replica_reports(status) == {}


def test_a_replica_counts_for_six_minutes() -> None:
    """It writes each five."""
    assert REFRESH < LIVE < EXPIRY
    stored = replica_reports({"replicas": {"me": entry()}})
    assert live_reports(stored, START + LIVE) == {"me": REPORT}
    assert live_reports(stored, START + LIVE + timedelta(seconds=1)) == {}


KEPT = {"generation": 3, "config": "0123456789ab", "spec": SPEC}
BEFORE = {"generation": 2, "config": "ba9876543210", "spec": {"fabrics": []}}
FIRST = {"generation": 1, "config": "c", "spec": {"fabrics": [], "nvlink": {}}}


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ([], [KEPT]),
        ([BEFORE], [KEPT, BEFORE]),
        ([BEFORE, FIRST], [KEPT, BEFORE]),
        ([KEPT, BEFORE], None),
        ([{**KEPT, "generation": 2}, BEFORE], None),
        ([BEFORE, KEPT], [KEPT, BEFORE]),
        (None, [KEPT]),
        ([3, {}, {**BEFORE, "spec": None}, BEFORE], [KEPT, BEFORE]),
    ],
    ids=str,
)
def test_a_usable_spec_is_kept(stored: Any, expected: Any) -> None:
    """It becomes the first of two entries, if the object is still the one that was read."""
    replica = Pod()
    replica.deliver(kept=stored, replicas={"me": entry()})
    assert replica.write() == ([{"kept": expected}] if expected else [])
    for patch in replica.merged:
        assert patch["metadata"] == {"resourceVersion": "17"}


def test_a_spec_that_cannot_be_used_is_not_kept() -> None:
    """The kept ones are for this moment."""
    replica = Pod()
    replica.observed = ObservedObject(4, None, "wrong", SPEC, {"kept": [BEFORE]}, "18")
    assert replica.write() == [{"replicas": {"me": entry()}}]


def test_a_failed_write_is_repeated() -> None:
    """Until then the object is compared once for each change of it."""
    replica = Pod()
    replica.failure = "cannot reach it"
    with pytest.raises(ClusterError):
        replica.write()
    replica.part.forget()
    replica.failure = ""
    assert replica.write()[0] == {"kept": [KEPT]}
    assert replica.write(seconds=1) == []


def test_without_an_object_there_is_nothing_to_write() -> None:
    """Its status would have no place."""
    replica = Pod()
    replica.observed = None
    assert replica.write() == []


def test_a_replica_that_stops_removes_its_entry() -> None:
    """Nobody waits for it then."""
    replica = Pod()
    replica.part.leave(replica)
    assert replica.merged == [{"metadata": {}, "status": {"replicas": {"me": None}}}]
