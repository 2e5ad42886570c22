"""The metrics of a server, in its own registry.

Label values come from closed sets (endpoints, status codes, names and reason codes of the code,
fabrics of the configuration), never from a request, so the number of series is bounded.
docs/operation.md has the rule of their names.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Literal, NamedTuple, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.process_collector import ProcessCollector

from webhook import __version__
from webhook.model.decision import Decision
from webhook.serve.traffic_metrics import TrafficMetrics
from webhook.serve.watch_metrics import Watches

disable_created_metrics()  # type: ignore[no-untyped-call] # one more series for each counter

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: The reason for the end of a worker: nobody waited for its answer any more (the client left, or
#: a validation came first), it crashed, its answer was malformed, the server stopped, or it took
#: too long.
WorkerEnd = Literal["client", "crash", "malformed", "stop", "timeout"]
WORKER_ENDS: tuple[WorkerEnd, ...] = get_args(WorkerEnd)


class FabricNodeCounts(NamedTuple):
    """The numbers of nodes of a fabric: nodes that take pods, and the others."""

    nodes: int
    #: Those of `nodes` that lack an RDMA resource of the fabric.
    without_resource: int
    unavailable: int


class Metrics:
    """The metrics of the server; `status` and `waiting_requests` add theirs to the registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._traffic = TrafficMetrics()
        self.registry.register(self._traffic)
        #: The informers, added by the sources that own them.
        self.watches = Watches()
        self.registry.register(self.watches)
        self.internal_errors = Counter(
            "rdma_webhook_internal_errors",
            "Internal errors (defects of the webhook); a request is then answered with HTTP 500.",
            registry=self.registry,
        )
        self.event_failures = Counter(
            "rdma_webhook_event_failures",
            "Kubernetes Events that could not be created; the log has the reason.",
            registry=self.registry,
        )
        self.guarded = Gauge(
            "rdma_webhook_guarded",
            "1 if dry runs confirm that the webhook's account can change only caBundle of its "
            "webhook configuration; 0 if it can change more: the policy rdma-webhook-guard is "
            "missing.",
            ["kind"],
            registry=self.registry,
        )
        self.called = Gauge(
            "rdma_webhook_called",
            "1 if the webhook configuration makes the API server call this webhook; 0 if it is "
            "missing, selects other objects, calls a different Service, or has a different CA.",
            ["webhook"],
            registry=self.registry,
        )
        self.worker = WorkerMetrics(self.registry)
        self.decision_cache = DecisionCacheMetrics(self.registry)
        self.configuration = ConfigurationMetrics(self.registry)
        self.fabrics = FabricGauges(self.registry)
        self.certificates = CertificateGauges(self.registry)
        _show_versions(self.registry)

    @cached_property
    def lease(self) -> LeaseGauges:
        """The gauges of the Lease, which exist only in a replica that tries to hold it."""
        return LeaseGauges(self.registry)

    def connection_opened(self, listener: str) -> None:
        """Count an accepted connection; `listener` comes from a closed set."""
        self._traffic.connections(listener).inc()

    def connection_closed(self, listener: str, reason: str) -> None:
        """Count the end of a connection; `reason` comes from a closed set."""
        self._traffic.connections(listener).dec()
        self._traffic.closed(listener, reason).inc()

    def count_request(self, endpoint: str, code: int, seconds: float) -> None:
        """Count a request; `endpoint` and `code` come from closed sets."""
        self._traffic.requests(endpoint, code).inc()
        self._traffic.durations(endpoint).observe(seconds)

    def count_decision(self, decision: Decision) -> None:
        """Count a decision and the outcomes of its mutations."""
        allowed = str(decision.allowed).lower()
        rdma = decision.verdict.rdma if decision.verdict else ""
        fabric = decision.fabric or ""
        self._traffic.decisions(allowed, decision.reason.code, rdma, fabric).inc()
        self._traffic.outcomes.update(
            [
                (outcome.mutation, outcome.status, outcome.reason.code)
                for outcome in decision.outcomes
            ]
        )

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class WorkerMetrics:
    """Gauges and counters of the worker, which computes previews and validations."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.previews_pending = Gauge(
            "rdma_webhook_previews_pending",
            "Previews that are waiting or running.",
            registry=registry,
        )
        validations = Counter(
            "rdma_webhook_validations",
            "Configurations that the API server sent for validation, by whether they were allowed.",
            ["allowed"],
            registry=registry,
        )
        ends = Counter(
            "rdma_webhook_worker_ends",
            "Exits of the process that computes previews and validations; the next request starts "
            "another.",
            ["reason"],
            registry=registry,
        )
        self._validations = {
            allowed: validations.labels(str(allowed).lower()) for allowed in (True, False)
        }
        self._ends = {reason: ends.labels(reason) for reason in WORKER_ENDS}

    def count_validation(self, *, allowed: bool) -> None:
        """Count a configuration that was checked, or accepted without a check."""
        self._validations[allowed].inc()

    def count_end(self, reason: WorkerEnd) -> None:
        """Count an end of the worker."""
        self._ends[reason].inc()


class DecisionCacheMetrics:
    """Counters of the cache of decisions."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        self.hits = counter(
            "rdma_webhook_decision_cache_hits",
            "Pods whose decision was made for another pod of the same workload.",
        )
        self.misses = counter(
            "rdma_webhook_decision_cache_misses",
            "Pods whose decision was made for them, and kept.",
        )
        self.evictions = counter(
            "rdma_webhook_decision_cache_evictions",
            "Decisions that were dropped for newer ones.",
        )
        self.differences = counter(
            "rdma_webhook_decision_cache_differences",
            "Kept decisions that differed from a new one (a defect of the webhook); after the "
            "first, no decision is kept until the next start.",
        )


class ConfigurationMetrics:
    """Metrics of the configuration in use: its hash, its age, and whether it is the latest one."""

    def __init__(self, registry: CollectorRegistry) -> None:
        gauge = partial(Gauge, registry=registry)
        self.loads = Counter(
            "rdma_webhook_config_loads",
            "Configurations that have come into use.",
            registry=registry,
        )
        self.configured = gauge(
            "rdma_webhook_configured",
            "1 if the webhook has fabrics; 0 if it has none, so failurePolicy applies to each pod "
            "that opted in.",
        )
        self._info = gauge(
            "rdma_webhook_config_info",
            "Always 1; the label has the hash of the configuration in use.",
            ["config"],
        )
        self.reloaded = gauge(
            "rdma_webhook_config_last_reload_success_timestamp_seconds",
            "Time at which the configuration in use was loaded; its age is time() minus this.",
        )
        self.successful = gauge(
            "rdma_webhook_config_last_reload_successful",
            "1 if the latest configuration is in use, 0 if it cannot be used; an earlier one, if "
            "any, then stays in use.",
        )

    def show_hash(self, config_hash: str) -> None:
        """Show the hash of the configuration in use; "" without one."""
        self._info.clear()
        if config_hash:
            self._info.labels(config_hash).set(1)


class FabricGauges:
    """Gauges of the nodes of each fabric in use; they have no series while nodes are unknown."""

    def __init__(self, registry: CollectorRegistry) -> None:
        gauge = partial(Gauge, labelnames=["fabric"], registry=registry)
        #: In the order of FabricNodeCounts.
        self._gauges = (
            gauge("rdma_webhook_fabric_nodes", "Nodes of the fabric that take pods."),
            gauge(
                "rdma_webhook_fabric_nodes_without_resource",
                "Nodes of the fabric that take pods, but lack one of its RDMA resources.",
            ),
            gauge(
                "rdma_webhook_fabric_nodes_unavailable",
                "Nodes of the fabric that take no pods: cordoned, not ready or tainted by "
                "Kubernetes.",
            ),
        )

    def show(self, nodes: Mapping[str, FabricNodeCounts]) -> None:
        """Replace all series by these; the keys are names of fabrics."""
        for gauge in self._gauges:
            gauge.clear()
        for fabric, counts in nodes.items():
            for gauge, count in zip(self._gauges, counts, strict=True):
                gauge.labels(fabric).set(count)


class LeaseGauges:
    """Gauges of the Lease, whose holder writes the status of the FabricConfiguration."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.held = Gauge(
            "rdma_webhook_lease_held",
            "1 on the replica that holds the Lease and writes the FabricConfiguration's status, "
            "otherwise 0.",
            registry=registry,
        )
        self.successful = Gauge(
            "rdma_webhook_lease_last_check_successful",
            "1 if this replica could read the Lease and, if it holds the Lease, renew it; 0 if the "
            "Lease does not exist, the right to use it is missing, or the API server does not "
            "answer.",
            registry=registry,
        )


class CertificateGauges:
    """Gauges of the certificates: their expiry and problems."""

    def __init__(self, registry: CollectorRegistry) -> None:
        gauge = partial(Gauge, registry=registry)
        self.not_after = gauge(
            "rdma_webhook_certificate_not_after_timestamp_seconds",
            "Time at which the serving certificate expires; 0 without one.",
        )
        self.successful = gauge(
            "rdma_webhook_certificate_last_update_successful",
            "1 if there is no problem with the certificates' files, the Secret or caBundle; "
            "otherwise 0.",
        )
        self.ca_not_after = gauge(
            "rdma_webhook_ca_not_after_timestamp_seconds",
            "Time at which the CA in the Secret expires; 0 if the webhook does not manage a CA.",
        )
        self.ca_rotating = gauge(
            "rdma_webhook_ca_rotating",
            "1 during a rotation of the CA, while the old and the new one are trusted; "
            "otherwise 0.",
        )
        self.watched = gauge(
            "rdma_webhook_certificate_watched",
            "1 while the webhook watches the Secret and the configurations that its own "
            "certificates depend on, 0 if it reads them every few seconds instead.",
        )


def _show_versions(registry: CollectorRegistry) -> None:
    build = Gauge(
        "rdma_webhook_build_info",
        "Always 1; the labels have the versions of the webhook and of Python.",
        ["version", "python"],
        registry=registry,
    )
    build.labels(__version__, platform.python_version()).set(1)
