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
from tests.integration.promtool import planted, promtool, scraped
from tests.integration.serving import Certificates, Running, certificates
from tests.integration.test_live_configuration import PATH, written
from tests.unit.kube.cluster import NAMESPACES, Cluster, namespace
from tests.waiting import until
from webhook.serve.sources import configuration_object

BASE = Path(__file__).parents[2] / "manifests/base"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
WEBHOOKS = {
    "mutating": ("webhook.yaml", f"{ADMISSION}/mutatingwebhookconfigurations/zz-rdma-webhook"),
    "validating": ("validation.yaml", f"{ADMISSION}/validatingwebhookconfigurations/rdma-webhook"),
}
LEASE = "/apis/coordination.k8s.io/v1/namespaces/rdma-webhook/leases/rdma-webhook"
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
    cluster.put(PATH, written())
    api = LiveApi(tmp_path, cluster)
    api.objects[LEASE] = _document("status.yaml")
    api.objects[PATH + "/default"] = written()
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
    with Running(tls, None, kubeconfig=api.kubeconfig) as running:
        until(lambda: running.get("/readyz").status == 200)
        until(lambda: running.metric(WRITTEN) == 1)
        yield running


def test_promtool_accepts_the_metrics(replica: Running) -> None:
    """The metrics that only a replica in a cluster has are also named well."""
    linted = promtool("check", "metrics", text=scraped(replica))
    assert (linted.returncode, linted.stdout, linted.stderr) == (0, "", "")


def test_a_status_that_may_not_be_written(replica: Running, api: LiveApi, tmp_path: Path) -> None:
    """Without its right, the replica notices at the next change of the object."""

    def forbid() -> None:
        api.forbidden.append("^PATCH .*/status")
        api.cluster.put(PATH, written("roce"))

    fires = planted(tmp_path, replica, forbid, lambda: replica.metric(WRITTEN) == 0)
    fires("RdmaWebhookStatusNotWritten")
