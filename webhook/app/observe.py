"""The metrics of one server, in a registry of its own.

Label values come from closed sets (endpoints, status codes, names and reason codes of the
code), never from a request, so the number of series is bounded. The children of a counter
are kept: finding one through `labels()` costs three times the increment.
"""

from __future__ import annotations

import platform
from functools import cache

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.process_collector import ProcessCollector

from webhook import __version__
from webhook.core.decision import Decision

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: A decision takes a tenth of a millisecond; the API server gives up after seconds.
_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class Metrics:
    """What the server counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = self._counter(
            "requests", "HTTP requests by endpoint and status code.", "endpoint", "code"
        )
        self._decisions = self._counter(
            "decisions", "Decisions on pods by reason.", "allowed", "reason"
        )
        self._mutations = self._counter(
            "mutations",
            "What the mutations did to containers and pods.",
            "mutation",
            "status",
            "reason",
        )
        self._duration = Histogram(
            "rdma_webhook_request_duration_seconds",
            "From a request's head to its answer, by endpoint.",
            ["endpoint"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.internal_errors = self._counter(
            "internal_errors", "Defects of the webhook, each answered with HTTP 500."
        )
        self._gauges()
        self._request = cache(self._requests.labels)
        self._decision = cache(self._decisions.labels)
        self._mutation = cache(self._mutations.labels)
        self._took = cache(self._duration.labels)
        self._took("mutate")  # a scrape before the first request shows the series

    def _gauges(self) -> None:
        self.config_generation = self._gauge(
            "config_generation", "How many configurations have been loaded since start."
        )
        self.config_reloaded = self._gauge(
            "config_last_reload_success_timestamp_seconds",
            "When the configuration in use was loaded; its age is time() minus this.",
        )
        self.config_successful = self._gauge(
            "config_last_reload_successful",
            "1 if the configuration file as it is now is in use, 0 if it is broken.",
        )
        self.certificate_not_after = self._gauge(
            "certificate_not_after_timestamp_seconds",
            "When the serving certificate expires; 0 without one.",
        )
        build = Gauge(
            "rdma_webhook_build_info",
            "Always 1; the labels say what runs.",
            ["version", "python"],
            registry=self.registry,
        )
        build.labels(__version__, platform.python_version()).set(1)

    def answered(self, endpoint: str, code: int, seconds: float) -> None:
        """Count a request; `endpoint` and `code` come from closed sets."""
        self._request(endpoint, code).inc()
        self._took(endpoint).observe(seconds)

    def decided(self, decision: Decision) -> None:
        """Count a decision and what each mutation said."""
        self._decision("true" if decision.allowed else "false", decision.reason.code).inc()
        mutation = self._mutation
        for outcome in decision.outcomes:
            mutation(outcome.mutation, outcome.status, outcome.reason.code).inc()

    def text(self) -> bytes:
        """Return all of it in Prometheus' text format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"rdma_webhook_{name}", meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str) -> Gauge:
        return Gauge(f"rdma_webhook_{name}", meaning, registry=self.registry)
