from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.waiting import until
from webhook.errors import ClusterError
from webhook.serve.status import writer as status_writer
from webhook.serve.status.content import Condition, StatusUpdate
from webhook.serve.status.writer import PATH, WRITE_INTERVAL, HoldersPart, StatusWriter

FABRICS = "/apis/rdma.lab/v1alpha1/fabricconfigurations"
VALID = Condition("Valid", True, "Accepted", "all is well")
#: What `VALID` has in common with the stored condition.
TRUE = {"type": "Valid", "status": "True"}
BROKEN = Condition("Valid", False, "NotUsable", "spec.fabrics[0]: wrong")


class Replica:
    """A writer, with a Lease and an API server that a test sets."""

    def __init__(self, stored: dict[str, Any] | None = None) -> None:
        self.holds = True
        #: The number of changes of the stored status, and whether the watch delivers it.
        self.version = 0
        self.stored = stored or {}
        self.delivers = True
        self.written: list[dict[str, Any]] = []
        self.update: StatusUpdate | None = StatusUpdate(3, (VALID,), {"nodes": 4})
        self.problems: list[str] = []
        self.failure: Exception | None = None
        self.there = True
        self.minute = 0
        self.seconds = 100.0
        part = HoldersPart(self._content, lambda: self.seconds, self._now)
        self.writer = StatusWriter(lambda: (self, self), [part], self.problems.append)

    @property
    def stored(self) -> dict[str, Any]:
        """The stored status."""
        return self._stored

    @stored.setter
    def stored(self, status: dict[str, Any]) -> None:
        self.version += 1
        self._stored = status

    def _content(self) -> StatusUpdate | None:
        return self.update and self.update._replace(stored=self.stored, version=str(self.version))

    def step(self) -> bool:
        """Let the minimum time between two writes pass; return whether writing succeeded."""
        self.seconds += WRITE_INTERVAL
        return self.writer.attempt() == status_writer.TICK

    def _now(self) -> datetime:
        return datetime(2026, 11, 23, 10, self.minute, tzinfo=UTC)

    def is_writer(self) -> bool:
        """Return whether it is the writer."""
        return self.holds

    def apply(self, path: str, body: dict[str, Any]) -> bool:
        """Record a write."""
        assert path == PATH == f"{FABRICS}/default/status"
        if self.failure:
            raise self.failure
        assert body["apiVersion"] == "rdma.lab/v1alpha1"
        assert (body["kind"], body["metadata"]) == ("FabricConfiguration", {"name": "default"})
        if self.there:
            self.written.append(body["status"])
        if self.there and self.delivers:
            self.stored = body["status"]
        return self.there

    def merge(self, path: str, body: dict[str, Any]) -> bool:
        """Fail: the holder applies its part."""
        raise AssertionError((path, body))


def test_the_holder_writes_changes() -> None:
    """It writes once for each update. The time of a condition is its last transition."""
    replica = Replica()
    replica.step()
    replica.minute = 1
    replica.step()
    first = {
        "type": "Valid",
        "status": "True",
        "observedGeneration": 3,
        "lastTransitionTime": "2026-11-23T10:00:00Z",
        "reason": "Accepted",
        "message": "all is well",
    }
    assert replica.written == [{"observedGeneration": 3, "conditions": [first], "nodes": 4}]
    replica.update = StatusUpdate(4, (VALID,), {"nodes": 5})
    replica.step()
    assert replica.written[1] == {
        "observedGeneration": 4,
        "conditions": [{**first, "observedGeneration": 4}],
        "nodes": 5,
    }
    replica.update = StatusUpdate(5, (BROKEN,), {})
    replica.step()
    (condition,) = replica.written[2]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "NotUsable")
    assert condition["lastTransitionTime"] == "2026-11-23T10:01:00Z"


def test_without_the_lease_nothing_is_written() -> None:
    """Another replica may write meanwhile."""
    replica = Replica()
    replica.holds = False
    replica.step()
    assert replica.written == []
    replica.holds = True
    replica.step()
    replica.holds = False
    replica.step()
    replica.holds = True
    replica.stored = {"nodes": 9}
    replica.step()
    assert [fields["nodes"] for fields in replica.written] == [4, 4]


def test_a_new_holder_continues_from_the_stored_status() -> None:
    """Equal content is not written again, and the times of conditions stay."""
    first = Replica()
    first.step()
    second = Replica(first.written[0])
    second.minute = 30
    second.step()
    assert second.written == []
    second.update = StatusUpdate(4, (VALID,), {"nodes": 4})
    second.step()
    (condition,) = second.written[0]["conditions"]
    assert condition["lastTransitionTime"] == "2026-11-23T10:00:00Z"


@pytest.mark.parametrize(
    "stored", [None, {}, {"conditions": None}, {"conditions": 3, "nodes": []}], ids=str
)
def test_an_object_without_a_status_gets_a_status(stored: Any) -> None:
    """This holds whatever is in its place."""
    replica = Replica(stored)
    replica.step()
    assert len(replica.written) == 1


@pytest.mark.parametrize(
    "before",
    [
        *(None, 3, {}, "", "2026-11-23T09:00:00+02:00", "2026-11-31T09:00:00Z"),
        *("1999-11-23T09:00:00Z", "2100-11-23T09:00:00Z", "2026-11-23T09:00:00Z\n"),
    ],
    ids=str,
)
def test_a_time_of_another_form_is_replaced(before: object) -> None:
    """The policy rdma-webhook-guard-status would refuse it, and so the whole status."""
    replica = Replica({"conditions": [{**TRUE, "lastTransitionTime": before}]})
    replica.step()
    (condition,) = replica.written[0]["conditions"]
    assert condition["lastTransitionTime"] == "2026-11-23T10:00:00Z"


@pytest.mark.parametrize("year", [2000, 2099])
def test_a_condition_of_any_form_may_be_stored(year: int) -> None:
    """The definition allows any; the time of the one of the same type and status stays."""
    stored = {**TRUE, "lastTransitionTime": f"{year}-01-01T00:00:00Z"}
    different = [{**stored, "type": []}, {**stored, "status": "False"}]
    replica = Replica({"conditions": [3, None, [], {}, *different, stored]})
    replica.step()
    (condition,) = replica.written[0]["conditions"]
    assert condition["lastTransitionTime"] == stored["lastTransitionTime"]


def test_without_an_object_there_is_nothing_to_write() -> None:
    """It may be deleted at any moment; a new one gets its status."""
    replica = Replica()
    replica.update = None
    replica.step()
    assert replica.written == []
    replica.update, replica.there = StatusUpdate(1, (VALID,), {}), False
    replica.step()
    replica.there = True
    replica.step()
    assert len(replica.written) == 1
    assert not any(replica.problems)


def test_a_status_that_somebody_changed_is_written_again() -> None:
    """So it is after a deletion: the content of a new object may equal that of the one before."""
    replica = Replica()
    for changed in ({}, {"nodes": 7}, {}):
        replica.stored = changed
        replica.written.clear()
        replica.step()
        replica.step()
        assert [status["nodes"] for status in replica.written] == [4]


def test_a_false_status_that_comes_back_is_replaced_again() -> None:
    """Also within the minimum time between two writes, when its repair goes unnoticed."""
    replica = Replica()
    replica.step()
    false = {**replica.written[0], "nodes": 0}
    for _ in range(3):
        replica.stored = false
        replica.step()
    assert replica.written == [replica.written[0]] * 4


def test_a_field_that_is_not_stored_is_written_twice_at_most() -> None:
    """An older definition of the kind drops it; without a watch, nothing is known."""
    replica = Replica()
    replica.delivers = False
    for _ in range(3):
        replica.step()
    assert len(replica.written) == 1
    replica.stored = {**replica.written[0]}
    del replica.stored["nodes"]
    for _ in range(3):
        replica.step()
    assert len(replica.written) == 2


def test_a_problem_is_reported_and_is_not_the_end() -> None:
    """An internal error has only its type; the next attempt may succeed."""
    replica = Replica()
    replica.failure = ClusterError("cannot reach it")
    assert not replica.step()
    replica.failure = ValueError("secret")
    assert not replica.step()
    assert replica.problems == ["cannot reach it", "internal error: ValueError"]
    replica.failure = None
    assert replica.step()
    assert replica.problems[2:] == [""]
    assert len(replica.written) == 1


def test_it_works_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread ends with the source."""
    monkeypatch.setattr(status_writer, "TICK", 0.01)
    replica = Replica()
    replica.writer.start()
    until(lambda: bool(replica.written))
    replica.writer.stop()
    replica.writer._periodic._thread.join(20)


def test_a_connection_that_fails_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """The credentials may be unreadable at first."""
    monkeypatch.setattr(status_writer, "TICK", 0.01)
    problems: list[str] = []

    def connect() -> Any:
        raise ClusterError("no token")

    writer = StatusWriter(connect, [], problems.append)
    writer.start()
    until(lambda: problems == ["no token"])  # the next attempt follows after WRITE_INTERVAL
    writer.stop()
    writer._periodic._thread.join(20)
    assert not writer._periodic._thread.is_alive()


def test_the_holder_writes_at_most_once_in_ten_seconds() -> None:
    """Nodes may change a hundred times a second; the last change is written."""
    replica = Replica()
    replica.step()
    replica.update = StatusUpdate(3, (VALID,), {"nodes": 5})
    replica.seconds += WRITE_INTERVAL - 0.1
    replica.writer.attempt()
    assert [status["nodes"] for status in replica.written] == [4]
    replica.seconds += 0.1
    replica.writer.attempt()
    assert [status["nodes"] for status in replica.written] == [4, 5]


def test_a_condition_may_be_unknown() -> None:
    """It is neither true nor false."""
    replica = Replica()
    replica.update = StatusUpdate(3, (Condition("Called", None, "NotReadable", "no right"),), {})
    replica.step()
    assert replica.written[0]["conditions"][0]["status"] == "Unknown"


def test_the_parts_of_the_replicas_are_not_the_holders() -> None:
    """They do not make a stored status differ from the holder's."""
    first = Replica()
    first.step()
    second = Replica({**first.written[0], "kept": [], "replicas": {}})
    second.step()
    assert second.written == []
