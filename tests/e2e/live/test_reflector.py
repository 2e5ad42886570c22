"""Paged lists and watches of a real API server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Self

import pytest

from certs.clock import delays
from tests.cluster.cluster import Cluster
from tests.e2e.documents import apply, namespace
from tests.waiting import PATIENCE, until
from webhook.kube.client import Client
from webhook.kube.reads import HttpReads
from webhook.kube.reflector import Change, Reflector, read_list
from webhook.kube.watched_resources import NAMESPACES, WatchedResource

NAMES = [f"reflected-{number}" for number in range(5)]


class Reflecting:
    """A reflector of namespaces, and the names that it has delivered."""

    def __init__(self, cluster: Cluster) -> None:
        self.known: set[str] = set()
        self.reflector = Reflector(
            NAMESPACES, lambda: HttpReads(Client(cluster.kubeconfig)), self._deliver, delays
        )
        self._lock = threading.Lock()

    def _deliver(self, _: WatchedResource[object], changes: list[Change]) -> None:
        with self._lock:
            for (_space, name), projection in changes:
                (self.known.discard if projection is None else self.known.add)(name)

    def __enter__(self) -> Self:
        self.reflector.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.reflector.stop()
        assert self.reflector.join(PATIENCE)


@pytest.fixture(scope="module")
def names(cluster: Cluster) -> Iterator[list[str]]:
    """Make some namespaces."""
    apply(cluster, *(namespace(name, None) for name in NAMES))
    yield NAMES
    cluster.kubectl("delete", "namespace", "--wait=false", "--ignore-not-found", *NAMES)


def test_pages_form_a_single_list(cluster: Cluster, names: list[str]) -> None:
    """Every namespace is in the list, however small its pages are."""
    reads = HttpReads(Client(cluster.kubeconfig))

    def agree() -> bool:
        # Namespaces of earlier tests may disappear between the two lists.
        complete = read_list(reads, NAMESPACES, _go_on).projections
        paged = read_list(reads, replace(NAMESPACES, page=2), _go_on).projections
        return paged == complete and {("", name) for name in names} <= paged.keys()

    until(agree)


def test_events_bring_and_take_away(cluster: Cluster, names: list[str]) -> None:
    """A new namespace appears, and a deleted one disappears, without another list."""
    with Reflecting(cluster) as reflecting:
        until(lambda: set(names) <= reflecting.known)
        apply(cluster, namespace("reflected-late", None))
        until(lambda: "reflected-late" in reflecting.known)
        cluster.kubectl("delete", "namespace", "reflected-late", "--wait=false")
        until(lambda: "reflected-late" not in reflecting.known)
        assert (reflecting.reflector.list_count, reflecting.reflector.failures) == (1, 0)


def test_why_a_version_is_not_kept_over_a_break(cluster: Cluster, names: list[str]) -> None:
    """A watch from a future version, as after a restore of etcd, waits without an error."""
    reads = HttpReads(Client(cluster.kubeconfig))
    query = {"watch": "true", "resourceVersion": "999999999", "timeoutSeconds": "5"}
    with closing(reads.stream(NAMESPACES.path, query, 20.0)) as events:
        cluster.kubectl("annotate", "namespace", names[0], "changed=again", "--overwrite")
        assert list(events) == []


def _go_on(_: float) -> bool:
    """Wait for nothing between two pages."""
    return False
