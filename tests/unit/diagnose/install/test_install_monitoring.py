"""The alerts' rules and the PodMonitor exist, if the cluster has their kinds."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.install.installation import Installation, path_of
from webhook.model.finding import Finding

KINDS = ("PodMonitor", "PrometheusRule")


def test_all_is_well(installation: Installation) -> None:
    """Both exist."""
    assert installation.texts("monitoring") == [f"{kind} rdma-webhook exists" for kind in KINDS]


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_object(installation: Installation, kind: str) -> None:
    """The kind exists, so somebody uses the Prometheus Operator."""
    installation.delete(kind, "rdma-webhook")
    text = f"{kind} rdma-webhook does not exist"
    remedy = (
        "Apply both (`kubectl apply -k manifests/monitoring`, or helm upgrade with "
        "monitoring.enabled=true)."
    )
    assert installation.findings() == [Finding("warning", "NotMonitored", text, remedy)]


def test_a_cluster_without_the_kinds(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is a fact, and needs no action."""
    send = installation.send
    paths = [path_of(kind, "rdma-webhook") for kind in KINDS]

    def answer(method: str, path: str, *rest: object, **options: object) -> tuple[int, object]:
        if path in paths:
            return 404, {"message": "the server could not find the requested resource"}
        return send(method, path, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(installation, "send", answer)
    text = (
        "PodMonitor rdma-webhook or PrometheusRule rdma-webhook: not installed, since the cluster "
        "lacks the kind"
    )
    assert installation.findings() == [Finding("info", "NoPrometheusOperator", text)]
    assert installation.texts("monitoring") == [text]


def test_a_missing_right(installation: Installation) -> None:
    """It is neither there nor missing."""
    installation.refuse("PodMonitor", "rdma-webhook")
    (finding,) = installation.findings()
    assert (finding.level, finding.code) == ("unsure", "NotChecked")
    assert finding.text == (
        "PodMonitor rdma-webhook: not checked, since you lack the right to get "
        "podmonitors.monitoring.coreos.com in namespace rdma-webhook"
    )
    assert len(installation.texts("monitoring")) == 2
