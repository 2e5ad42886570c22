"""Write the status of the FabricConfiguration: by one replica, and only what has changed.

Whether a replica is the one to write is asked of a Lease. All that it writes follows from what it
knows itself, so another one that takes over writes the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from webhook.config.custom_resource import NAME
from webhook.config.model import API_VERSION, KIND
from webhook.errors import ClusterError

Object = dict[str, Any]

PATH = f"/apis/{API_VERSION}/fabricconfigurations/{NAME}"
#: Seconds between two writes, at least: nodes may change a hundred times a second.
EVERY = 10.0


class Condition(NamedTuple):
    """A condition of the status, without its time."""

    type: str
    holds: bool
    #: One word in CamelCase.
    reason: str
    message: str


class StatusLease(Protocol):
    """A Lease."""

    def held(self) -> bool:
        """Return whether this replica is the one to write."""

    def release(self) -> None:
        """Let another replica write."""


class StatusApi(Protocol):
    """The API server."""

    def read(self, path: str) -> Object | None:
        """Return an object; None if there is none."""

    def apply(self, path: str, body: Object) -> bool:
        """Apply the fields of `body`, server-side; False if there is no such object."""


class Stated(NamedTuple):
    """What the status should say."""

    #: metadata.generation of the object that it is about.
    generation: int
    conditions: Sequence[Condition]
    #: The other fields of the status.
    more: Mapping[str, Any]


class StatusWriter:
    """Writes the status in a thread."""

    def __init__(
        self,
        connect: Callable[[], tuple[StatusLease, StatusApi]],
        tell: Callable[[], Stated | None],
        failed: Callable[[str], None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Prepare; nothing is called before `start`.

        `connect` may be slow, and is called in the thread until it succeeds once. `tell`: None if
        there is no object. `failed` is called with each new reason why the status was not written.
        """
        self._connect = connect
        self._tell = tell
        self._failed = failed
        self._now = now
        self._connected: tuple[StatusLease, StatusApi] | None = None
        #: What this replica has written last; None if it is not the one to write.
        self._written: Object | None = None
        self._problem = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="status", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; does not wait until it has."""
        self._stop.set()

    def join(self, seconds: float) -> bool:
        """Wait until the thread has ended, at most `seconds`; return whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.wait(EVERY):
            self.step()
        if self._connected is not None:
            self._connected[0].release()

    def step(self) -> None:
        """Write the status if this replica is to do it and anything has changed; never raises."""
        problem = ""
        try:
            self._write_what_changed()
        except ClusterError as error:
            self._written, problem = None, str(error)
        except Exception as error:  # noqa: BLE001 -- nobody else writes if this thread ends
            self._written, problem = None, f"internal error: {type(error).__name__}"
        if problem and problem != self._problem:
            self._failed(problem)
        self._problem = problem

    def _write_what_changed(self) -> None:
        if self._connected is None:
            self._connected = self._connect()
        lease, api = self._connected
        told = self._tell() if lease.held() else None
        if told is None:
            self._written = None
            return
        if self._written is None:
            self._written = _status_of(api.read(PATH))
        status = _status(told, self._written, self._now())
        if status == self._written:
            return
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": NAME}}
        stored = api.apply(f"{PATH}/status", {**body, "status": status})
        self._written = status if stored else None  # the object may have been deleted just now


def _status_of(item: Object | None) -> Object:
    """Return the status that another replica, or an earlier process, has written."""
    found = item.get("status") if item else None
    return found if isinstance(found, dict) else {}


def _status(told: Stated, before: Object, now: datetime) -> Object:
    conditions = [_condition(one, told.generation, before, now) for one in told.conditions]
    return {"observedGeneration": told.generation, "conditions": conditions, **told.more}


def _condition(one: Condition, generation: int, before: Object, now: datetime) -> Object:
    """Write a condition; its time is that of the last change from true to false or back."""
    status = "True" if one.holds else "False"
    listed = before.get("conditions") or ()
    same = (old for old in listed if (old.get("type"), old.get("status")) == (one.type, status))
    found: Object = next(same, {})
    since = found.get("lastTransitionTime") or now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": one.type,
        "status": status,
        "observedGeneration": generation,
        "lastTransitionTime": since,
        "reason": one.reason,
        "message": one.message,
    }
