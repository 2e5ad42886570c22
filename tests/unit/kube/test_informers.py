from __future__ import annotations

import threading
from typing import Self

from tests.unit.kube.cluster import (
    LIMIT_RANGES,
    NAMESPACES,
    Cluster,
    limit_range,
    namespace,
)
from tests.waiting import until
from webhook.errors import ClusterError
from webhook.kube import watched_resources
from webhook.kube.api import ListerWatcher
from webhook.kube.informers import Informers


class Running:
    """Running informers on a cluster in memory."""

    def __init__(self, cluster: Cluster, refusals: int = 0) -> None:
        self.connections = 0
        self._refusals = refusals
        self._cluster = cluster
        self.woken = threading.Semaphore(0)
        self.informers = Informers(self._connect, lambda: iter([0.0] * 100))

    def __enter__(self) -> Self:
        self.informers.start(self.woken.release)
        return self

    def __exit__(self, *_: object) -> None:
        self.informers.stop()
        assert all(reflector.join(20) for reflector in self.informers.reflectors)

    def _connect(self) -> ListerWatcher:
        self.connections += 1
        if self.connections <= self._refusals:
            raise ClusterError("no token")
        return self._cluster

    def until(self, count: int) -> list[str]:
        """Take batches until `count` have arrived; return their resources."""
        resources: list[str] = []
        while len(resources) < count:
            assert self.woken.acquire(timeout=300)
            resources += [kind.resource for kind, _ in self.informers.take_changes()]
        return resources


def test_each_kind_delivers_its_list_and_its_events() -> None:
    """All kinds use the same connection."""
    cluster = Cluster()
    cluster.put(NAMESPACES, namespace("lab"))
    with Running(cluster) as running:
        assert sorted(running.until(3)) == ["limitranges", "namespaces", "resourcequotas"]
        until(lambda: LIMIT_RANGES in cluster.streams)
        cluster.put(LIMIT_RANGES, limit_range(max={"memory": "1Gi"}))
        assert running.until(1) == ["limitranges"]
    assert running.connections == 1


def test_whoever_takes_is_woken_once_for_all_that_waits() -> None:
    """There is a single wake-up for all waiting batches, and none for taken ones."""
    cluster = Cluster()
    with Running(cluster) as running:
        running.until(3)
        until(lambda: NAMESPACES in cluster.streams)
        cluster.put(NAMESPACES, *(namespace(name) for name in "abc"))
        until(lambda: running.informers.reflectors[0].object_count == 3)
        assert running.woken.acquire(timeout=300)
        until(lambda: not running.woken.acquire(blocking=False))
        assert len(running.informers.take_changes()) == 3


def test_without_a_connection_it_tries_again() -> None:
    """For example, the token may not be mounted yet."""
    with Running(Cluster(), refusals=2) as running:
        running.until(3)
    assert running.connections == 3
    assert sum(reflector.failures for reflector in running.informers.reflectors) == 2


def test_informers_watch_the_kinds_that_they_are_given() -> None:
    """Other kinds have separate informers, and nobody waits for their lists."""
    informers = Informers(Cluster, lambda: iter(()), kinds=(watched_resources.QUOTAS,))
    assert [reflector.watched for reflector in informers.reflectors] == [watched_resources.QUOTAS]
