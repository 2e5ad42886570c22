"""What `kubectl get fabrics` shows: whether the object is valid and in use, and what nodes have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from webhook.config.load import Loaded
from webhook.model.fabric import Fabrics
from webhook.model.inventory import FabricHoldings, take_inventory
from webhook.serve.configuration_status import (
    Condition,
    Stated,
    StatusApi,
    StatusLease,
    StatusWriter,
)
from webhook.serve.former import Nodes, PreparedConfiguration
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.pod_events import POD
from webhook.serve.sources.configuration_object import ObjectConfiguration, Observed
from webhook.serve.state import State

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
    observed: Observed | None, used: PreparedConfiguration | None, on_nodes: OnNodes
) -> Stated | None:
    """Return what the status says; None without an object."""
    if observed is None:
        return None
    names = observed.loaded.fabrics.fabrics if observed.loaded else ()
    more = {"fabricNames": ", ".join(names), **on_nodes.of(used)}
    return Stated(observed.generation, (_valid(observed), _active(observed, used)), more)


def _valid(observed: Observed) -> Condition:
    if observed.loaded is None:
        return Condition("Valid", False, "NotUsable", _cut(observed.problem))
    warnings = "\n".join(_warnings(observed.loaded))
    return Condition("Valid", True, "Accepted", _cut(warnings or "There are no findings."))


def _warnings(loaded: Loaded) -> Iterator[str]:
    for one in loaded.findings:
        yield f"{one.path}: {one.message}" if one.path else one.message
    if left_out := loaded.more.text():
        yield left_out


def _active(observed: Observed, used: PreparedConfiguration | None) -> Condition:
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
        self._told: Mapping[str, Any] = {}

    def of(self, used: PreparedConfiguration | None) -> Mapping[str, Any]:
        """Return what the nodes offer on each fabric; nothing while they are not known."""
        if used is None or not used.nodes:
            return {}
        nodes, fabrics = used.nodes, used.fabrics
        if nodes is not self._nodes or fabrics is not self._fabrics:
            self._told = _on_nodes(nodes, fabrics)
            self._nodes, self._fabrics = nodes, fabrics
        return self._told


def _on_nodes(nodes: Nodes, fabrics: Fabrics) -> dict[str, Any]:
    held = take_inventory(nodes, fabrics).fabrics
    members = {node for one in held for node in one.nodes}
    return {"nodes": len(members), "fabrics": [_row(one, nodes) for one in held]}


def _row(held: FabricHoldings, known: Nodes) -> dict[str, Any]:
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
