"""The counts of requests and decisions, in plain dictionaries.

A scrape makes metrics of them: a counter's `labels().inc()` takes ten times as long, and a decision
increments about ten counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

#: A decision takes a tenth of a millisecond; the API server gives up after seconds.
_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
_BOUNDS = (*(f"{bound:g}" for bound in _BUCKETS), "+Inf")
_Counting = defaultdict[tuple[object, ...], int]  #: label values → count


class _Durations:
    """How long the requests of one endpoint took: the count for each bucket, and the sum."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * len(_BOUNDS)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count a request."""
        self.buckets[bisect_left(_BUCKETS, seconds)] += 1
        self.seconds += seconds


class Counts(Collector):
    """The counts, each by its label values."""

    def __init__(self) -> None:
        self.requests: _Counting = defaultdict(int)
        self.decisions: _Counting = defaultdict(int)
        self.mutations: _Counting = defaultdict(int)
        self.connections: _Counting = defaultdict(int)
        self.closed: _Counting = defaultdict(int)
        self.took: defaultdict[str, _Durations] = defaultdict(_Durations)
        self.took["mutate"]  # creates the series before the first request

    def collect(self) -> Iterator[Metric]:
        """Make metrics of the counts, for a scrape."""
        yield _counter(
            "requests", "HTTP requests by endpoint and status code.", ("endpoint", "code"),
            self.requests,
        )  # fmt: skip
        yield _counter(
            "decisions", "Decisions on pods, by reason, verdict on RDMA, and fabric.",
            ("allowed", "reason", "rdma", "fabric"), self.decisions,
        )  # fmt: skip
        yield _counter(
            "mutations", "Outcomes of mutations on containers and pods, by reason.",
            ("mutation", "status", "reason"), self.mutations,
        )  # fmt: skip
        yield self._open_connections()
        yield _counter(
            "connections_closed", "Connections that have ended, by reason.", ("listener", "reason"),
            self.closed,
        )  # fmt: skip
        yield self._request_durations()

    def _open_connections(self) -> Metric:
        family = GaugeMetricFamily(
            "rdma_webhook_connections",
            "Open connections, including those in a TLS handshake.",
            labels=["listener"],
        )
        for (listener,), count in self.connections.items():
            family.add_metric([str(listener)], count)
        return family

    def _request_durations(self) -> Metric:
        family = HistogramMetricFamily(
            "rdma_webhook_request_duration_seconds",
            "Time from a request's head to its answer, by endpoint.",
            labels=["endpoint"],
        )
        for endpoint, took in self.took.items():
            reached = zip(_BOUNDS, accumulate(took.buckets), strict=True)
            family.add_metric([endpoint], list(reached), took.seconds)
        return family


def _counter(name: str, meaning: str, labels: tuple[str, ...], counts: _Counting) -> Metric:
    family = CounterMetricFamily(f"rdma_webhook_{name}", meaning, labels=labels)
    for values, count in counts.items():
        family.add_metric([label_value(value) for value in values], count)
    return family


def label_value(value: object) -> str:
    """Return the value of a label."""
    return str(value).lower() if isinstance(value, bool) else str(value)
