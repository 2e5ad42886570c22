from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.serve.client import Lines
from tests.waiting import until
from webhook.kube import events
from webhook.serve.events import POD_VARIABLES, failure_reporter
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions

SET = {"POD_NAME": "rdma-webhook-x", "POD_NAMESPACE": "rdma-webhook", "POD_UID": "7e57"}


@pytest.mark.parametrize("lacks", POD_VARIABLES.values())
def test_without_the_pods_name_there_is_no_event(lacks: str) -> None:
    """This is so outside a cluster, or with a Deployment of an older release."""
    lines = Lines()
    environment = {name: value for name, value in SET.items() if name != lacks}
    failure_reporter(ServeOptions(), Metrics(), lines.log, environment)(1, "line 3: no")
    assert lines.read() == []


def test_a_reporter_that_fails_reports_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log gets one line, after the last attempt; a metric counts the missing Event."""
    monkeypatch.setattr(events, "ATTEMPTS", 1)
    lines, file, metrics = Lines(), tmp_path / "config", Metrics()
    failure_reporter(ServeOptions(kubeconfig=file), metrics, lines.log, SET)(1, "line 3: no")
    lines_read: list[dict[str, object]] = []

    def logged() -> bool:
        lines_read.extend(lines.read())
        return bool(lines_read)

    until(logged)
    assert lines_read[0]["msg"] == "could not record the event"
    assert str(lines_read[0]["problem"]).startswith(f"the kubeconfig {file} does not exist: ")
    assert metrics.registry.get_sample_value("rdma_webhook_event_failures_total") == 1
