from __future__ import annotations

import re
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.waiting import until
from webhook.errors import ClusterError
from webhook.kube import events as owner_events
from webhook.kube import notice_queue
from webhook.kube.events import (
    REMEMBERED,
    OwnerEvents,
    WithoutRdma,
    name_of,
    owner_event,
)
from webhook.kube.notice_queue import PENDING
from webhook.model.pod import OwnerReference

JOB = WithoutRdma(
    OwnerReference("batch/v1", "Job", "train", "7e57"), "lab", "NcclIbDisabled", "remove it"
)
API_SERVER = "192.0.2.1"
NOW = datetime(2026, 11, 21, 12, 0, 0, 5, tzinfo=UTC)


def named(name: str) -> WithoutRdma:
    """Return a notice for another Job."""
    return JOB._replace(owner=JOB.owner._replace(name=name))


class Api:
    """An API server that creates objects, after these failures."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.created: list[tuple[str, dict[str, Any]]] = []
        self.asked = threading.Event()
        self.open = threading.Event()
        self.open.set()

    def read(self, path: str) -> None:
        """Fail: only Events about the configuration need it."""
        raise AssertionError(path)

    def create(self, path: str, body: dict[str, Any]) -> bool:
        """Create an object."""
        self.asked.set()
        assert self.open.wait(300)
        if self.failures:
            raise self.failures.pop(0)
        self.created.append((path, body))
        return True


def test_an_event_is_about_the_owner() -> None:
    """The event is in the owner's namespace, for `kubectl describe job`."""
    assert owner_event(JOB, "rdma-webhook-x", NOW) == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name_of(JOB), "namespace": "lab"},
        "eventTime": "2026-11-21T12:00:00.000005Z",
        "type": "Warning",
        "reason": "NoRDMA",
        "action": "Admit",
        "note": "its pods will have no RDMA (NcclIbDisabled): remove it",
        "reportingController": "rdma.lab/webhook",
        "reportingInstance": "rdma-webhook-x",
        "regarding": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": "train",
            "namespace": "lab",
            "uid": "7e57",
        },
    }


def test_an_owner_known_by_name_has_no_uid() -> None:
    """The field is left out."""
    above = JOB._replace(owner=JOB.owner._replace(uid=""))
    assert "uid" not in owner_event(above, "x", NOW)["regarding"]


def test_the_name_says_whether_it_is_the_same_event() -> None:
    """Another owner, namespace or reason makes another event; another sentence does not."""
    assert name_of(JOB) == name_of(JOB._replace(message="so"))
    variants = [
        *(
            JOB._replace(owner=JOB.owner._replace(**{field: "x"}))
            for field in OwnerReference._fields[1:]
        ),
        JOB._replace(namespace="x"),
        JOB._replace(code="x"),
    ]
    assert len({name_of(notice) for notice in (JOB, *variants)}) == 6
    assert re.fullmatch("rdma-webhook[.][0-9a-f]{3}", name_of(JOB))


def test_each_owner_gets_a_single_event() -> None:
    """Any number of pods of a Job make one event."""
    api, lost = Api(), list[str]()
    events = OwnerEvents("x", lambda: api, lost.append)
    for _ in range(3):
        events.tell(JOB, API_SERVER)
    events.tell(named("other"), API_SERVER)
    until(lambda: len(api.created) == 2)
    paths, bodies = zip(*api.created, strict=True)
    assert set(paths) == {"/apis/events.k8s.io/v1/namespaces/lab/events"}
    assert [body["regarding"]["name"] for body in bodies] == ["train", "other"]
    assert {body["reportingInstance"] for body in bodies} == {"x"}
    assert all(datetime.fromisoformat(body["eventTime"]).tzinfo for body in bodies)
    assert lost == []


def test_a_failed_event_is_logged() -> None:
    """The next event is still created."""
    api, lost = Api(ClusterError("forbidden"), ValueError("ours")), list[str]()
    events = OwnerEvents("x", lambda: api, lost.append)
    for name in "abc":
        events.tell(named(name), API_SERVER)
    until(lambda: len(api.created) == 1)
    assert lost == ["forbidden", "internal error: ValueError"]


def test_nobody_waits_for_an_api_server_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limited number of events waits; more of the same namespace are lost, and reported."""
    monkeypatch.setattr(notice_queue, "INTERVAL", 0.0)
    api, lost, room = Api(), list[str](), PENDING
    api.open.clear()
    events = OwnerEvents("x", lambda: api, lost.append)
    events.tell(named("first"), API_SERVER)
    assert api.asked.wait(300)
    for number in range(room + 2):
        events.tell(named(f"n{number}"), API_SERVER)
    assert lost == ["too many notices are waiting; namespace: lab"] * 2
    api.open.set()
    until(lambda: len(api.created) == room + 1)
    events.tell(named(f"n{room}"), API_SERVER)  # what was lost may be told later
    until(lambda: len(api.created) == room + 2)


@pytest.mark.parametrize("other_part", ["namespace", "address"])
def test_each_namespace_and_address_has_room(
    monkeypatch: pytest.MonkeyPatch, other_part: str
) -> None:
    """An event of another namespace, or by another client, is created while one has too many."""
    monkeypatch.setattr(notice_queue, "INTERVAL", 0.0)
    api, lost = Api(), list[str]()
    api.open.clear()
    events = OwnerEvents("x", lambda: api, lost.append)
    events.tell(named("first"), API_SERVER)
    assert api.asked.wait(300)
    for number in range(PENDING):
        events.tell(named(f"n{number}"), API_SERVER)
    assert lost == []
    other = named("other")._replace(namespace="elsewhere" if other_part == "namespace" else "lab")
    events.tell(other, API_SERVER if other_part == "namespace" else "192.0.2.2")
    assert lost == ["too many notices are waiting; namespace: lab"]
    api.open.set()
    until(lambda: len(api.created) == PENDING + 1)
    assert "other" in [body["regarding"]["name"] for _, body in api.created]
    events.tell(named(f"n{PENDING - 1}"), API_SERVER)  # the notice that was dropped
    until(lambda: len(api.created) == PENDING + 2)


def test_only_the_latest_are_remembered(monkeypatch: Any) -> None:
    """Memory is limited; an owner with a steady stream of pods is not forgotten."""
    assert REMEMBERED > PENDING
    monkeypatch.setattr(owner_events, "REMEMBERED", 2)
    api, lost = Api(), list[str]()
    events = OwnerEvents("x", lambda: api, lost.append)
    for name in ("a", "b", "a", "c", "a", "b"):
        events.tell(named(name), API_SERVER)
    until(lambda: len(api.created) == 4)
    assert [body["regarding"]["name"] for _, body in api.created] == ["a", "b", "c", "b"]


def test_a_namespace_leads_to_no_other_path() -> None:
    """A stranger's review may name any, and the Event is created with the webhook's account."""
    api = Api()
    created = owner_event(JOB._replace(namespace="../secrets?"), "rdma-webhook-x", NOW)
    assert owner_events.EventApi(lambda: api).create(created) == ""
    assert [path for path, _ in api.created] == [
        "/apis/events.k8s.io/v1/namespaces/..%252Fsecrets%253F/events"
    ]
