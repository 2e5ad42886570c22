"""The status of the FabricConfiguration, as printed by `kubectl get fabrics`, and its writer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client import Gauge

from webhook import __version__
from webhook.serve.events import POD_VARIABLES
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.sources.configuration_object import ObjectConfiguration
from webhook.serve.state import State
from webhook.serve.status.content import NodeSummary, ReplicaReport, StatusUpdate, status_update
from webhook.serve.status.own import OwnPart
from webhook.serve.status.replicas import live_reports, replica_reports
from webhook.serve.status.writer import HoldersPart, StatusApi, StatusLease, StatusWriter

#: The Lease of the manifests.
LEASE = "rdma-webhook"
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
    metrics: Metrics,
    log: Log,
    *,
    environment: Mapping[str, str],
) -> tuple[FabricStatus, ...]:
    """Return the writer of the status, if the configuration is an object and this is a pod."""
    replica = environment.get(POD_VARIABLES["name"], "")
    namespace = environment.get(POD_VARIABLES["namespace"], "")
    if not isinstance(configuration, ObjectConfiguration) or not replica or not namespace:
        return ()

    def content() -> StatusUpdate | None:
        observed = configuration.observed
        stored = replica_reports(observed.status) if observed else {}
        live = live_reports(stored, datetime.now(UTC)) | {replica: report()}
        return status_update(observed, state.snapshot.current, node_summary, live)

    def report() -> ReplicaReport:
        current = state.snapshot.current
        config = current.config_hash if current else ""
        return ReplicaReport(config, configuration.used_generation, __version__)

    node_summary = NodeSummary()
    own = OwnPart(replica, lambda: configuration.observed, report)
    writer = StatusWriter(
        lambda: _connect(options.kubeconfig, namespace, replica),
        (own, HoldersPart(content)),
        _WriteReport(metrics, log),
    )
    return (FabricStatus(writer),)


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


def _connect(
    kubeconfig: Path | None, namespace: str, replica: str
) -> tuple[StatusLease, StatusApi]:
    from webhook.kube.client import Client  # noqa: PLC0415 -- slow to import
    from webhook.kube.lease import Lease  # noqa: PLC0415

    client = Client(kubeconfig)
    return Lease(client, namespace, LEASE, replica), client
