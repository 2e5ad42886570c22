"""The status of the FabricConfiguration, as printed by `kubectl get fabrics`, and its writer.

`content` has the conditions, the fabrics and their nodes, which one replica writes: the holder of
`lease`. `own_part` and `replicas` have what each replica writes, and `call_check` whether the API
server calls the webhook. `events` reports each change of a condition. Start with `writer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from prometheus_client import Gauge

from webhook import __version__
from webhook.config.replica_reports import ReplicaReport, live_reports, replica_reports
from webhook.kube.access import connect
from webhook.kube.events import EventApi
from webhook.serve.events import POD_VARIABLES, event_failure_reporter
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.sources.configuration_object import ObjectConfiguration
from webhook.serve.sources.source import Source
from webhook.serve.state import State
from webhook.serve.status.call_check import call_check_of
from webhook.serve.status.content import (
    Condition,
    NodeSummary,
    StatusUpdate,
    status_update,
)
from webhook.serve.status.events import ConditionEvents, event_conditions
from webhook.serve.status.lease import lease_of
from webhook.serve.status.own_part import OwnPart
from webhook.serve.status.writer import HoldersPart, StatusWriter


def status_writer(
    options: ServeOptions,
    configuration: object,
    state: State,
    metrics: Metrics,
    log: Log,
    *,
    chain: Callable[[], bytes],
    environment: Mapping[str, str],
) -> tuple[Source, ...]:
    """Return the writer of the status, if the configuration is an object and this is a pod.

    With it come the sources that only an installation needs: the Lease, the check whether the
    webhook is called, and the Events. `chain` returns the served certificate with its chain.
    """
    replica = environment.get(POD_VARIABLES["name"], "")
    namespace = environment.get(POD_VARIABLES["namespace"], "")
    if not isinstance(configuration, ObjectConfiguration) or not replica or not namespace:
        return ()

    def content() -> StatusUpdate | None:
        observed = configuration.observed_object
        stored = replica_reports(observed.status) if observed else {}
        live = live_reports(stored, datetime.now(UTC)) | {replica: report()}
        used = state.snapshot.current_configuration
        return status_update(observed, used, node_summary, live, calls.condition())

    def report() -> ReplicaReport:
        current = state.snapshot.current_configuration
        config = current.config_hash if current else ""
        return ReplicaReport(config, configuration.used_generation, __version__)

    def conditions() -> Iterator[Condition]:
        absence = configuration.reason_without_fabrics if configuration.check().ready else ""
        yield from event_conditions(content(), absence)
        yield from filter(None, (calls.condition(), lease.condition()))

    node_summary = NodeSummary()
    own = OwnPart(replica, lambda: configuration.observed_object, report)
    lease = lease_of(options, replica=replica, namespace=namespace)
    calls = call_check_of(options, environment, chain, replica)
    writer = StatusWriter(
        lambda: (lease, connect(options.kubeconfig)),
        (own, HoldersPart(content)),
        _WriteReport(metrics, log),
    )
    events = ConditionEvents(
        conditions,
        EventApi(lambda: connect(options.kubeconfig)),
        replica,
        event_failure_reporter(metrics, log),
    )
    return (lease, calls, writer, events)


class _WriteReport:
    """A report on the writes: a metric, and a line of the log for each new problem."""

    def __init__(self, metrics: Metrics, log: Log) -> None:
        self._log = log
        self._problem = ""
        self._successful = Gauge(
            "rdma_webhook_status_last_write_successful",
            "1 if this replica could write its part of the FabricConfiguration's status, 0 if not.",
            registry=metrics.registry,
        )

    def __call__(self, problem: str) -> None:
        if problem and problem != self._problem:
            self._log.write("warning", "could not write the status", problem=problem)
        self._problem = problem
        self._successful.set(not problem)
