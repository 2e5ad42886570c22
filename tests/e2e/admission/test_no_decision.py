"""The message to users when the webhook answers, but cannot decide."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.e2e.admission.by_url import Webhook, register
from tests.e2e.admission.places import CALLED_BY, named
from tests.e2e.admission.pods import create, pod, trainer
from tests.e2e.documents import make_namespaces, namespace
from tests.waiting import until
from webhook.admission.registration import NO_FABRICS_MESSAGE

NAME = "without-fabrics"


@pytest.fixture
def unconfigured(cluster: Cluster, tmp_path: Path) -> Iterator[None]:
    """Register a webhook whose fabrics file cannot be used."""
    space = namespace(named(NAME), "true")
    space["metadata"]["labels"][CALLED_BY] = NAME
    make_namespaces(cluster, space)
    process = Webhook(cluster, NAME, tmp_path / NAME, memoryLimit="nonsense")
    process.wait_for_ports()
    name = register(cluster, NAME, process)
    yield
    cluster.kubectl("delete", "mutatingwebhookconfiguration", name)
    process.stop()
    cluster.kubectl("delete", "namespace", named(NAME), "--wait=false")


@pytest.mark.usefixtures("unconfigured")
def test_without_fabrics_the_user_reads_why(cluster: Cluster) -> None:
    """The API server shows our sentence, and not "unknown", which it makes of a review."""
    manifest = pod(NAME, trainer())
    until(lambda: create(cluster, manifest).refusal)  # from then on it is called
    refusal = create(cluster, manifest).refusal
    assert refusal.startswith("Internal error occurred: failed calling webhook")
    assert NO_FABRICS_MESSAGE in refusal
    assert refusal.endswith("fabrics.yaml is not usable, for the reason in the webhook's log")
    assert "unknown" not in refusal
