"""Alerts about what a replica does in a cluster: its Lease, its status, and who calls it.

The API server has the objects of the manifests, but no rules of its own; see live_api.py.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.live_api import LiveApi
from tests.integration.promtool import promtool, scraped, with_failure
from tests.integration.serving import Certificates, Running, certificates
from tests.integration.test_live_configuration import PATH, fabrics_object
from tests.unit.kube.cluster import NAMESPACES, Cluster, namespace
from tests.waiting import until
from webhook.serve.sources import configuration_object
from webhook.serve.status import call_check

BASE = Path(__file__).parents[2] / "manifests/base"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
WEBHOOKS = {
    "mutating": ("webhook.yaml", f"{ADMISSION}/mutatingwebhookconfigurations/zz-rdma-webhook"),
    "validating": ("validation.yaml", f"{ADMISSION}/validatingwebhookconfigurations/rdma-webhook"),
}
LEASE = "/apis/coordination.k8s.io/v1/namespaces/rdma-webhook/leases/rdma-webhook"
HELD = "rdma_webhook_lease_held"
WRITTEN = "rdma_webhook_status_last_write_successful"


@pytest.fixture
def tls(tmp_path: Path) -> Certificates:
    """Issue a certificate that lasts as long as cert-manager's."""
    return certificates(tmp_path, timedelta(days=90))


@pytest.fixture
def api(tls: Certificates, tmp_path: Path) -> Iterator[LiveApi]:
    """Serve the objects of an installation with a configuration."""
    cluster = Cluster()
    cluster.put(NAMESPACES, namespace("lab"))
    cluster.put(PATH, fabrics_object())
    api = LiveApi(tmp_path, cluster)
    api.objects[LEASE] = _document("status.yaml")
    api.objects[PATH + "/default"] = fabrics_object()
    for file, path in WEBHOOKS.values():
        configuration = _document(f"admission/{file}")
        bundle = b64encode(tls.ca.certificate).decode()
        configuration["webhooks"][0]["clientConfig"]["caBundle"] = bundle
        api.objects[path] = configuration
    with api.serving():
        yield api


def _document(file: str) -> dict[str, Any]:
    document: dict[str, Any] = next(iter(yaml.safe_load_all((BASE / file).read_text())))
    return document


@pytest.fixture
def replica(api: LiveApi, tls: Certificates, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """Run the replica that holds the Lease; its sources pause less than usual."""
    monkeypatch.setenv("POD_NAME", "rdma-webhook-0")
    monkeypatch.setenv("POD_NAMESPACE", "rdma-webhook")
    monkeypatch.setattr(configuration_object, "DELAY", 0.1)
    monkeypatch.setattr(call_check, "CONFIRM_SECONDS", 0.1)
    monkeypatch.setattr(call_check, "CHECK_SECONDS", 0.1)
    with Running(tls, None, kubeconfig=api.kubeconfig) as running:
        until(lambda: running.get("/readyz").status == 200)
        fine = (HELD, WRITTEN, *map(_called, WEBHOOKS))
        until(lambda: all(running.metric(name) == 1 for name in fine))
        yield running


def _called(label: str) -> str:
    return f'rdma_webhook_called{{webhook="{label}"}}'


def test_promtool_accepts_the_metrics(replica: Running) -> None:
    """The metrics that only a replica in a cluster has are also named well."""
    linted = promtool("check", "metrics", text=scraped(replica))
    assert (linted.returncode, linted.stdout, linted.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("label", "alert"),
    [("mutating", "RdmaWebhookNotCalled"), ("validating", "RdmaWebhookNotValidating")],
)
def test_a_webhook_configuration_that_is_deleted(
    replica: Running, api: LiveApi, tmp_path: Path, label: str, alert: str
) -> None:
    """Nobody calls the webhook any more; only one of the two calls is about pods."""
    expect_alerts = with_failure(
        *(tmp_path, replica),
        lambda: api.objects.update({WEBHOOKS[label][1]: None}),
        lambda: replica.metric(_called(label)) == 0,
    )
    expect_alerts(alert)


@pytest.mark.parametrize("deleted", [True, False], ids=["deleted", "forbidden"])
def test_a_lease_that_nobody_holds(
    replica: Running, api: LiveApi, tmp_path: Path, deleted: bool
) -> None:
    """The Lease was deleted, or the right to change it."""

    def lose() -> None:
        api.objects[LEASE] = None if deleted else api.objects[LEASE]
        api.forbidden.append("^PUT .*/leases/")

    expect_alerts = with_failure(tmp_path, replica, lose, lambda: replica.metric(HELD) == 0)
    expect_alerts("RdmaWebhookLeaseNotHeld")


def test_a_status_that_may_not_be_written(replica: Running, api: LiveApi, tmp_path: Path) -> None:
    """Without its right, the replica notices at the next change of the object."""

    def forbid() -> None:
        api.forbidden.append("^PATCH .*/status")
        api.cluster.put(PATH, fabrics_object("roce"))

    expect_alerts = with_failure(tmp_path, replica, forbid, lambda: replica.metric(WRITTEN) == 0)
    expect_alerts("RdmaWebhookStatusNotWritten")
