"""The metrics of connections, requests and decisions."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from functools import cache, partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

#: A decision takes a tenth of a millisecond; the API server gives up after seconds.
_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class TrafficMetrics(Collector):
    """Each metric as a function that returns the series of its label values.

    A series begins with its first event. The lookup of a series is cached, since `labels` takes
    three times as long as the count itself.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        counter = partial(Counter, registry=self._registry)
        self.requests = cache(
            counter(
                "rdma_webhook_requests",
                "HTTP requests by endpoint and status code.",
                ["endpoint", "code"],
            ).labels
        )
        self.decisions = cache(
            counter(
                "rdma_webhook_decisions",
                "Decisions on pods, by reason, verdict on RDMA, and fabric.",
                ["allowed", "reason", "rdma", "fabric"],
            ).labels
        )
        self.connections = cache(
            Gauge(
                "rdma_webhook_connections",
                "Open connections, including those in a TLS handshake.",
                ["listener"],
                registry=self._registry,
            ).labels
        )
        self.closed = cache(
            counter(
                "rdma_webhook_connections_closed",
                "Connections that have ended, by reason.",
                ["listener", "reason"],
            ).labels
        )
        self.durations = cache(
            Histogram(
                "rdma_webhook_request_duration_seconds",
                "Time from a request's head to its answer, by endpoint.",
                ["endpoint"],
                registry=self._registry,
                buckets=_BUCKETS,
            ).labels
        )
        self.durations("mutate")  # an alert needs the series before the first request
        #: Mutation, status and reason of an outcome → how many there were. A pod has a dozen
        #: outcomes, and the library's counter would take a tenth of a request for them.
        self.outcomes: collections.Counter[tuple[str, str, str]] = collections.Counter()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        for family in self._registry.collect():
            for sample in family.samples:
                if "le" in sample.labels:  # the library writes 1.0: another series than 1
                    sample.labels["le"] = sample.labels["le"].removesuffix(".0")
            yield family
        yield self._mutations()

    def _mutations(self) -> Metric:
        family = CounterMetricFamily(
            "rdma_webhook_mutations",
            "Outcomes of mutations on containers and pods, by reason.",
            labels=["mutation", "status", "reason"],
        )
        for labels, count in [*self.outcomes.items()]:  # the event loop may add one meanwhile
            family.add_metric(labels, count)
        return family
