"""The content of the status: whether the object is valid and in use, and the nodes' resources."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from webhook.config.findings import text_after_path
from webhook.config.load import LoadedConfiguration
from webhook.config.replica_reports import ReplicaReport
from webhook.model.fabric import CompiledConfiguration
from webhook.model.finding import Finding
from webhook.model.inventory import FabricCapacity, build_inventory
from webhook.model.json import JsonObject
from webhook.model.names import counted, shortened_list
from webhook.model.quantity import MAX_QUANTITY
from webhook.serve.sources.configuration_object import ObservedObject
from webhook.serve.state import Nodes, PreparedConfiguration
from webhook.text.escape import visible, visible_lines
from webhook.text.findings import text_with_nodes

#: Characters of a message: the API allows 32,768, and people read the first.
_MAX_MESSAGE_LENGTH = 4096
#: The maximum number of replicas in a message, and of fabrics in the list of their names.
_MAX_REPLICAS, _MAX_FABRICS = 10, 100
#: Bytes of the rows of fabrics, as JSON: half of what rdma-webhook-guard-status allows in all, so
#: that a status is written however many fabrics there are.
_MAX_ROWS_BYTES = 128 << 10
#: Rows, and the items of each list of a row, that the policy allows.
_MAX_ITEMS = 1000
#: Bytes that JSON of the API server has more than one for `<`, `>` and `&`.
_ESCAPED_BYTES = 5


class Condition(NamedTuple):
    """A condition of the status, without its time."""

    type: str
    #: None if that is unknown.
    holds: bool | None
    #: A word in CamelCase.
    reason: str
    message: str


class StatusUpdate(NamedTuple):
    """The content of the status."""

    #: metadata.generation of its object.
    generation: int
    conditions: Sequence[Condition]
    #: The other fields of the status.
    fields: JsonObject
    #: The status of the object, and its metadata.resourceVersion, as the watch delivered them.
    stored: Mapping[str, object] = MappingProxyType({})
    version: str = ""


def status_update(
    observed: ObservedObject | None,
    used: PreparedConfiguration | None,
    node_summary: NodeSummary,
    replicas: Mapping[str, ReplicaReport],
    called: Condition | None = None,
) -> StatusUpdate | None:
    """Return the content of the status; None without an object.

    `replicas`: the reports of the running replicas, by the names of their pods. `called`: whether
    the API server calls the webhook; None before the first check.
    """
    if observed is None:
        return None
    configuration = (
        observed.loaded_configuration.compiled
        if observed.loaded_configuration
        else used and used.compiled
    )
    fields = {
        "fabricNames": shortened_list(
            list(configuration.fabrics) if configuration else [], _MAX_FABRICS
        ),
        **node_summary.of(used),
    }
    conditions = (*filter(None, (_valid(observed), _active(observed, used), called)),)
    ready = _ready(observed, conditions, replicas)
    escaped = [
        condition._replace(message=_cut(condition.message)) for condition in (ready, *conditions)
    ]
    return StatusUpdate(observed.generation, escaped, fields, observed.status, observed.version)


def _ready(
    observed: ObservedObject,
    conditions: Iterable[Condition],
    replicas: Mapping[str, ReplicaReport],
) -> Condition:
    """Return whether the object decides on pods, on every replica: for `kubectl wait`."""
    for condition in conditions:
        if condition.holds is False:
            return Condition("Ready", False, condition.reason, condition.message)
    behind = [
        f"{name} (generation {report.generation})"
        for name, report in replicas.items()
        if report.generation != observed.generation
    ]
    if behind:
        verb = "does" if len(behind) == 1 else "do"
        message = (
            f"{len(behind)} of {counted(len(replicas), 'replica')} {verb} not use generation "
            f"{observed.generation} yet: {shortened_list(behind, _MAX_REPLICAS)}."
        )
        return Condition("Ready", False, "ReplicasDiffer", message)
    return Condition("Ready", True, "Ready", "Every replica uses this configuration.")


def _valid(observed: ObservedObject) -> Condition:
    if observed.loaded_configuration is None:
        return Condition("Valid", False, "NotUsable", observed.problem)
    warnings = "\n".join(_warnings(observed.loaded_configuration))
    return Condition("Valid", True, "Accepted", warnings or "There are no findings.")


def _warnings(loaded_configuration: LoadedConfiguration) -> Iterator[str]:
    for finding in loaded_configuration.findings:
        path = finding.location.path
        yield f"{path}: {text_after_path(finding)}" if path else finding.text
    if left_out := loaded_configuration.truncation.text():
        yield left_out


def _active(observed: ObservedObject, used: PreparedConfiguration | None) -> Condition:
    if used is None:
        message = "No fabrics are in use, so failurePolicy applies to pods that opted in."
        return Condition("Active", False, "NothingInUse", message)
    in_use = f"config {used.config_hash}"
    if observed.loaded_configuration is None:
        message = f"The last good configuration stays in use ({in_use})."
        return Condition("Active", False, "LastGoodInUse", message)
    if observed.loaded_configuration.compiled.config_hash != used.config_hash:
        message = (
            "This configuration takes effect in a few seconds; until then the previous one is in "
            f"use ({in_use})."
        )
        return Condition("Active", False, "ComesIntoUse", message)
    return Condition("Active", True, "InUse", f"The webhook uses this configuration ({in_use}).")


class NodeSummary:
    """The status's summary of the nodes, cached while nodes and fabrics are the same objects."""

    def __init__(self) -> None:
        #: Replaced as a whole, so any thread may read it.
        self._cached: tuple[Nodes, CompiledConfiguration, JsonObject] | None = None

    def of(self, used: PreparedConfiguration | None) -> JsonObject:
        """Return the nodes' resources on each fabric; {} while the nodes are unknown."""
        if used is None or not used.nodes:
            return {}
        nodes, configuration, cached = used.nodes, used.compiled, self._cached
        if cached is None or cached[0] is not nodes or cached[1] is not configuration:
            cached = self._cached = (nodes, configuration, _summary_of(nodes, configuration))
        return cached[2]


def _summary_of(nodes: Nodes, configuration: CompiledConfiguration) -> JsonObject:
    capacities = build_inventory(nodes, configuration).fabrics
    members = {node for fabric in capacities for node in fabric.nodes}
    problems = sum(len(fabric.problems) for fabric in capacities)
    rows = _fitting(_row(fabric, nodes) for fabric in capacities[:_MAX_ITEMS])
    return {"nodes": len(members), "problems": problems, "fabrics": [*rows]}


def _fitting(rows: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Yield the first rows, as many as fit."""
    free_bytes = _MAX_ROWS_BYTES
    for row in rows:
        text = json.dumps(row, ensure_ascii=False)
        free_bytes -= len(text.encode()) + _ESCAPED_BYTES * sum(map(text.count, "<>&"))
        if free_bytes < 0:
            return
        yield row


def _row(capacity: FabricCapacity, nodes: Nodes) -> JsonObject:
    """Return the row of a fabric; its amounts fit into the kind's fields, whatever nodes report."""
    return {
        "name": capacity.name,
        "nodes": len(capacity.nodes),
        "unavailableNodes": len(capacity.unavailable_nodes),
        "gpus": min(sum(capacity.gpus.values()), MAX_QUANTITY),
        "resources": [
            {
                "name": name,
                "allocatable": min(amount, MAX_QUANTITY),
                "nodes": sum(name in nodes[node].resources for node in capacity.nodes),
            }
            for name, amount in islice(capacity.resources.items(), _MAX_ITEMS)
        ],
        "problems": _sentences(capacity.problems),
        "notes": _sentences(capacity.notes),
    }


def _sentences(findings: Sequence[Finding]) -> list[str]:
    return [visible(text_with_nodes(finding)) for finding in findings[:_MAX_ITEMS]]


def _cut(message: str) -> str:
    """Return the start of a message, with the characters that rdma-webhook-guard-status allows."""
    message = visible_lines(message)
    return (
        message if len(message) <= _MAX_MESSAGE_LENGTH else f"{message[: _MAX_MESSAGE_LENGTH - 1]}…"
    )
