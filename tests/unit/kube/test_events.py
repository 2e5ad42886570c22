from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

from tests.waiting import until
from webhook.errors import ClusterError
from webhook.kube.events import ATTEMPTS, MAX_NOTE_LENGTH, OwnPod, PodEvents, RecordedWarning, event

POD = OwnPod(name="rdma-webhook-x", namespace="rdma-webhook", uid="7e57")
BROKEN = RecordedWarning("ConfigurationNotUsable", "Load", "fabrics.yaml: line 3: no", "1")
PATH = "/apis/events.k8s.io/v1/namespaces/rdma-webhook/events"
NOW = datetime(2026, 11, 21, 12, 0, 0, 5, tzinfo=UTC)


class Api:
    """An API server that creates objects, after these failures."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.asked = 0
        self.created: list[tuple[str, dict[str, Any]]] = []
        self.open = threading.Event()
        self.open.set()

    def create(self, path: str, body: dict[str, Any]) -> bool:
        """Create an object."""
        self.asked += 1
        assert self.open.wait(20)
        if self.failures:
            raise self.failures.pop(0)
        self.created.append((path, body))
        return True


def events_on(api: Api, lost: list[str], pause: float = 0.0) -> PodEvents:
    """Return the events of a pod."""
    return PodEvents(POD, lambda: api, lambda: iter([pause] * 100), lost.append)


def test_an_event_is_about_the_pod() -> None:
    """The event is in the pod's namespace, as required by the API."""
    assert event(POD, BROKEN, NOW) == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "rdma-webhook-x.f55", "namespace": "rdma-webhook"},
        "eventTime": "2026-11-21T12:00:00.000005Z",
        "type": "Warning",
        "reason": "ConfigurationNotUsable",
        "action": "Load",
        "note": "fabrics.yaml: line 3: no",
        "reportingController": "rdma.lab/webhook",
        "reportingInstance": "rdma-webhook-x",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "rdma-webhook-x",
            "namespace": "rdma-webhook",
            "uid": "7e57",
        },
    }


def test_the_name_says_whether_it_is_the_same_event() -> None:
    """Another distinguisher or note makes another event; another time does not."""
    later = datetime(2026, 11, 21, 13, 0, tzinfo=UTC)
    names = [
        event(POD, warned, now)["metadata"]["name"]
        for warned, now in (
            (BROKEN, NOW),
            (BROKEN, later),
            (BROKEN._replace(distinguisher="2"), NOW),
            (BROKEN._replace(note="line 4"), NOW),
        )
    ]
    assert names[0] == names[1]
    assert len(set(names)) == 3


def test_a_note_has_only_visible_characters() -> None:
    """Names come from users; the policy rdma-webhook-guard-events rejects other notes."""
    assert event(POD, BROKEN._replace(note="a\x1b[31m\u202eb\nc"), NOW)["note"] == (
        r"a\x1b[31m\u202eb\nc"
    )


def test_a_long_note_is_cut_to_what_kubernetes_takes() -> None:
    """The limit is in bytes, and no character is cut in two."""
    note = event(POD, BROKEN._replace(note="ä" * MAX_NOTE_LENGTH), NOW)["note"]
    assert note.endswith("ä...")
    assert MAX_NOTE_LENGTH - 2 <= len(note.encode()) <= MAX_NOTE_LENGTH


def test_an_event_is_sent_until_it_exists() -> None:
    """A thread sends the event, and repeats it after a failure or defect."""
    api, lost = Api(ClusterError("cannot reach it"), ValueError("ours")), list[str]()
    events_on(api, lost).warn(BROKEN)
    until(lambda: len(api.created) == 1)
    ((path, body),) = api.created
    assert (path, body["note"], lost) == (PATH, BROKEN.note, [])


def test_an_event_that_cannot_be_created_is_given_up() -> None:
    """The reason is logged, and the next event is still sent."""
    api, lost = Api(*[ClusterError("forbidden")] * ATTEMPTS), list[str]()
    events = events_on(api, lost)
    events.warn(BROKEN)
    until(lambda: lost == ["forbidden"])
    assert api.asked == ATTEMPTS
    events.warn(BROKEN._replace(distinguisher="2"))
    until(lambda: len(api.created) == 1)


def test_only_the_newest_event_is_sent() -> None:
    """An older problem has been repaired meanwhile, or has changed."""
    api, lost = Api(ClusterError("cannot reach it")), list[str]()
    api.open.clear()
    events = events_on(api, lost, pause=20.0)
    events.warn(BROKEN._replace(note="first"))
    until(lambda: api.asked == 1)
    events.warn(BROKEN._replace(note="second"))
    events.warn(BROKEN._replace(note="third"))
    api.open.set()
    until(lambda: len(api.created) == 1)
    assert [body["note"] for _, body in api.created] == ["third"]
