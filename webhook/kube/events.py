"""Create Kubernetes Events: about this process's pod, and for the owners of pods without RDMA.

A thread creates them, so that no request waits for the API server.
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

# Events about the pod that this process runs in.
#
# They are for people who look at the pod because something is wrong (`kubectl describe`,
# `kubectl get events`). A separate thread creates them, and only for the newest warning: when
# the thread catches up, older warnings no longer matter.

#: The reporting controller; a qualified name, as the API requires.
CONTROLLER = "rdma.lab/webhook"
#: Bytes of a note. Source: kubernetes pkg/apis/core/validation, events.go (NoteLengthLimit).
LONGEST = 1024
#: Hex digits in an event's name, which the policy rdma-webhook-guard-events requires. They limit
#: how many events a pod's token can create.
REPLICA_DIGITS = 3
#: How often creating an event is tried: for a minute, with the usual pauses. After that, the
#: problem is only in the log.
ATTEMPTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """The pod that an event is about."""

    name: str
    namespace: str
    uid: str


class RecordedWarning(NamedTuple):
    """A warning: what is wrong."""

    #: For programs, in one word: "ConfigurationNotUsable".
    reason: str
    #: What was being done: "Load".
    action: str
    #: For people.
    note: str
    #: Together with `reason` and `note`, identifies the event.
    occasion: str = ""


class EventCreator(Protocol):
    """The part of an API server that events need."""

    def create(self, path: str, body: JsonObject) -> bool:
        """Create an object in a collection; False if one with its name already exists."""


class EventApi:
    """Creates events, for one thread."""

    def __init__(self, connect: Callable[[], EventCreator]) -> None:
        self._connect = connect
        self._api: EventCreator | None = None

    def create(self, body: JsonObject) -> str:
        """Create an event; return why that failed, or "". One with its name counts as the same."""
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
    """Creates events about one pod; the same warning again only on another occasion."""

    def __init__(
        self,
        pod: Pod,
        connect: Callable[[], EventCreator],
        pauses: Callable[[], Iterator[float]],
        lost: Callable[[str], None],
    ) -> None:
        """Prepare; `lost` is called in the thread, with the reason why an event was not created."""
        self._pod = pod
        self._api = EventApi(connect)
        self._pauses = pauses
        self._lost = lost
        self._next: RecordedWarning | None = None
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None

    def warn(self, warned: RecordedWarning) -> None:
        """Have the event created soon; does not block."""
        with self._news:
            self._next = warned
            self._news.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="events", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._next is not None)
                warned, self._next = self._next, None
            assert warned is not None
            self._tell(event(self._pod, warned, datetime.now(UTC)))

    def _tell(self, body: JsonObject) -> None:
        """Try to create the event until it exists, or there is a newer one."""
        problem = ""
        for pause in islice(self._pauses(), ATTEMPTS):
            problem = self._api.create(body)
            if not problem:
                return
            with self._news:
                if self._news.wait_for(lambda: self._next is not None, pause):
                    return
        self._lost(problem)


def event(pod: Pod, warned: RecordedWarning, now: datetime) -> JsonObject:
    """Write an event; its name is the same for the same warning on the same occasion.

    One in about 4,000 other warnings gets the same name. Such a warning has no event until the
    first event has expired, after an hour.
    """
    same = f"{warned.reason}\n{warned.occasion}\n{warned.note}"
    mark = hashlib.sha256(same.encode(errors="replace")).hexdigest()[:REPLICA_DIGITS]
    regarding = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
    }
    return warning_event(f"{pod.name}.{mark}", regarding, warned, pod.name, now)


def warning_event(
    name: str, regarding: dict[str, str], warned: RecordedWarning, reporter: str, now: datetime
) -> JsonObject:
    """Write a warning about an object as an Event in that object's namespace."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": regarding["namespace"]},
        "eventTime": f"{now:%Y-%m-%dT%H:%M:%S.%f}Z",
        "type": "Warning",
        "reason": warned.reason,
        "action": warned.action,
        "note": _cut(warned.note),
        "reportingController": CONTROLLER,
        "reportingInstance": reporter,
        "regarding": regarding,
    }


def _cut(note: str) -> str:
    """Cut a note to LONGEST bytes; Kubernetes counts bytes."""
    octets = note.encode(errors="replace")
    if len(octets) <= LONGEST:
        return note
    return octets[: LONGEST - 3].decode(errors="ignore") + "..."


# Kubernetes Events that tell the owner of a pod that the pod will have no RDMA.
#
# The warnings of an admission answer reach only who creates the pod, and for nearly all pods that
# is a controller, which at best logs them. People look at the Job: `kubectl describe job`.
#
# Creating an Event never delays a review: a thread does it, from a queue of limited length. The
# name of an Event follows from its owner and the reason, so the pods of a Job, on whatever
# replica they are decided, make one Event.

REASON = "NoRDMA"
#: Events that wait to be created; more are lost, and the log says so.
PENDING = 1000
#: Events that are remembered as told, so that the API server is not asked again for each pod.
REMEMBERED = 4096
#: Hex digits in an Event's name, which the policy rdma-webhook-guard-events requires.
OWNER_DIGITS = 12
#: Characters of an owner's name in an Event's name, which may have 253.
LONGEST_NAME = 200


class WithoutRdma(NamedTuple):
    """What an owner is told."""

    owner: OwnerReference
    namespace: str
    #: The reason code of the verdict.
    code: str
    #: The sentence of the verdict.
    message: str


class OwnerEvents:
    """Creates Events in a thread, each once."""

    def __init__(
        self, reporter: str, connect: Callable[[], EventCreator], lost: Callable[[str], None]
    ) -> None:
        """Prepare.

        `reporter`: the name of this pod; `lost` is called with the reason why an Event was not
        created.
        """
        self._reporter = reporter
        self._api = EventApi(connect)
        self._lost = lost
        self._waiting: queue.Queue[WithoutRdma] = queue.Queue(PENDING)
        self._told: OrderedDict[str, None] = OrderedDict()
        self._thread: threading.Thread | None = None

    def tell(self, one: WithoutRdma) -> None:
        """Have an Event created soon, unless there was one; does not block."""
        name = name_of(one)
        if name in self._told:
            self._told.move_to_end(name)
            return
        try:
            self._waiting.put_nowait(one)
        except queue.Full:
            self._lost(f"{PENDING} others are waiting")
            return
        self._told[name] = None
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="owner-events", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            one = self._waiting.get()
            problem = self._api.create(owner_event(one, self._reporter, datetime.now(UTC)))
            if problem:
                self._lost(problem)


def name_of(one: WithoutRdma) -> str:
    """Return the name of an Event: the owner's, and a digest of the owner and the reason."""
    owner = one.owner
    same = f"{one.namespace}\n{owner.kind}\n{owner.name}\n{owner.uid}\n{one.code}"
    digest = hashlib.sha256(same.encode(errors="replace")).hexdigest()[:OWNER_DIGITS]
    return f"{owner.name[:LONGEST_NAME].rstrip('.-')}.{digest}"


def owner_event(one: WithoutRdma, reporter: str, now: datetime) -> JsonObject:
    """Write the Event."""
    owner = one.owner
    regarding = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "namespace": one.namespace,
    }
    if owner.uid:
        regarding["uid"] = owner.uid
    note = f"its pods will have no RDMA ({one.code}): {one.message}"
    warned = RecordedWarning(REASON, "Admit", note)
    return warning_event(name_of(one), regarding, warned, reporter, now)
