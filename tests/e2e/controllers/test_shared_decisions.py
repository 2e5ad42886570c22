"""The pods that real controllers make for one role share a decision: all but the first are hits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.controllers import (
    mpi_operator,
    start_jobset,
    start_kuberay,
    start_lws,
    start_training_operator,
)
from tests.cluster.install import TOLERATION, V100
from tests.e2e.admission.by_url import Webhook, register
from tests.e2e.admission.places import CALLED_BY
from tests.e2e.admission.pods import create
from tests.e2e.controllers.many_pods import (
    EXCLUSIVE,
    NAMESPACE,
    PODS,
    WORKLOADS,
    gated,
    jobset,
    kubernetes,
    required,
    template,
)
from tests.e2e.documents import Document, apply
from tests.waiting import until

_DECISIONS = "rdma_webhook_decision_cache_{}_total"
_OPERATORS: tuple[Callable[[Cluster], object], ...] = (
    *(start_jobset, start_lws, start_training_operator, start_kuberay),
)
#: A label of the fake nodes; each has another value.
RACK = "rack"


class Served(NamedTuple):
    """The pods of a workload, the decisions that were made for them, and the hits."""

    pods: list[Document]
    decided: int
    hits: int


class Namespace:
    """The namespace whose pods one replica serves."""

    def __init__(self, cluster: Cluster, server: Webhook) -> None:
        self._cluster = cluster
        self._server = server

    def serve(self, document: Document, count: int) -> Served:
        """Make a workload, wait for this number of pods, and delete it again."""
        kind, name = document["kind"].lower(), document["metadata"]["name"]
        before = self._counts()
        try:
            apply(self._cluster, document)
            until(lambda: len(self._pods(name)) == count, lambda: self._kubectl("get", "events"))
            decided, hits = map(int.__sub__, self._counts(), before)
            return Served(self._pods(name), decided, hits)
        finally:
            self._kubectl("delete", kind, name, "--wait=false")

    def _counts(self) -> list[int]:
        """Return the number of decisions that were made and kept, and of hits."""
        return [int(self._server.metric(_DECISIONS.format(event))) for event in ("misses", "hits")]

    def _pods(self, name: str) -> list[Document]:
        """Return the pods of a workload; those of an earlier one may still be there."""
        pods: list[Document] = json.loads(self._kubectl("get", "pods", "--output=json"))["items"]
        return [pod for pod in pods if pod["metadata"]["name"].startswith(f"{name}-")]

    def _kubectl(self, *arguments: str) -> str:
        return self._cluster.kubectl(*arguments, "--namespace", NAMESPACE)


@pytest.fixture(scope="module")
def namespace(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    """Run one replica, which the API server calls for one namespace, and the controllers."""
    cluster.skip_if_existing("a process of this checkout beside the API server")
    server = Webhook(cluster, NAMESPACE, tmp_path_factory.mktemp(NAMESPACE) / "webhook")
    server.wait_for_ports()
    metadata = {"name": NAMESPACE, "labels": {CALLED_BY: NAMESPACE}}
    apply(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    configuration = register(cluster, NAMESPACE, server)
    until(lambda: "rdma.lab/status" in str(create(cluster, _probe()).object))
    for start in _OPERATORS:
        start(cluster)
    with mpi_operator(cluster):
        yield Namespace(cluster, server)
    cluster.kubectl("delete", "mutatingwebhookconfiguration", configuration)
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    server.stop()


def _probe() -> Document:
    """Write a pod with a decision of its own."""
    pod = template("probe")
    pod["metadata"] |= {"name": "probe", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", **pod}


@pytest.fixture
def racks(cluster: Cluster) -> Iterator[tuple[str, ...]]:
    """Add two fake nodes, each in a rack of its own."""
    labels = ({RACK: "x"}, {RACK: "y"})
    names = [name for label in labels for name in cluster.fake_nodes(1, label, V100)]
    yield tuple(names)
    cluster.kubectl("delete", "nodes", *names, "--wait=false")


@pytest.mark.parametrize("name", WORKLOADS)
def test_pods_of_a_role_share_a_decision(namespace: Namespace, name: str) -> None:
    """Each role costs one decision, whatever its pods are called; every pod gets its patch."""
    document, roles = WORKLOADS[name]
    pods, decided, hits = namespace.serve(document, PODS)
    assert decided == roles
    # A controller may try again to create a pod that exists: each try is a call.
    assert hits >= PODS - roles
    assert all("rdma.lab/status" in pod["metadata"]["annotations"] for pod in pods)


def test_pods_of_a_daemonset_do_not_share(namespace: Namespace, racks: tuple[str, ...]) -> None:
    """Each requires its node by name, and a decision depends on the node."""
    on_racks = {"matchExpressions": [{"key": RACK, "operator": "Exists"}]}
    document = kubernetes("DaemonSet", gated(affinity=required(on_racks), tolerations=[TOLERATION]))
    served = namespace.serve(document, len(racks))
    assert served.decided == len(racks)


def test_jobs_of_an_exclusive_jobset_do_not_share(
    namespace: Namespace, racks: tuple[str, ...]
) -> None:
    """Each Job costs a decision for its first pod, and one for the others.

    The first pod has a rule that keeps other Jobs away, and the others select its rack. JobSet
    rejects these others until the first pod has a node; such pods, which select no rack yet, may
    cost one more decision.
    """
    runnable = template(restartPolicy="Never", tolerations=[TOLERATION])
    document = jobset(len(racks), 8, runnable, **{EXCLUSIVE: RACK})
    document["metadata"]["name"] = "exclusive"
    pods, decided, hits = namespace.serve(document, 8 * len(racks))
    assert decided in (2 * len(racks), 2 * len(racks) + 1)
    assert hits >= len(pods) - decided
