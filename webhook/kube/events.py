"""Kubernetes Events about the configuration, and for the owners of pods without RDMA.

Threads create them, so that no request waits for the API server.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from webhook.errors import ClusterError
from webhook.kube.api import path_segment
from webhook.kube.notice_queue import NoticeQueue, Source
from webhook.kube.watched_resources import (
    CONFIGURATION_NAME,
    CONFIGURATION_PATH,
    CONFIGURATIONS,
)
from webhook.model.json import JsonObject
from webhook.model.pod import OwnerReference
from webhook.text.escape import visible

#: The reporting controller; a qualified name, as the API requires.
CONTROLLER = "rdma.lab/webhook"
#: Bytes of a note. Source: kubernetes pkg/apis/core/validation, events.go (NoteLengthLimit).
MAX_NOTE_LENGTH = 1024


class Notice(NamedTuple):
    """The content of an Event."""

    #: Normal or Warning.
    type: str
    #: A word for programs: "NotUsable".
    reason: str
    #: What was done when the Event's subject was noticed: "Admit".
    action: str
    #: The text for people.
    note: str


class EventServer(Protocol):
    """The part of an API server that events need."""

    def read(self, path: str) -> JsonObject | None:
        """Return an object; None if it does not exist."""

    def create(self, path: str, body: JsonObject) -> bool:
        """Create an object in a collection; return False if its name exists already."""


class EventApi:
    """Creates events, for one thread."""

    def __init__(self, connect: Callable[[], EventServer]) -> None:
        self._connect = connect
        self._api: EventServer | None = None

    def create(self, body: JsonObject) -> str:
        """Create an event, unless its name exists; return why that failed, or ""."""
        return self._attempt(lambda api: _create(api, body))

    def create_about_configuration(self, notice: Notice, reporter: str, now: datetime) -> str:
        """Create an event about the FabricConfiguration; return why that failed, or ""."""

        def read_and_create(api: EventServer) -> None:
            stored = api.read(CONFIGURATION_PATH)
            metadata = stored["metadata"] if stored else {}
            _create(api, configuration_event(notice, metadata, reporter, now))

        return self._attempt(read_and_create)

    def _attempt(self, do: Callable[[EventServer], None]) -> str:
        try:
            if self._api is None:
                self._api = self._connect()
            do(self._api)
        except ClusterError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 -- the thread must go on to the next event
            return f"internal error: {type(error).__name__}"
        return ""


def _create(api: EventServer, body: JsonObject) -> None:
    namespace = path_segment(body["metadata"]["namespace"])  # a stranger's review may name any
    api.create(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", body)


def event(
    name: str, regarding: dict[str, str], notice: Notice, reporter: str, now: datetime
) -> JsonObject:
    """Return an Event about an object, in the object's namespace, or in `default` without one."""
    namespace = regarding.get("namespace", NAMESPACE_WITHOUT)
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "eventTime": f"{now:%Y-%m-%dT%H:%M:%S.%f}Z",
        **notice._asdict(),
        "note": _cut(notice.note),
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


# Events about the FabricConfiguration, as shown by `kubectl describe fabrics default`.
#
# Every replica that notices a change creates its Event. The name follows from the content, so one
# replica succeeds, and the others find that the Event exists.

#: The namespace of Events about objects without a namespace.
#: Source: kubernetes pkg/apis/core/validation, events.go (legacyValidateEvent).
NAMESPACE_WITHOUT = "default"
#: Hex digits in the name of an event, which the policy rdma-webhook-guard-events requires. They
#: limit how many events a stolen token can create.
CONFIGURATION_DIGITS = 3
#: Minutes in which an equal notice has the same name.
REPEAT_MINUTES = 10


def configuration_event(
    notice: Notice, metadata: JsonObject, reporter: str, now: datetime
) -> JsonObject:
    """Return an event about the FabricConfiguration.

    `metadata` is the object's own, {} if the object does not exist.

    One in about 4,000 other notices gets the same name. Such a notice has no event until the first
    event has expired, after an hour.
    """
    uid, generation = metadata.get("uid", ""), metadata.get("generation", 0)
    period = int(now.timestamp()) // (REPEAT_MINUTES * 60)
    identity = f"{uid}\n{generation}\n{period}\n{notice.reason}\n{notice.note}"
    digest = hashlib.sha256(identity.encode(errors="replace")).hexdigest()[:CONFIGURATION_DIGITS]
    regarding = {
        "apiVersion": f"{CONFIGURATIONS.group}/{CONFIGURATIONS.version}",
        "kind": "FabricConfiguration",
        "name": CONFIGURATION_NAME,
    }
    if uid:
        regarding["uid"] = uid
    return event(f"{CONFIGURATION_NAME}.{digest}", regarding, notice, reporter, now)


# Kubernetes Events for the owner of a pod that will have no RDMA.
#
# The warnings of an admission answer reach only the creator of the pod, and for nearly all pods
# that is a controller, which at best logs them. People inspect the Job: `kubectl describe job`.
#
# Creating an Event never delays a review: a thread does it, from a queue that is limited, and fair
# between namespaces. The name of an Event follows from its owner and the reason, so the pods of a
# Job make one Event, even if several replicas decide on them.

REASON = "NoRDMA"
#: The number of created Events to remember, to save requests to the API server for each pod.
REMEMBERED = 4096
#: The beginning of an Event's name, and the number of hex digits after it, which the policy
#: rdma-webhook-guard-events requires. They limit how many Events a stolen token can create.
OWNER_PREFIX, OWNER_DIGITS = "rdma-webhook", 3


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
        self, reporter: str, connect: Callable[[], EventServer], lost: Callable[[str], None]
    ) -> None:
        """Prepare.

        `reporter`: the name of this pod; `lost` is called with the reason for a missing Event.
        """
        self._reporter = reporter
        self._api = EventApi(connect)
        self._lost = lost
        self._waiting: NoticeQueue[WithoutRdma] = NoticeQueue()
        self._created: OrderedDict[str, None] = OrderedDict()
        self._thread: threading.Thread | None = None

    def tell(self, notice: WithoutRdma, client_address: str) -> None:
        """Queue an Event for creation without blocking, unless it was created already.

        `client_address`: of the request that caused it.
        """
        identity = _identity(notice)
        if identity in self._created:
            self._created.move_to_end(identity)
            return
        self._created[identity] = None
        if len(self._created) > REMEMBERED:
            self._created.popitem(last=False)
        dropped = self._waiting.put(Source(client_address, notice.namespace), notice)
        if dropped:
            self._created.pop(_identity(dropped), None)
            self._lost(f"too many notices are waiting; namespace: {dropped.namespace}")
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="owner-events", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            notice = self._waiting.get()
            problem = self._api.create(owner_event(notice, self._reporter, datetime.now(UTC)))
            if problem:
                self._lost(problem)


def _identity(notice: WithoutRdma) -> str:
    """Return a digest of owner and reason."""
    owner = notice.owner
    identity = f"{notice.namespace}\n{owner.kind}\n{owner.name}\n{owner.uid}\n{notice.code}"
    return hashlib.sha256(identity.encode(errors="replace")).hexdigest()


def name_of(notice: WithoutRdma) -> str:
    """Return the name of an Event.

    In a namespace, one in about 4,000 other notices gets the same name. Such a notice has no Event
    until the first one has expired, after an hour.
    """
    return f"{OWNER_PREFIX}.{_identity(notice)[:OWNER_DIGITS]}"


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
    return event(
        name_of(notice), regarding, Notice("Warning", REASON, "Admit", note), reporter, now
    )
