"""etcd restored to an earlier state, as from a snapshot, while the replicas run on."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.api import Api
from tests.cluster.cluster import Cluster
from tests.cluster.fabrics import apply_fabrics, wait_until_in_use
from tests.cluster.install import Webhook
from tests.cluster.namespaces import INSIDE
from tests.e2e.live.lab import ChangingNamespace
from tests.e2e.live.outage import wait_for_api_server
from tests.e2e.live.replica import replicas
from tests.e2e.live.test_configuration import changed
from tests.faults.conftest import Figure
from tests.faults.replicas import processes
from tests.waiting import until

_DATA, _COPY = INSIDE / "etcd", INSIDE / "etcd.copy"
_ETCD = "http://127.0.0.1:2379/v3"
#: The keys that are written at once, so that the revision passes every one that was ever seen.
_BATCH = 100


def _call(cluster: Cluster, path: str, body: object) -> dict[str, dict[str, str]]:
    """Call etcd's JSON gateway."""
    argv = ("curl", "--silent", "--fail", f"{_ETCD}/{path}", "--data", json.dumps(body))
    answer: dict[str, dict[str, str]] = json.loads(cluster.exec(*argv))
    return answer


def _revision(cluster: Cluster) -> int:
    key = base64.b64encode(b"a").decode()
    return int(_call(cluster, "kv/range", {"key": key})["header"]["revision"])


@contextmanager
def _offline(cluster: Cluster) -> Iterator[None]:
    """Stop the API server and etcd during the block."""
    with (
        cluster.processes.without("kube-apiserver", 3.0),
        cluster.processes.without("etcd", 3.0),
    ):
        yield
    wait_for_api_server(cluster)


def _bump(cluster: Cluster, beyond: int) -> None:
    """Advance the revision and compact, as `--bump-revision --mark-compacted` of etcdutl does.

    Every version that a watch knows is then compacted, and the API server answers 410.
    """
    number = 0
    while (revision := _revision(cluster)) <= beyond:
        key = base64.b64encode(f"rdma-webhook-test/{number}".encode()).decode()
        put = {"requestPut": {"key": key, "value": key}}
        for _ in range(min(_BATCH, beyond + 1 - revision)):
            _call(cluster, "kv/txn", {"success": [put]})
        number += 1
    _call(cluster, "kv/compaction", {"revision": str(revision)})


@pytest.mark.parametrize("bumped", [False, True], ids=["as it was", "revision bumped"])
def test_etcd_is_restored(
    webhook: Webhook, lab: ChangingNamespace, figure: Figure, *, bumped: bool
) -> None:
    """Replicas go back to the restored object and namespaces, without a restart."""
    cluster, usable = webhook.cluster, webhook.fabrics.read_text()
    wait_until_in_use(webhook, before := apply_fabrics(cluster, usable))
    until(lambda: lab.ask().refusal == "")
    running = processes(webhook)
    with _offline(cluster):
        cluster.exec("cp", "-a", _DATA, _COPY)
    wait_until_in_use(webhook, apply_fabrics(cluster, changed(rate=400)))
    lab.label("rdma.lab/later", "true")
    latest = _revision(cluster)
    with cluster.processes.without("kube-apiserver", 3.0):
        with cluster.processes.without("etcd", 3.0):
            cluster.exec("rm", "-rf", _DATA)
            cluster.exec("mv", _COPY, _DATA)
        until(lambda: _answers(cluster))
        restored = _revision(cluster)
        if bumped:
            _bump(cluster, latest)
    began = time.monotonic()
    cluster.processes.until("API server ready", lambda: _is_ready(cluster))
    # Kubernetes' documentation asks for this: kube-proxy waits for versions in the future, and the
    # controllers wait for what they wrote after the snapshot.
    for component in ("kube-proxy", "kube-controller-manager"):
        with cluster.processes.without(component):
            pass
    wait_for_api_server(cluster)
    wait_until_in_use(webhook, before)
    took = time.monotonic() - began
    until(lambda: lab.ask().refusal == "")
    assert restored < latest
    assert processes(webhook) == running
    for replica in replicas(webhook):
        until(lambda replica=replica: "still in use (" not in replica.get("/readyz")[1])  # type: ignore[misc]
    figure(
        f"etcd restored, {'revision bumped' if bumped else 'revisions set back'}",
        f"from revision {latest} to {restored}; the restored object in use after {took:.1f} s",
    )


def _answers(cluster: Cluster) -> bool:
    argv = ("curl", "--silent", "--fail", "http://127.0.0.1:2379/health")
    return "true" in cluster.exec("sh", "-c", f"{' '.join(argv)} || true")


def _is_ready(cluster: Cluster) -> bool:
    return Api(cluster.access).text("/readyz") is not None
