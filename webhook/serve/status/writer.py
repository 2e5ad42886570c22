"""Write changes of the FabricConfiguration's status, in one replica.

The holder of a Lease writes. The status follows from its own state alone, so another replica that
takes over writes the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from webhook.config.custom_resource import NAME
from webhook.config.model import API_VERSION, KIND
from webhook.errors import ClusterError
from webhook.model.json import JsonObject
from webhook.serve.status.content import Condition, StatusUpdate

PATH = f"/apis/{API_VERSION}/fabricconfigurations/{NAME}"
#: The minimum number of seconds between two writes: nodes may change a hundred times a second.
WRITE_INTERVAL = 10.0


class StatusLease(Protocol):
    """A Lease."""

    def held(self) -> bool:
        """Return whether this replica is the writer."""

    def release(self) -> None:
        """Let another replica write."""


class StatusApi(Protocol):
    """The API server."""

    def read(self, path: str) -> JsonObject | None:
        """Return an object; None if it does not exist."""

    def apply(self, path: str, body: JsonObject) -> bool:
        """Apply the fields of `body`, server-side; return False if the object does not exist."""


class StatusWriter:
    """Writes the status in a thread."""

    def __init__(
        self,
        connect: Callable[[], tuple[StatusLease, StatusApi]],
        content: Callable[[], StatusUpdate | None],
        failed: Callable[[str], None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Prepare; nothing is called before `start`.

        `connect` may be slow; the thread calls it until it succeeds once. `content` returns None
        without an object. `failed` is called with each new reason for a missing write.
        """
        self._connect = connect
        self._content = content
        self._failed = failed
        self._now = now
        self._connected: tuple[StatusLease, StatusApi] | None = None
        #: The last status from this replica; None while it is not the writer.
        self._written: JsonObject | None = None
        self._problem = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="status", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, without waiting for its end."""
        self._stop.set()

    def join(self, seconds: float) -> bool:
        """Wait at most `seconds` for the end of the thread; return whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.wait(WRITE_INTERVAL):
            self.step()
        if self._connected is not None:
            self._connected[0].release()

    def step(self) -> None:
        """Write a changed status if this replica is the writer; never raises."""
        problem = ""
        try:
            self._write_changes()
        except ClusterError as error:
            self._written, problem = None, str(error)
        except Exception as error:  # noqa: BLE001 -- nobody else writes if this thread ends
            self._written, problem = None, f"internal error: {type(error).__name__}"
        if problem and problem != self._problem:
            self._failed(problem)
        self._problem = problem

    def _write_changes(self) -> None:
        if self._connected is None:
            self._connected = self._connect()
        lease, api = self._connected
        update = self._content() if lease.held() else None
        if update is None:
            self._written = None
            return
        if self._written is None:
            self._written = _status_of(api.read(PATH))
        status = _status(update, self._written, self._now())
        if status == self._written:
            return
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": NAME}}
        stored = api.apply(f"{PATH}/status", {**body, "status": status})
        self._written = status if stored else None  # the object may have been deleted just now


def _status_of(manifest: JsonObject | None) -> JsonObject:
    """Return the status written by another replica or an earlier process."""
    status = manifest.get("status") if manifest else None
    return status if isinstance(status, dict) else {}


def _status(update: StatusUpdate, before: JsonObject, now: datetime) -> JsonObject:
    conditions = [
        _condition(condition, update.generation, before, now) for condition in update.conditions
    ]
    return {"observedGeneration": update.generation, "conditions": conditions, **update.fields}


def _condition(
    condition: Condition, generation: int, before: JsonObject, now: datetime
) -> JsonObject:
    """Return a condition with the time of its last change from true to false or back."""
    status = "True" if condition.holds else "False"
    conditions = before.get("conditions") or ()
    unchanged = (
        old
        for old in conditions
        if (old.get("type"), old.get("status")) == (condition.type, status)
    )
    previous: JsonObject = next(unchanged, {})
    since = previous.get("lastTransitionTime") or now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": condition.type,
        "status": status,
        "observedGeneration": generation,
        "lastTransitionTime": since,
        "reason": condition.reason,
        "message": condition.message,
    }
