from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from webhook.model.decision import Decision, Outcome, Reason, Verdict
from webhook.serve.metrics import WORKER_ENDS, Metrics

ADDED = Reason("Added", "It was added.", "")
PATCHED = Reason("Patched", "It was changed.", "")
EQUIPPED = Reason("Equipped", "All is right.", "", rdma="yes")


def _samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Return name and label values → value, as a scrape reads them."""
    return {
        (sample.name, *(sample.labels[key] for key in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if sample.name.startswith("rdma_webhook_")
    }


def test_decision_counts_each_outcome() -> None:
    """Labels are fabric, verdict, mutation, status and reason, but never pod or namespace."""
    metrics = Metrics()
    outcomes = tuple(
        Outcome("ipc-lock", name, "applied", ADDED, "the capability was added")
        for name in ("a", "b")
    )
    verdict = Verdict.of(EQUIPPED, "all is well")
    patched = Decision(allowed=True, reason=PATCHED, pod={}, outcomes=outcomes, fabric="ib")
    metrics.count_decision(patched._replace(verdict=verdict))
    metrics.count_decision(Decision(allowed=False, reason=PATCHED, pod={}))
    samples = _samples(metrics)

    assert samples["rdma_webhook_mutations_total", "ipc-lock", "Added", "applied"] == 2
    assert samples["rdma_webhook_decisions_total", "true", "ib", "yes", "Patched"] == 1
    assert samples["rdma_webhook_decisions_total", "false", "", "", "Patched"] == 1


def test_series_are_there_from_the_start() -> None:
    """An alert needs its metric before anything has happened."""
    samples = _samples(Metrics())

    assert {
        ("rdma_webhook_internal_errors_total",),
        ("rdma_webhook_event_failures_total",),
        ("rdma_webhook_config_loads_total",),
        ("rdma_webhook_config_last_reload_successful",),
        ("rdma_webhook_config_last_reload_success_timestamp_seconds",),
        ("rdma_webhook_certificate_not_after_timestamp_seconds",),
        ("rdma_webhook_request_duration_seconds_count", "mutate"),
        *(("rdma_webhook_worker_ends_total", reason) for reason in WORKER_ENDS),
    } <= samples.keys()


def test_registries_are_independent() -> None:
    """Two servers in one process have separate counts."""
    first, second = Metrics(), Metrics()
    first.count_request("mutate", 200, 0.1)

    assert ("rdma_webhook_requests_total", "200", "mutate") not in _samples(second)
