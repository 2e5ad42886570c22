"""Kubernetes Events about the pod that this process runs in.

They are for whoever looks at the pod because something is wrong (`kubectl describe`,
`kubectl get events`). Told in a thread of its own, and only what is newest: who is behind
with the telling has no use for what was wrong before.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple, Protocol

from webhook.errors import ClusterError

#: Who tells; qualified, as the API wants it.
CONTROLLER = "rdma.lab/webhook"
#: Of a note. Source: kubernetes pkg/apis/core/validation, events.go (NoteLengthLimit).
LONGEST = 1024
#: Hex digits in an event's name, which the policy rdma-webhook-guard-events asks for: a token of a
#: pod is good for so many events, and no more.
DIGITS = 3
#: How often one event is tried: for a minute, at the usual pauses. Then only the log has it.
ATTEMPTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod, as an event names it."""

    name: str
    namespace: str
    uid: str


class Warned(NamedTuple):
    """What is wrong."""

    #: For programs, in one word: "ConfigurationNotUsable".
    reason: str
    #: What was being done: "Load".
    action: str
    #: For people.
    note: str
    #: With `reason` and `note`, what makes it another event than one before.
    occasion: str = ""


class Creates(Protocol):
    """What is needed of an API server."""

    def create(self, path: str, body: dict[str, Any]) -> bool:
        """Create an object in a collection; False if one of its name is there already."""


class PodEvents:
    """Tells events about one pod; the same one again only on another occasion."""

    def __init__(
        self,
        pod: Pod,
        connect: Callable[[], Creates],
        pauses: Callable[[], Iterator[float]],
        lost: Callable[[str], None],
    ) -> None:
        """Prepare; `lost` gets, in the thread, why an event could not be told."""
        self._pod = pod
        self._connect = connect
        self._pauses = pauses
        self._lost = lost
        self._api: Creates | None = None
        self._next: Warned | None = None
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None

    def warn(self, warned: Warned) -> None:
        """Tell it soon; waits for nothing."""
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

    def _tell(self, body: dict[str, Any]) -> None:
        """Create the event, over and over until it is there, or there is a newer one."""
        problem = ""
        for pause in islice(self._pauses(), ATTEMPTS):
            problem = self._create(body)
            if not problem:
                return
            with self._news:
                if self._news.wait_for(lambda: self._next is not None, pause):
                    return
        self._lost(problem)

    def _create(self, body: dict[str, Any]) -> str:
        """Create it, and return why it could not be; one of its name is the same one."""
        try:
            if self._api is None:
                self._api = self._connect()
            path = f"/apis/events.k8s.io/v1/namespaces/{self._pod.namespace}/events"
            self._api.create(path, body)
        except ClusterError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 -- the next event must still be told
            return f"internal error: {type(error).__name__}"
        return ""


def event(pod: Pod, warned: Warned, now: datetime) -> dict[str, Any]:
    """Write an event; its name is the same for the same warning on the same occasion.

    For one of 4,000 others too, which then is not told before the first has ended, after an hour.
    """
    same = f"{warned.reason}\n{warned.occasion}\n{warned.note}"
    mark = hashlib.sha256(same.encode(errors="replace")).hexdigest()[:DIGITS]
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{pod.name}.{mark}", "namespace": pod.namespace},
        "eventTime": f"{now:%Y-%m-%dT%H:%M:%S.%f}Z",
        "type": "Warning",
        "reason": warned.reason,
        "action": warned.action,
        "note": _cut(warned.note),
        "reportingController": CONTROLLER,
        "reportingInstance": pod.name,
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
        },
    }


def _cut(note: str) -> str:
    """Cut to so many bytes, which is what Kubernetes counts."""
    octets = note.encode(errors="replace")
    if len(octets) <= LONGEST:
        return note
    return octets[: LONGEST - 3].decode(errors="ignore") + "..."
