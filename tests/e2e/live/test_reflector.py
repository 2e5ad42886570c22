"""What a real API server answers to lists in pages, and to watches from long ago."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Self

import pytest

from certs.backoff import delays
from tests.cluster.cluster import Cluster
from tests.e2e.asking import apply, namespace, until
from webhook.cluster import listing
from webhook.cluster.client import Client
from webhook.cluster.kinds import NAMESPACES, Kind
from webhook.cluster.listing import read_list
from webhook.cluster.reads import ApiReads
from webhook.cluster.reflector import Change, Reflector

NAMES = [f"reflected-{number}" for number in range(5)]


class Reflecting:
    """A reflector of namespaces, and what it has delivered."""

    def __init__(self, cluster: Cluster, version: str = "") -> None:
        self.lists = 0
        self.known: set[str] = set()
        self.reflector = Reflector(
            NAMESPACES, lambda: ApiReads(Client(cluster.kubeconfig)), self._deliver, delays
        )
        self.reflector._version = version
        self._lock = threading.Lock()

    def _deliver(self, _: Kind, changes: list[Change]) -> None:
        with self._lock:
            for (_space, name), kept in changes:
                (self.known.discard if kept is None else self.known.add)(name)

    def __enter__(self) -> Self:
        self.reflector.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.reflector.stop()
        assert self.reflector.join(10)


@pytest.fixture(scope="module")
def names(cluster: Cluster) -> Iterator[list[str]]:
    """Make some namespaces."""
    apply(cluster, *(namespace(name, None) for name in NAMES))
    yield NAMES
    cluster.kubectl("delete", "namespace", "--wait=false", "--ignore-not-found", *NAMES)


def test_pages_are_one_list(
    cluster: Cluster, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every namespace is in it, however small the pages are."""
    reads = ApiReads(Client(cluster.kubeconfig))
    whole = read_list(reads, NAMESPACES)
    monkeypatch.setattr(listing, "PAGE", 2)
    paged = read_list(reads, NAMESPACES)
    assert paged.held == whole.held
    assert {("", name) for name in names} <= paged.held.keys()


def test_events_bring_and_take_away(cluster: Cluster, names: list[str]) -> None:
    """A namespace that comes, changes and goes."""
    with Reflecting(cluster) as reflecting:
        until(lambda: set(names) <= reflecting.known)
        apply(cluster, namespace("reflected-late", None))
        until(lambda: "reflected-late" in reflecting.known)
        cluster.kubectl("delete", "namespace", "reflected-late", "--wait=false")
        until(lambda: "reflected-late" not in reflecting.known)
        assert (reflecting.reflector.lists, reflecting.reflector.failures) == (1, 0)


@pytest.mark.parametrize("version", ["1", "999999999"])
def test_a_version_that_it_does_not_have_is_listed_again(
    cluster: Cluster, names: list[str], version: str
) -> None:
    """One from before all that it remembers, and one that is still to come (etcd restored)."""
    with Reflecting(cluster, version) as reflecting:
        until(lambda: set(names) <= reflecting.known)
        reflector: Any = reflecting.reflector
        until(lambda: reflector.problem == "")
        assert (reflector.lists, reflector.failures) == (1, 1)
