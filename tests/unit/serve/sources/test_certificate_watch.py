from __future__ import annotations

from typing import Any

from certs.installation import Watch
from tests.unit.certs.objects import INSTALLATION, SECRETS
from tests.unit.kube.cluster import Cluster
from tests.waiting import until
from webhook.errors import ClusterError
from webhook.kube.informers import Informers
from webhook.serve.sources.certificate_api import CertificateWatch, certificate_watch, kinds

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{ADMISSION}/mutatingwebhookconfigurations"
VALIDATING = f"{ADMISSION}/validatingwebhookconfigurations"


def _object(version: int, **content: Any) -> dict[str, Any]:
    metadata = {"name": "a", "uid": "7e57", "resourceVersion": str(version)}
    return {"metadata": metadata, **content}


def test_each_object_is_watched_by_its_name() -> None:
    """RBAC with resourceNames allows no other list; the Secret is in the namespace."""
    assert [(resource.path, resource.selector) for resource in kinds(INSTALLATION)] == [
        (SECRETS, "metadata.name=rdma-webhook-ca"),
        (MUTATING, "metadata.name=zz-rdma-webhook"),
        (VALIDATING, "metadata.name=rdma-webhook"),
    ]


def test_no_key_is_stored() -> None:
    """Only the identity and the version of the object are."""
    secret = _object(5, data={"ca.key": "hunter2"})
    assert [resource.project(secret) for resource in kinds(INSTALLATION)] == [("7e57", "5")] * 3


def test_changes_are_reported_while_all_is_well() -> None:
    """It is current as soon as everything is listed, and not while a list or a watch fails."""
    cluster, calls = Cluster(), [0]
    cluster.failures.append(ClusterError("not yet"))
    informers = Informers(lambda: cluster, lambda: iter([0.01] * 1000), kinds=kinds(INSTALLATION))
    watch: Watch = CertificateWatch(informers)

    def changed() -> None:
        calls[0] += 1

    assert not watch.current
    watch.start(changed)
    until(lambda: watch.current)
    until(lambda: all(path in cluster.streams for path in (SECRETS, MUTATING, VALIDATING)))
    for path in (SECRETS, MUTATING, VALIDATING):
        before = calls[0]
        cluster.put(path, _object(7))
        until(lambda before=before: calls[0] > before)  # type: ignore[misc]
    before = calls[0]
    cluster.failures += [ClusterError("gone")] * 3
    cluster.watch(SECRETS).send(ClusterError("the connection was closed"))
    until(lambda: informers.reflectors[0].failures > 1)
    until(lambda: watch.current)
    until(lambda: calls[0] > before)
    watch.stop()
    assert all(reflector.join(60) for reflector in informers.reflectors)


def test_nothing_is_sent_before_the_start() -> None:
    """Not even the client is imported, which is slow."""
    assert not certificate_watch(None, INSTALLATION).current
