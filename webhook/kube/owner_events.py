"""Kubernetes Events that tell the owner of a pod that the pod will have no RDMA.

The warnings of an admission answer reach only who creates the pod, and for nearly all pods that is
a controller, which at best logs them. People look at the Job: `kubectl describe job`.

Creating an Event never delays a review: a thread does it, from a queue of limited length. The name
of an Event follows from its owner and the reason, so the pods of a Job, on whatever replica they
are decided, make one Event.
"""

from __future__ import annotations

import hashlib
import queue
import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from webhook.kube.events import Creates, EventApi, Warned, warning_event
from webhook.model.owner_references import OwnerReference

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
        self, reporter: str, connect: Callable[[], Creates], lost: Callable[[str], None]
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


def owner_event(one: WithoutRdma, reporter: str, now: datetime) -> dict[str, Any]:
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
    warned = Warned(REASON, "Admit", note)
    return warning_event(name_of(one), regarding, warned, reporter, now)
