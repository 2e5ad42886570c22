"""The metrics of one server, in its own registry.

Label values come from closed sets (endpoints, status codes, names and reason codes of the
code), never from a request, so the number of series is bounded. Requests are counted in plain
dictionaries, from which a scrape makes metrics: a counter's `labels().inc()` takes ten times
as long, and a decision increments about ten counts.
"""

from __future__ import annotations

import platform
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from webhook import __version__
from webhook.app.observe.watched import Watches
from webhook.decision.outcome import Decision

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: A decision takes a tenth of a millisecond; the API server gives up after seconds.
_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
#: Why the preview's worker ended: nobody waited for its answer any more (the client left, or a
#: validation came first), it crashed, its answer was malformed, the server stopped, it took too
#: long.
WorkerEnd = Literal["client", "crash", "malformed", "stop", "timeout"]
WORKER_ENDS: tuple[WorkerEnd, ...] = get_args(WorkerEnd)
_Counting = defaultdict[tuple[object, ...], int]  #: label values → count
_BOUNDS = (*(f"{bound:g}" for bound in _BUCKETS), "+Inf")


class Metrics:
    """All metrics of the server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._counts = _Counts()
        self.registry.register(self._counts)
        #: Each source adds the feed that it watches.
        self.watches = Watches()
        self.registry.register(self.watches)
        self.internal_errors = Counter(
            "rdma_webhook_internal_errors",
            "Internal errors (defects of the webhook), each answered with HTTP 500.",
            registry=self.registry,
        )
        self.previews_pending = self._gauge(
            "previews_pending", "Previews that are waiting or running."
        )
        self._validations = Counter(
            "rdma_webhook_validations",
            "Configurations that the API server asked about, by whether they were allowed.",
            ["allowed"],
            registry=self.registry,
        )
        for allowed in (True, False):
            self._validations.labels(_label(allowed))
        self._worker_ends = Counter(
            "rdma_webhook_preview_worker_ends",
            "How often the process that computes previews and validations has ended; the next one "
            "starts another.",
            ["reason"],
            registry=self.registry,
        )
        for reason in WORKER_ENDS:
            self._worker_ends.labels(reason)
        self.configured = self._gauge(
            "configured",
            "1 if there are fabrics to decide by, 0 if each pod that opted in is left to "
            "failurePolicy.",
        )
        self.config_generation = self._gauge(
            "config_generation", "Number of configurations that have been loaded since the start."
        )
        self._config_info = Gauge(
            "rdma_webhook_config_info",
            "Always 1; the label has the hash of the configuration in use.",
            ["config"],
            registry=self.registry,
        )
        self.config_reloaded = self._gauge(
            "config_last_reload_success_timestamp_seconds",
            "Time at which the configuration in use was loaded; its age is time() minus this.",
        )
        self.config_successful = self._gauge(
            "config_last_reload_successful",
            "1 if the present configuration is in use, 0 if it cannot be used; an earlier one, if "
            "there was one, is then still in use.",
        )
        self.certificate_not_after = self._gauge(
            "certificate_not_after_timestamp_seconds",
            "Time at which the serving certificate expires; 0 without one.",
        )
        self.certificate_successful = self._gauge(
            "certificate_last_update_successful",
            "1 if the certificates are in order, 0 if there is a problem with their files, "
            "the Secret or caBundle.",
        )
        self.ca_not_after = self._gauge(
            "ca_not_after_timestamp_seconds",
            "Time at which the CA in the Secret expires; 0 if the webhook does not manage a CA.",
        )
        self.ca_rotating = self._gauge(
            "ca_rotating",
            "1 during a rotation of the CA, while the old and the new one are trusted; "
            "otherwise 0.",
        )
        self.certificates_watched = self._gauge(
            "certificates_watched",
            "1 while the webhook watches the Secret and the configurations that its own "
            "certificates depend on, 0 if it reads them every few seconds instead.",
        )
        self.guarded = Gauge(
            "rdma_webhook_guarded",
            "1 if the webhook's account may change nothing of its webhook configuration but "
            "caBundle, as it has tried itself; 0 if it may: the policy rdma-webhook-guard is "
            "missing.",
            ["kind"],
            registry=self.registry,
        )
        build = Gauge(
            "rdma_webhook_build_info",
            "Always 1; the labels have the versions of the webhook and of Python.",
            ["version", "python"],
            registry=self.registry,
        )
        build.labels(__version__, platform.python_version()).set(1)

    def config_used(self, config_hash: str) -> None:
        """Show the hash of the configuration in use; "" if there is none."""
        self._config_info.clear()
        if config_hash:
            self._config_info.labels(config_hash).set(1)

    def connection_opened(self, listener: str) -> None:
        """Count a connection that was accepted; `listener` comes from a closed set."""
        self._counts.connections[listener,] += 1

    def connection_closed(self, listener: str, reason: str) -> None:
        """Count the end of a connection; `reason` comes from a closed set."""
        self._counts.connections[listener,] -= 1
        self._counts.closed[listener, reason] += 1

    def answered(self, endpoint: str, code: int, seconds: float) -> None:
        """Count a request; `endpoint` and `code` come from closed sets."""
        counts = self._counts
        counts.requests[endpoint, code] += 1
        took = counts.took[endpoint]
        took.buckets[bisect_left(_BUCKETS, seconds)] += 1
        took.seconds += seconds

    def worker_ended(self, reason: WorkerEnd) -> None:
        """Count an end of the preview's worker."""
        self._worker_ends.labels(reason).inc()

    def validated(self, *, allowed: bool) -> None:
        """Count a configuration that was checked, or accepted without a check."""
        self._validations.labels(_label(allowed)).inc()

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

    def _gauge(self, name: str, meaning: str) -> Gauge:
        return Gauge(f"rdma_webhook_{name}", meaning, registry=self.registry)


class _Durations:
    """How long the requests of one endpoint took: the count for each bucket, and the sum."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * len(_BOUNDS)
        self.seconds = 0.0


class _Counts(Collector):
    """The counts of requests and decisions."""

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
        connections = GaugeMetricFamily(
            "rdma_webhook_connections",
            "Open connections, including those in a TLS handshake.",
            labels=["listener"],
        )
        for (listener,), count in self.connections.items():
            connections.add_metric([str(listener)], count)
        yield connections
        yield _counter(
            "connections_closed", "Connections that have ended, by reason.", ("listener", "reason"),
            self.closed,
        )  # fmt: skip
        durations = HistogramMetricFamily(
            "rdma_webhook_request_duration_seconds",
            "Time from a request's head to its answer, by endpoint.",
            labels=["endpoint"],
        )
        for endpoint, took in self.took.items():
            reached = zip(_BOUNDS, accumulate(took.buckets), strict=True)
            durations.add_metric([endpoint], list(reached), took.seconds)
        yield durations


def _counter(name: str, meaning: str, labels: tuple[str, ...], counts: _Counting) -> Metric:
    family = CounterMetricFamily(f"rdma_webhook_{name}", meaning, labels=labels)
    for values, count in counts.items():
        family.add_metric([_label(value) for value in values], count)
    return family


def _label(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
