"""Kubernetes Events about this process's pod, and for the owners of pods without RDMA.

Threads create them, so that no request waits for the API server.
"""

from __future__ import annotations

import hashlib
import queue
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple, Protocol

from webhook.errors import ClusterError
from webhook.model.json import JsonObject
from webhook.model.pod import OwnerReference
from webhook.text.escape import visible

# Events about the pod that this process runs in.
#
# They are for people who inspect the pod because something is wrong (`kubectl describe`,
# `kubectl get events`). A separate thread creates them, and only for the newest warning: when
# the thread catches up, older warnings no longer matter.

#: The reporting controller; a qualified name, as the API requires.
CONTROLLER = "rdma.lab/webhook"
#: Bytes of a note. Source: kubernetes pkg/apis/core/validation, events.go (NoteLengthLimit).
MAX_NOTE_LENGTH = 1024
#: Hex digits in an event's name, which the policy rdma-webhook-guard-events requires. They limit
#: how many events a pod's token can create.
OWN_POD_DIGITS = 3
#: Attempts to create an event: for a minute, with the usual pauses. After that, the problem is
#: only in the log.
ATTEMPTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPod:
    """The pod of this process, which an event is about."""

    name: str
    namespace: str
    uid: str


class RecordedWarning(NamedTuple):
    """A warning about a problem."""

    #: A word for programs: "ConfigurationNotUsable".
    reason: str
    #: The action that failed: "Load".
    action: str
    #: The text for people.
    note: str
    #: Separates this event from another with the same `reason` and `note`.
    distinguisher: str = ""


class EventCreator(Protocol):
    """The part of an API server that events need."""

    def create(self, path: str, body: JsonObject) -> bool:
        """Create an object in a collection; return False if its name exists already."""


class EventApi:
    """Creates events, for one thread."""

    def __init__(self, connect: Callable[[], EventCreator]) -> None:
        self._connect = connect
        self._api: EventCreator | None = None

    def create(self, body: JsonObject) -> str:
        """Create an event, unless its name exists; return why that failed, or ""."""
        try:
            if self._api is None:
                self._api = self._connect()
            namespace = body["metadata"]["namespace"]
            self._api.create(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", body)
        except ClusterError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 -- the thread must go on to the next event
            return f"internal error: {type(error).__name__}"
        return ""


class PodEvents:
    """Creates events about one pod; repeats a warning only with another `distinguisher`."""

    def __init__(
        self,
        pod: OwnPod,
        connect: Callable[[], EventCreator],
        pauses: Callable[[], Iterator[float]],
        lost: Callable[[str], None],
    ) -> None:
        """Prepare; `lost` is called in the thread with the reason for a missing event."""
        self._pod = pod
        self._api = EventApi(connect)
        self._pauses = pauses
        self._lost = lost
        self._next: RecordedWarning | None = None
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None

    def warn(self, warning: RecordedWarning) -> None:
        """Queue the event for creation without blocking."""
        with self._news:
            self._next = warning
            self._news.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="events", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._next is not None)
                warning, self._next = self._next, None
            assert warning is not None
            self._create(event(self._pod, warning, datetime.now(UTC)))

    def _create(self, body: JsonObject) -> None:
        """Try to create the event until it exists, or a newer one is due."""
        problem = ""
        for pause in islice(self._pauses(), ATTEMPTS):
            problem = self._api.create(body)
            if not problem:
                return
            with self._news:
                if self._news.wait_for(lambda: self._next is not None, pause):
                    return
        self._lost(problem)


def event(pod: OwnPod, warning: RecordedWarning, now: datetime) -> JsonObject:
    """Return an event; equal warnings have events of the same name.

    One in about 4,000 other warnings gets the same name. Such a warning has no event until the
    first event has expired, after an hour.
    """
    identity = f"{warning.reason}\n{warning.distinguisher}\n{warning.note}"
    digest = hashlib.sha256(identity.encode(errors="replace")).hexdigest()[:OWN_POD_DIGITS]
    regarding = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
    }
    return warning_event(f"{pod.name}.{digest}", regarding, warning, pod.name, now)


def warning_event(
    name: str, regarding: dict[str, str], warning: RecordedWarning, reporter: str, now: datetime
) -> JsonObject:
    """Return a warning about an object as an Event in that object's namespace."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": regarding["namespace"]},
        "eventTime": f"{now:%Y-%m-%dT%H:%M:%S.%f}Z",
        "type": "Warning",
        "reason": warning.reason,
        "action": warning.action,
        "note": _cut(warning.note),
        "reportingController": CONTROLLER,
        "reportingInstance": reporter,
        "regarding": regarding,
    }


def _cut(note: str) -> str:
    """Return a note of visible characters and at most MAX_NOTE_LENGTH bytes, not characters."""
    note = visible(note)
    octets = note.encode(errors="replace")
    if len(octets) <= MAX_NOTE_LENGTH:
        return note
    return octets[: MAX_NOTE_LENGTH - 3].decode(errors="ignore") + "..."


# Kubernetes Events for the owner of a pod that will have no RDMA.
#
# The warnings of an admission answer reach only the creator of the pod, and for nearly all pods
# that is a controller, which at best logs them. People inspect the Job: `kubectl describe job`.
#
# Creating an Event never delays a review: a thread does it, from a queue of limited length. The
# name of an Event follows from its owner and the reason, so the pods of a Job make one Event,
# even if several replicas decide on them.

REASON = "NoRDMA"
#: The maximum number of Events that wait to be created; more are lost, with a line in the log.
PENDING = 1000
#: The number of created Events to remember, to save requests to the API server for each pod.
REMEMBERED = 4096
#: Hex digits in an Event's name, which the policy rdma-webhook-guard-events requires.
OWNER_DIGITS = 12
#: Characters of an owner's name in an Event's name, which may have 253.
MAX_NAME_LENGTH = 200


class WithoutRdma(NamedTuple):
    """A notice for the owner of a pod that will have no RDMA."""

    owner: OwnerReference
    namespace: str
    #: The reason code of the verdict.
    code: str
    #: The sentence of the verdict.
    message: str


class OwnerEvents:
    """Creates each Event once, in a thread."""

    def __init__(
        self, reporter: str, connect: Callable[[], EventCreator], lost: Callable[[str], None]
    ) -> None:
        """Prepare.

        `reporter`: the name of this pod; `lost` is called with the reason for a missing Event.
        """
        self._reporter = reporter
        self._api = EventApi(connect)
        self._lost = lost
        self._waiting: queue.Queue[WithoutRdma] = queue.Queue(PENDING)
        self._created: OrderedDict[str, None] = OrderedDict()
        self._thread: threading.Thread | None = None

    def tell(self, notice: WithoutRdma) -> None:
        """Queue an Event for creation without blocking, unless it was created already."""
        name = name_of(notice)
        if name in self._created:
            self._created.move_to_end(name)
            return
        try:
            self._waiting.put_nowait(notice)
        except queue.Full:
            self._lost(f"{PENDING} others are waiting")
            return
        self._created[name] = None
        if len(self._created) > REMEMBERED:
            self._created.popitem(last=False)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="owner-events", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            notice = self._waiting.get()
            problem = self._api.create(owner_event(notice, self._reporter, datetime.now(UTC)))
            if problem:
                self._lost(problem)


def name_of(notice: WithoutRdma) -> str:
    """Return the name of an Event: the owner's name and a digest of owner and reason."""
    owner = notice.owner
    identity = f"{notice.namespace}\n{owner.kind}\n{owner.name}\n{owner.uid}\n{notice.code}"
    digest = hashlib.sha256(identity.encode(errors="replace")).hexdigest()[:OWNER_DIGITS]
    return f"{owner.name[:MAX_NAME_LENGTH].rstrip('.-')}.{digest}"


def owner_event(notice: WithoutRdma, reporter: str, now: datetime) -> JsonObject:
    """Return the Event of a notice."""
    owner = notice.owner
    regarding = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "namespace": notice.namespace,
    }
    if owner.uid:
        regarding["uid"] = owner.uid
    note = f"its pods will have no RDMA ({notice.code}): {notice.message}"
    warning = RecordedWarning(REASON, "Admit", note)
    return warning_event(name_of(notice), regarding, warning, reporter, now)
