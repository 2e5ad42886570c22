"""The status of the FabricConfiguration, as printed by `kubectl get fabrics`, and its writer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from webhook.config.custom_resource import NAME
from webhook.config.findings import text_after_path
from webhook.config.load import Loaded
from webhook.config.model import API_VERSION, KIND
from webhook.errors import ClusterError
from webhook.model.fabric import Fabrics
from webhook.model.inventory import FabricCapacity, build_inventory
from webhook.model.json import JsonObject
from webhook.serve.events import POD_VARIABLES
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.sources.configuration_object import ObjectConfiguration, ObservedObject
from webhook.serve.state import Nodes, PreparedConfiguration, State
from webhook.text.findings import text_with_nodes

# Whether the object is valid and in use, and the resources of nodes.

#: The Lease of the manifests.
LEASE = "rdma-webhook"
#: Characters of a message: the API allows 32,768, and people read the first.
_MAX_MESSAGE_LENGTH = 4096
#: Seconds for giving the Lease back when the process ends.
_RELEASE = 3.0


class FabricStatus:
    """A source that keeps the object's status in step with the state of this replica."""

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
        """Return False: there is nothing to apply."""
        return False

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Do nothing."""


def status_writer(
    options: ServeOptions,
    configuration: object,
    state: State,
    log: Log,
    environment: Mapping[str, str],
) -> tuple[FabricStatus, ...]:
    """Return the writer of the status, if the configuration is an object and this is a pod."""
    replica = environment.get(POD_VARIABLES["name"], "")
    namespace = environment.get(POD_VARIABLES["namespace"], "")
    if not isinstance(configuration, ObjectConfiguration) or not replica or not namespace:
        return ()

    def log_failure(problem: str) -> None:
        log.write("warning", "could not write the status", problem=problem)

    node_summary = NodeSummary()
    writer = StatusWriter(
        lambda: _connect(options.kubeconfig, namespace, replica),
        lambda: status_update(configuration.observed, state.snapshot.current, node_summary),
        log_failure,
    )
    return (FabricStatus(writer),)


def _connect(
    kubeconfig: Path | None, namespace: str, replica: str
) -> tuple[StatusLease, StatusApi]:
    from webhook.kube.client import Client  # noqa: PLC0415 -- slow to import
    from webhook.kube.lease import Lease  # noqa: PLC0415

    client = Client(kubeconfig)
    return Lease(client, namespace, LEASE, replica), client


def status_update(
    observed: ObservedObject | None, used: PreparedConfiguration | None, node_summary: NodeSummary
) -> StatusUpdate | None:
    """Return the content of the status; None without an object."""
    if observed is None:
        return None
    names = observed.loaded.fabrics.fabrics if observed.loaded else ()
    fields = {"fabricNames": ", ".join(names), **node_summary.of(used)}
    return StatusUpdate(observed.generation, (_valid(observed), _active(observed, used)), fields)


def _valid(observed: ObservedObject) -> Condition:
    if observed.loaded is None:
        return Condition("Valid", False, "NotUsable", _cut(observed.problem))
    warnings = "\n".join(_warnings(observed.loaded))
    return Condition("Valid", True, "Accepted", _cut(warnings or "There are no findings."))


def _warnings(loaded: Loaded) -> Iterator[str]:
    for finding in loaded.findings:
        path = finding.location.path
        yield f"{path}: {text_after_path(finding)}" if path else finding.text
    if left_out := loaded.truncation.text():
        yield left_out


def _active(observed: ObservedObject, used: PreparedConfiguration | None) -> Condition:
    if used is None:
        message = "No fabrics are in use, so failurePolicy decides on pods that opted in."
        return Condition("Active", False, "NothingInUse", message)
    in_use = f"config {used.config_hash}"
    if observed.loaded is None:
        message = f"The last good configuration stays in use ({in_use})."
        return Condition("Active", False, "LastGoodInUse", message)
    if observed.loaded.fabrics.config_hash != used.config_hash:
        message = f"It takes effect in a moment; until then the previous one is used ({in_use})."
        return Condition("Active", False, "ComesIntoUse", message)
    return Condition("Active", True, "InUse", f"The webhook uses it ({in_use}).")


class NodeSummary:
    """The status's summary of the nodes, cached while nodes and fabrics are the same objects."""

    def __init__(self) -> None:
        self._nodes: Nodes | None = None
        self._fabrics: Fabrics | None = None
        self._summary: JsonObject = {}

    def of(self, used: PreparedConfiguration | None) -> JsonObject:
        """Return the nodes' resources on each fabric; {} while the nodes are unknown."""
        if used is None or not used.nodes:
            return {}
        nodes, fabrics = used.nodes, used.fabrics
        if nodes is not self._nodes or fabrics is not self._fabrics:
            self._summary = _summary_of(nodes, fabrics)
            self._nodes, self._fabrics = nodes, fabrics
        return self._summary


def _summary_of(nodes: Nodes, fabrics: Fabrics) -> JsonObject:
    capacities = build_inventory(nodes, fabrics).fabrics
    members = {node for fabric in capacities for node in fabric.nodes}
    return {"nodes": len(members), "fabrics": [_row(fabric, nodes) for fabric in capacities]}


def _row(capacity: FabricCapacity, nodes: Nodes) -> JsonObject:
    return {
        "name": capacity.name,
        "nodes": len(capacity.nodes),
        "gpus": sum(capacity.gpus.values()),
        "resources": [
            {
                "name": name,
                "allocatable": amount,
                "nodes": sum(name in nodes[node].resources for node in capacity.nodes),
            }
            for name, amount in capacity.resources.items()
        ],
        "problems": [text_with_nodes(finding) for finding in capacity.findings],
    }


def _cut(message: str) -> str:
    return (
        message if len(message) <= _MAX_MESSAGE_LENGTH else f"{message[: _MAX_MESSAGE_LENGTH - 1]}…"
    )


# Write changes of the FabricConfiguration's status, in one replica.
#
# The holder of a Lease writes. The status follows from its own state alone, so another replica that
# takes over writes the same.

PATH = f"/apis/{API_VERSION}/fabricconfigurations/{NAME}"
#: The minimum number of seconds between two writes: nodes may change a hundred times a second.
WRITE_INTERVAL = 10.0


class Condition(NamedTuple):
    """A condition of the status, without its time."""

    type: str
    holds: bool
    #: A word in CamelCase.
    reason: str
    message: str


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


class StatusUpdate(NamedTuple):
    """The content of the status."""

    #: metadata.generation of its object.
    generation: int
    conditions: Sequence[Condition]
    #: The other fields of the status.
    fields: JsonObject


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
