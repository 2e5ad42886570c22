"""The metrics about the worker, which computes previews and validations."""

from __future__ import annotations

from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge

from webhook.app.observe.counts import label_value

#: Why the worker ended: nobody waited for its answer any more (the client left, or a validation
#: came first), it crashed, its answer was malformed, the server stopped, it took too long.
WorkerEnd = Literal["client", "crash", "malformed", "stop", "timeout"]
WORKER_ENDS: tuple[WorkerEnd, ...] = get_args(WorkerEnd)


class WorkerMetrics:
    """What the worker has to do, and why it ended."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.previews_pending = Gauge(
            "rdma_webhook_previews_pending",
            "Previews that are waiting or running.",
            registry=registry,
        )
        self._validations = Counter(
            "rdma_webhook_validations",
            "Configurations that the API server asked about, by whether they were allowed.",
            ["allowed"],
            registry=registry,
        )
        self._ends = Counter(
            "rdma_webhook_preview_worker_ends",
            "How often the process that computes previews and validations has ended; the next one "
            "starts another.",
            ["reason"],
            registry=registry,
        )
        for allowed in (True, False):
            self._validations.labels(label_value(allowed))
        for reason in WORKER_ENDS:
            self._ends.labels(reason)

    def validated(self, *, allowed: bool) -> None:
        """Count a configuration that was checked, or accepted without a check."""
        self._validations.labels(label_value(allowed)).inc()

    def ended(self, reason: WorkerEnd) -> None:
        """Count an end of the worker."""
        self._ends.labels(reason).inc()
