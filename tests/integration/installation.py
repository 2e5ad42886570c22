"""An API server with the objects of an installation, and a replica that runs on it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.live_api import LiveApi
from tests.integration.serving import Certificates, Running
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


@contextmanager
def installation(folder: Path, tls: Certificates) -> Iterator[LiveApi]:
    """Serve the objects of the manifests that a replica reads, with a configuration."""
    cluster = Cluster()
    cluster.put(NAMESPACES, namespace("lab"))
    cluster.put(PATH, fabrics_object())
    api = LiveApi(folder, cluster)
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


@contextmanager
def running_replica(
    api: LiveApi, tls: Certificates, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Running]:
    """Run the replica that holds the Lease; its sources pause less than usual."""
    monkeypatch.setenv("POD_NAME", "rdma-webhook-0")
    monkeypatch.setenv("POD_NAMESPACE", "rdma-webhook")
    monkeypatch.setattr(configuration_object, "DELAY", 0.1)
    monkeypatch.setattr(call_check, "CONFIRM_SECONDS", 0.1)
    monkeypatch.setattr(call_check, "CHECK_SECONDS", 0.1)
    with Running(tls, None, kubeconfig=api.kubeconfig) as running:
        until(lambda: running.get("/readyz").status == 200)
        fine = (HELD, WRITTEN, *map(called, WEBHOOKS))
        until(lambda: all(running.metric(name) == 1 for name in fine))
        yield running


def called(label: str) -> str:
    """Return the series that shows whether a webhook is called, by its label."""
    return f'rdma_webhook_called{{webhook="{label}"}}'
