from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from webhook.errors import ClusterError
from webhook.kube.events import MAX_NOTE_LENGTH, EventApi, Notice, configuration_event

REFUSED = Notice("Warning", "NotUsable", "Check", "spec.fabrics[0]: wrong")
STORED = {"uid": "7e57", "generation": 3}
NOW = datetime(2026, 11, 21, 12, 0, 0, 5, tzinfo=UTC)


class Api:
    """An API server with a FabricConfiguration, which fails in these ways first."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.stored: dict[str, Any] | None = {"metadata": STORED}
        self.created: list[tuple[str, dict[str, Any]]] = []

    def read(self, path: str) -> dict[str, Any] | None:
        """Return the object."""
        assert path == "/apis/rdma.lab/v1alpha1/fabricconfigurations/default"
        return self.stored

    def create(self, path: str, body: dict[str, Any]) -> bool:
        """Create an object."""
        if self.failures:
            raise self.failures.pop(0)
        self.created.append((path, body))
        return True


def name_of(notice: Notice = REFUSED, stored: Any = STORED, now: datetime = NOW) -> str:
    """Return the name of an Event."""
    name: str = configuration_event(notice, stored, "x", now)["metadata"]["name"]
    return name


def test_an_event_is_about_the_configuration() -> None:
    """It has the object's uid, which `kubectl describe` searches for, and no namespace."""
    assert configuration_event(REFUSED, STORED, "rdma-webhook-x", NOW) == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name_of(), "namespace": "default"},
        "eventTime": "2026-11-21T12:00:00.000005Z",
        "type": "Warning",
        "reason": "NotUsable",
        "action": "Check",
        "note": "spec.fabrics[0]: wrong",
        "reportingController": "rdma.lab/webhook",
        "reportingInstance": "rdma-webhook-x",
        "regarding": {
            "apiVersion": "rdma.lab/v1alpha1",
            "kind": "FabricConfiguration",
            "name": "default",
            "uid": "7e57",
        },
    }
    assert "uid" not in configuration_event(REFUSED, {}, "x", NOW)["regarding"]


def test_the_name_says_whether_it_is_the_same_event() -> None:
    """Replicas that report the same within ten minutes use one name, whatever their names are."""
    last = datetime(2026, 11, 21, 12, 9, 59, tzinfo=UTC)
    assert name_of(now=last) == name_of()
    other_names = [
        name_of(now=datetime(2026, 11, 21, 12, 10, tzinfo=UTC)),
        name_of(REFUSED._replace(note="spec.fabrics[1]: wrong")),
        name_of(REFUSED._replace(reason="InUse")),
        name_of(stored={**STORED, "generation": 4}),
        name_of(stored={**STORED, "uid": "0"}),
    ]
    assert len({name_of(), *other_names}) == 1 + len(other_names)


def test_a_note_has_only_visible_characters() -> None:
    """Names come from users; the policy rdma-webhook-guard-events rejects other notes."""
    notice = REFUSED._replace(note="a\x1b[31m\u202eb\nc")
    assert configuration_event(notice, {}, "x", NOW)["note"] == r"a\x1b[31m\u202eb\nc"


def test_a_long_note_is_cut_to_what_kubernetes_takes() -> None:
    """The limit is in bytes, and no character is cut in two."""
    notice = REFUSED._replace(note="ä" * MAX_NOTE_LENGTH)
    note = configuration_event(notice, {}, "x", NOW)["note"]
    assert note.endswith("ä...")
    assert MAX_NOTE_LENGTH - 2 <= len(note.encode()) <= MAX_NOTE_LENGTH


def test_the_reason_of_a_failure_is_returned() -> None:
    """The next attempt may succeed; an internal error has only its type."""
    api = Api(ClusterError("cannot reach it"), ValueError("secret"))
    events = EventApi(lambda: api)
    problems = [events.create_about_configuration(REFUSED, "x", NOW) for _ in range(3)]
    assert problems == ["cannot reach it", "internal error: ValueError", ""]
    ((path, body),) = api.created
    assert path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert body == configuration_event(REFUSED, STORED, "x", NOW)


def test_an_event_about_a_missing_object() -> None:
    """`kubectl get events` shows it."""
    api = Api()
    api.stored = None
    assert EventApi(lambda: api).create_about_configuration(REFUSED, "x", NOW) == ""
    assert api.created[0][1] == configuration_event(REFUSED, {}, "x", NOW)
