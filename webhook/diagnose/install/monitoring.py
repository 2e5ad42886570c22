"""Whether the alerts' rules and the PodMonitor are installed, if the cluster has their kinds."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.diagnose.install.facts import CHECKED, InstallFacts
from webhook.model.finding import Code, Finding
from webhook.model.names import enumerated

NOT_MONITORED = Code(
    "NotMonitored",
    "The Prometheus Operator is installed, but the webhook's PodMonitor or PrometheusRule is "
    "missing.",
    "Apply both (`kubectl apply -k manifests/monitoring`, or helm upgrade with "
    "monitoring.enabled=true).",
)
NO_PROMETHEUS_OPERATOR = Code(
    "NoPrometheusOperator",
    "The cluster lacks the kind PodMonitor or PrometheusRule. Whether another program reads the "
    "metrics was not checked.",
    'If another program collects the webhook\'s metrics, see "Metrics" and "Alerts" in '
    "docs/operation.md.",
)
CODES = (NOT_MONITORED, NO_PROMETHEUS_OPERATOR)


def monitoring_findings(facts: InstallFacts) -> Iterator[Finding]:
    """Yield a finding on each object, or one if the cluster has neither of the kinds."""
    titles = [reading.title for reading in facts.monitoring if reading.lacks_kind]
    if titles:
        text = f"{enumerated(titles, 'or')}: not installed, since the cluster lacks the kind"
        yield NO_PROMETHEUS_OPERATOR.finding("info", text, "")
    for reading in facts.monitoring:
        if reading.obstacle:
            yield reading.unread_finding()
        elif reading.is_missing and not reading.lacks_kind:
            yield NOT_MONITORED.finding("warning", f"{reading.title} does not exist")
        elif not reading.lacks_kind:
            yield CHECKED.finding("ok", f"{reading.title} exists")
