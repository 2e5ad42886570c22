"""The thread that writes the FabricConfiguration's status, and the part that one replica writes.

The holder of a Lease writes that part, or every replica while there is no Lease. It follows from a
replica's own state alone, so another replica that takes over writes the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Protocol

from webhook.config.custom_resource import CONFIGURATION_NAME
from webhook.config.model import API_VERSION, KIND
from webhook.errors import ClusterError
from webhook.kube.watched_resources import CONFIGURATION_PATH
from webhook.model.json import JsonObject
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.sources.periodic import Periodic
from webhook.serve.status.content import Condition, StatusUpdate

#: The status of the object.
PATH = f"{CONFIGURATION_PATH}/status"
#: Seconds between two looks for something to write.
TICK = 1.0
#: The minimum number of seconds between two writes by the holder, since nodes may change a hundred
#: times a second; and the pause after a failure.
WRITE_INTERVAL = 10.0
#: The fields of the status that are not the holder's.
_NOT_HOLDERS = ("kept", "replicas")
#: The form of times in the status, in UTC, and the century that rdma-webhook-guard-status allows.
_TIME, _CENTURY = "%Y-%m-%dT%H:%M:%SZ", 20


class StatusLease(Protocol):
    """The Lease."""

    def is_writer(self) -> bool:
        """Return whether this replica is to write."""


class StatusApi(Protocol):
    """The API server."""

    def apply(self, path: str, body: JsonObject) -> bool:
        """Apply the fields of `body`, server-side; return False if the object does not exist."""

    def merge(self, path: str, body: JsonObject) -> bool:
        """Merge `body` into an object.

        Return False if it does not exist, or its resourceVersion is no longer that of `body`.
        """


class StatusPart(Protocol):
    """A part of the status."""

    def write(self, lease: StatusLease, api: StatusApi) -> None:
        """Write the part if it has changed; raise ClusterError if that failed."""

    def forget(self) -> None:
        """Forget what was written: a write failed."""

    def leave(self, api: StatusApi) -> None:
        """Remove what must not outlive this process."""


class StatusWriter:
    """A source that writes the parts of the status in a thread, and reports failures."""

    def __init__(
        self,
        connect: Callable[[], tuple[StatusLease, StatusApi]],
        parts: Sequence[StatusPart],
        report: Callable[[str], None],
    ) -> None:
        """Prepare; nothing is called before `start`.

        `connect` may be slow; the thread calls it until it succeeds once. `report` is called after
        each round with the reason for a missing write, "" without one.
        """
        self._connect = connect
        self._parts = parts
        self._report = report
        self._connected: tuple[StatusLease, StatusApi] | None = None
        self._periodic = Periodic("status", self.attempt, self._leave)
        self.start, self.stop = self._periodic.start, self._periodic.stop

    def poll(self) -> bool:
        """Return False: there is nothing to apply."""
        return False

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Do nothing."""

    def attempt(self) -> float:
        """Write what has changed; return the seconds until the next attempt. Never raises."""
        problem = ""
        try:
            self._write_changes()
        except ClusterError as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 -- nobody else writes if this thread ends
            problem = f"internal error: {type(error).__name__}"
        if problem:
            for part in self._parts:
                part.forget()
        self._report(problem)
        return WRITE_INTERVAL if problem else TICK

    def _write_changes(self) -> None:
        if self._connected is None:
            self._connected = self._connect()
        for part in self._parts:
            part.write(*self._connected)

    def _leave(self) -> None:
        if self._connected is None:
            return
        _, api = self._connected
        for part in self._parts:
            with suppress(ClusterError):
                part.leave(api)


class HoldersPart:
    """The part that the holder of the Lease writes: conditions, fabrics and nodes."""

    def __init__(
        self,
        content: Callable[[], StatusUpdate | None],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Prepare; `content` returns None without an object."""
        self._content = content
        self._clock, self._now = clock, now
        #: The last written status, and the version of the object at that time. The stored status
        #: may stay different, since an older definition of the kind drops unknown fields. It is not
        #: compared itself: a thief of a replica's token may have put an earlier status back.
        self._written: JsonObject = {}
        self._version: str | None = None
        self._next_write = 0.0

    def write(self, lease: StatusLease, api: StatusApi) -> None:
        """Write a changed status if this replica is the writer."""
        if not lease.is_writer() or self._clock() < self._next_write:
            return
        update = self._content()
        if update is not None:
            self._write(update, api)

    def _write(self, update: StatusUpdate, api: StatusApi) -> None:
        stored = {key: value for key, value in update.stored.items() if key not in _NOT_HOLDERS}
        status = _status(update, stored, self._now())
        if status != stored and (status, update.version) != (self._written, self._version):
            self._next_write = self._clock() + WRITE_INTERVAL
            self._written, self._version = status, update.version
            metadata = {"name": CONFIGURATION_NAME}
            body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "status": status}
            if not api.apply(PATH, body):  # the object has been deleted just now
                self._version = None

    def forget(self) -> None:
        """Write again: the last write failed."""
        self._version = None

    def leave(self, api: StatusApi) -> None:
        """Leave all: the next holder continues from it."""


def _status(update: StatusUpdate, before: Mapping[str, object], now: datetime) -> JsonObject:
    conditions = [
        _condition(condition, update.generation, before, now) for condition in update.conditions
    ]
    return {"observedGeneration": update.generation, "conditions": conditions, **update.fields}


def _condition(
    condition: Condition, generation: int, before: Mapping[str, object], now: datetime
) -> JsonObject:
    """Return a condition with the time of its last change from true to false or back."""
    status = "Unknown" if condition.holds is None else str(condition.holds)
    conditions = before.get("conditions")
    unchanged = (
        old.get("lastTransitionTime")
        for old in (conditions if isinstance(conditions, list) else ())
        if isinstance(old, dict)
        and (old.get("type"), old.get("status")) == (condition.type, status)
    )
    return {
        "type": condition.type,
        "status": status,
        "observedGeneration": generation,
        "lastTransitionTime": _written_time(_read_time(next(unchanged, None)) or now),
        "reason": condition.reason,
        "message": condition.message,
    }


def _read_time(written: object) -> datetime | None:
    """Return a time of this century from a stored condition; None for anything else."""
    try:
        moment = datetime.strptime(str(written), _TIME)  # noqa: DTZ007 -- it ends with Z
    except ValueError:
        return None
    return moment if moment.year // 100 == _CENTURY else None


def _written_time(moment: datetime) -> str:
    """Return a time in the only form that rdma-webhook-guard-status allows."""
    return moment.strftime(_TIME)
