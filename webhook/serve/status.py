"""The status of the FabricConfiguration: what `kubectl get fabrics` shows, and who writes it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from webhook.config.custom_resource import NAME
from webhook.config.load import Loaded
from webhook.config.model import API_VERSION, KIND
from webhook.errors import ClusterError
from webhook.model.fabric import Fabrics
from webhook.model.inventory import FabricCapacity, build_inventory
from webhook.model.json import JsonObject
from webhook.serve.events import POD
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.sources.configuration_object import ObjectConfiguration, ObservedObject
from webhook.serve.state import Nodes, PreparedConfiguration, State

# Whether the object is valid and in use, and what nodes have.

#: The Lease of the manifests.
LEASE = "rdma-webhook"
#: Characters of a message: the API allows 32,768, and people read the first.
_LONGEST = 4096
#: Seconds to give the Lease back when the process ends.
_RELEASE = 3.0


class FabricStatus:
    """Keeps the object's status in step with what this replica knows."""

    def __init__(self, writer: StatusWriter) -> None:
        self._writer = writer

    def start(self) -> None:
        """Start the thread."""
        self._writer.start()

    def stop(self) -> None:
        """Give the Lease back, and end the thread."""
        self._writer.stop()
        self._writer.join(_RELEASE)

    def poll(self) -> bool:
        """Return False: nothing comes from here."""
        return False

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Do nothing."""


def fabric_status_of(
    options: ServeOptions,
    configuration: object,
    state: State,
    log: Log,
    environment: Mapping[str, str],
) -> tuple[FabricStatus, ...]:
    """Return what writes the status, if the configuration is an object and this is a pod."""
    replica, space = (environment.get(POD[field], "") for field in ("name", "namespace"))
    if not isinstance(configuration, ObjectConfiguration) or not replica or not space:
        return ()

    def failed(problem: str) -> None:
        log.write("warning", "could not write the status", problem=problem)

    on_nodes = OnNodes()
    writer = StatusWriter(
        lambda: _connect(options.kubeconfig, space, replica),
        lambda: stated(configuration.observed, state.snapshot.current, on_nodes),
        failed,
    )
    return (FabricStatus(writer),)


def _connect(kubeconfig: Path | None, space: str, replica: str) -> tuple[StatusLease, StatusApi]:
    from webhook.kube.client import Client  # noqa: PLC0415 -- slow to import
    from webhook.kube.lease import Lease  # noqa: PLC0415

    client = Client(kubeconfig)
    return Lease(client, space, LEASE, replica), client


def stated(
    observed: ObservedObject | None, used: PreparedConfiguration | None, on_nodes: OnNodes
) -> StatusUpdate | None:
    """Return what the status says; None without an object."""
    if observed is None:
        return None
    names = observed.loaded.fabrics.fabrics if observed.loaded else ()
    more = {"fabricNames": ", ".join(names), **on_nodes.of(used)}
    return StatusUpdate(observed.generation, (_valid(observed), _active(observed, used)), more)


def _valid(observed: ObservedObject) -> Condition:
    if observed.loaded is None:
        return Condition("Valid", False, "NotUsable", _cut(observed.problem))
    warnings = "\n".join(_warnings(observed.loaded))
    return Condition("Valid", True, "Accepted", _cut(warnings or "There are no findings."))


def _warnings(loaded: Loaded) -> Iterator[str]:
    for one in loaded.findings:
        yield f"{one.path}: {one.message}" if one.path else one.message
    if left_out := loaded.more.text():
        yield left_out


def _active(observed: ObservedObject, used: PreparedConfiguration | None) -> Condition:
    if used is None:
        said = "No fabrics are in use, so pods that opted in are left to failurePolicy."
        return Condition("Active", False, "NothingInUse", said)
    in_use = f"config {used.config_hash}"
    if observed.loaded is None:
        said = f"The last good configuration stays in use ({in_use})."
        return Condition("Active", False, "LastGoodInUse", said)
    if observed.loaded.fabrics.config_hash != used.config_hash:
        said = f"It comes into use in a moment; until then, the last one is ({in_use})."
        return Condition("Active", False, "ComesIntoUse", said)
    return Condition("Active", True, "InUse", f"Pods are decided by it ({in_use}).")


class OnNodes:
    """What the status says of nodes, computed only where nodes or fabrics are other objects."""

    def __init__(self) -> None:
        self._nodes: Nodes | None = None
        self._fabrics: Fabrics | None = None
        self._told: JsonObject = {}

    def of(self, used: PreparedConfiguration | None) -> JsonObject:
        """Return what the nodes offer on each fabric; nothing while they are not known."""
        if used is None or not used.nodes:
            return {}
        nodes, fabrics = used.nodes, used.fabrics
        if nodes is not self._nodes or fabrics is not self._fabrics:
            self._told = _on_nodes(nodes, fabrics)
            self._nodes, self._fabrics = nodes, fabrics
        return self._told


def _on_nodes(nodes: Nodes, fabrics: Fabrics) -> JsonObject:
    held = build_inventory(nodes, fabrics).fabrics
    members = {node for one in held for node in one.nodes}
    return {"nodes": len(members), "fabrics": [_row(one, nodes) for one in held]}


def _row(held: FabricCapacity, known: Nodes) -> JsonObject:
    return {
        "name": held.name,
        "nodes": len(held.nodes),
        "gpus": sum(held.gpus.values()),
        "resources": [
            {
                "name": name,
                "allocatable": many,
                "nodes": sum(name in known[node].resources for node in held.nodes),
            }
            for name, many in held.resources.items()
        ],
        "problems": [problem.text for problem in held.problems],
    }


def _cut(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…"


# Write the status of the FabricConfiguration: by one replica, and only what has changed.
#
# Whether a replica is the one to write is asked of a Lease. All that it writes follows from what
# it knows itself, so another one that takes over writes the same.

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

    def read(self, path: str) -> JsonObject | None:
        """Return an object; None if there is none."""

    def apply(self, path: str, body: JsonObject) -> bool:
        """Apply the fields of `body`, server-side; False if there is no such object."""


class StatusUpdate(NamedTuple):
    """What the status should say."""

    #: metadata.generation of the object that it is about.
    generation: int
    conditions: Sequence[Condition]
    #: The other fields of the status.
    more: JsonObject


class StatusWriter:
    """Writes the status in a thread."""

    def __init__(
        self,
        connect: Callable[[], tuple[StatusLease, StatusApi]],
        tell: Callable[[], StatusUpdate | None],
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
        self._written: JsonObject | None = None
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


def _status_of(item: JsonObject | None) -> JsonObject:
    """Return the status that another replica, or an earlier process, has written."""
    found = item.get("status") if item else None
    return found if isinstance(found, dict) else {}


def _status(told: StatusUpdate, before: JsonObject, now: datetime) -> JsonObject:
    conditions = [_condition(one, told.generation, before, now) for one in told.conditions]
    return {"observedGeneration": told.generation, "conditions": conditions, **told.more}


def _condition(one: Condition, generation: int, before: JsonObject, now: datetime) -> JsonObject:
    """Write a condition; its time is that of the last change from true to false or back."""
    status = "True" if one.holds else "False"
    listed = before.get("conditions") or ()
    same = (old for old in listed if (old.get("type"), old.get("status")) == (one.type, status))
    found: JsonObject = next(same, {})
    since = found.get("lastTransitionTime") or now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": one.type,
        "status": status,
        "observedGeneration": generation,
        "lastTransitionTime": since,
        "reason": one.reason,
        "message": one.message,
    }
