"""The metrics of one server, in its own registry.

Label values come from closed sets (endpoints, status codes, names and reason codes of the
code), never from a request, so the number of series is bounded.
"""

from __future__ import annotations

import platform

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.process_collector import ProcessCollector

from webhook import __version__
from webhook.app.observe.certificate_gauges import CertificateGauges
from webhook.app.observe.configuration_gauges import ConfigurationGauges
from webhook.app.observe.counts import Counts
from webhook.app.observe.watched import Watches
from webhook.app.observe.worker_metrics import WorkerMetrics
from webhook.decision.outcome import Decision

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """All metrics of the server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._counts = Counts()
        self.registry.register(self._counts)
        #: Each source adds the feed that it watches.
        self.watches = Watches()
        self.registry.register(self.watches)
        self.internal_errors = Counter(
            "rdma_webhook_internal_errors",
            "Internal errors (defects of the webhook), each answered with HTTP 500.",
            registry=self.registry,
        )
        self.guarded = Gauge(
            "rdma_webhook_guarded",
            "1 if the webhook's account may change nothing of its webhook configuration but "
            "caBundle, as it has tried itself; 0 if it may: the policy rdma-webhook-guard is "
            "missing.",
            ["kind"],
            registry=self.registry,
        )
        self.worker = WorkerMetrics(self.registry)
        self.configuration = ConfigurationGauges(self.registry)
        self.certificates = CertificateGauges(self.registry)
        _show_versions(self.registry)

    def connection_opened(self, listener: str) -> None:
        """Count a connection that was accepted; `listener` comes from a closed set."""
        self._counts.connections[listener,] += 1

    def connection_closed(self, listener: str, reason: str) -> None:
        """Count the end of a connection; `reason` comes from a closed set."""
        self._counts.connections[listener,] -= 1
        self._counts.closed[listener, reason] += 1

    def answered(self, endpoint: str, code: int, seconds: float) -> None:
        """Count a request; `endpoint` and `code` come from closed sets."""
        self._counts.requests[endpoint, code] += 1
        self._counts.took[endpoint].add(seconds)

    def decided(self, decision: Decision) -> None:
        """Count a decision and the outcomes of its mutations."""
        rdma = decision.verdict.rdma if decision.verdict else ""
        key = (decision.allowed, decision.reason.code, rdma, decision.fabric or "")
        self._counts.decisions[key] += 1
        mutations = self._counts.mutations
        for one in decision.outcomes:
            mutations[one.mutation, one.status, one.reason.code] += 1

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


def _show_versions(registry: CollectorRegistry) -> None:
    build = Gauge(
        "rdma_webhook_build_info",
        "Always 1; the labels have the versions of the webhook and of Python.",
        ["version", "python"],
        registry=registry,
    )
    build.labels(__version__, platform.python_version()).set(1)
