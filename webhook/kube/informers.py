"""Informers for several kinds of a cluster: reflectors, their changes, and the facts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, assert_never

from webhook.kube.access import connect
from webhook.kube.api import ListerWatcher
from webhook.kube.reflector import Change, Key, Reflector
from webhook.kube.watched_resources import KINDS, FactsPart, WatchedResource
from webhook.model.facts import Facts, NamespaceFacts

# All reflectors, and a queue between their threads and the reader of their changes.


class Informers:
    """Reflectors for several kinds, with a queue of changes to take."""

    def __init__(
        self,
        connect: Callable[[], ListerWatcher],
        pauses: Callable[[], Iterator[float]],
        clock: Callable[[], float] = time.monotonic,
        kinds: Iterable[WatchedResource[object]] = KINDS,
    ) -> None:
        """Prepare; a thread calls `connect`, which may be slow, until it succeeds once.

        `pauses` returns the seconds to wait after each attempt; a long one calls it anew.
        """
        self._connect = connect
        self._lister_watcher: ListerWatcher | None = None
        self._connecting = threading.Lock()
        self._lock = threading.Lock()
        self._batches: list[Batch] = []
        self._wake: Callable[[], None] = _ignore
        self.clock = clock
        self.reflectors = tuple(
            Reflector(kind, self._connected, self._deliver, pauses, clock) for kind in kinds
        )

    def start(self, wake: Callable[[], None]) -> None:
        """Start the threads; any of them calls `wake` when there are changes to take."""
        self._wake = wake
        for reflector in self.reflectors:
            reflector.start()

    def stop(self) -> None:
        """Stop all reflectors, without waiting for their ends."""
        for reflector in self.reflectors:
            reflector.stop()

    def take_changes(self) -> list[Batch]:
        """Return the changes since the last call, and forget them."""
        with self._lock:
            batches, self._batches = self._batches, []
        return batches

    def _deliver(self, kind: WatchedResource[object], changes: list[Change]) -> None:
        with self._lock:
            self._batches.append((kind, changes))
            first = len(self._batches) == 1
        if first:
            self._wake()

    def _connected(self) -> ListerWatcher:
        with self._connecting:
            if self._lister_watcher is None:
                self._lister_watcher = self._connect()
            return self._lister_watcher


def _ignore() -> None:
    """Do nothing: the informers have not been started."""


# Connect to the API server, to list and watch.

#: The largest page with several objects, in bytes; usual ones have a quarter. Users decide how
#: large their objects are, and a parsed page takes up to 30 times as much memory.
MAX_PAGE_BYTES = 2 * 1024 * 1024


def connect_reads(kubeconfig: Path | None) -> ListerWatcher:
    """Return the API server of a kubeconfig, or of this process's pod.

    Slow: it imports the Kubernetes client. Raises ClusterError if the credentials cannot be read.
    """
    client = connect(kubeconfig)
    from webhook.kube.reads import HttpReads  # noqa: PLC0415 -- slow to import

    return HttpReads(client, MAX_PAGE_BYTES)


# The facts, assembled from the changes that the reflectors deliver.
#
# Facts are immutable, so each batch of changes makes new ones; changes that do not affect decisions
# leave the old facts in place.

#: A kind, and changes that its reflector delivered at once.
Batch = tuple[WatchedResource[object], list[Change]]
_Name = TypeVar("_Name")
_Fact = TypeVar("_Fact")


class FactsStore:
    """Namespaces, each with the reasons why its LimitRanges and quotas require a memory limit."""

    def __init__(self) -> None:
        self.facts = Facts(unlisted_is_unknown=True)
        self._namespaces: dict[str, NamespaceFacts] = {}
        self._memory_limit_rejections: dict[str, dict[tuple[str, str], str]] = {}

    def apply(self, batches: Iterable[Batch]) -> set[str]:
        """Apply changes to the facts; return the names of the namespaces that changed."""
        touched: set[str] = set()
        for kind, changes in batches:
            touched.update(self._keep(kind, key, projection) for key, projection in changes)
        before = self.facts.namespaces
        updates = {name: self._facts_of(name) for name in touched}
        changed = {name for name, facts in updates.items() if before.get(name) != facts}
        if changed:
            self.facts = replace(self.facts, namespaces=_with(before, updates))
        return changed

    def _keep(self, kind: WatchedResource[object], key: Key, projection: object) -> str:
        """Store or drop the projection of one object; return its namespace."""
        namespace, name = key
        match kind.part:
            case FactsPart.NAMESPACE:
                assert projection is None or isinstance(projection, NamespaceFacts)
                _put(self._namespaces, name, projection)
                return name
            case FactsPart.MEMORY_LIMIT:
                assert projection is None or isinstance(projection, str)
                self._keep_rejection(namespace, (kind.resource, name), projection)
                return namespace
            case None:
                raise LookupError(f"{kind.resource} are not part of the facts")
            case unknown:
                assert_never(unknown)

    def _keep_rejection(
        self, namespace: str, source: tuple[str, str], rejection: str | None
    ) -> None:
        rejections = self._memory_limit_rejections.setdefault(namespace, {})
        _put(rejections, source, rejection)
        if not rejections:
            del self._memory_limit_rejections[namespace]

    def _facts_of(self, name: str) -> NamespaceFacts | None:
        namespace_facts = self._namespaces.get(name)
        rejections = self._memory_limit_rejections.get(name)
        if namespace_facts is None or not rejections:
            return namespace_facts
        return namespace_facts.with_memory_limit_rejections(rejections.values())


def _put(facts: dict[_Name, _Fact], key: _Name, fact: _Fact | None) -> None:
    if fact is None:
        facts.pop(key, None)
    else:
        facts[key] = fact


def _with(
    before: Mapping[str, NamespaceFacts], updates: Mapping[str, NamespaceFacts | None]
) -> dict[str, NamespaceFacts]:
    after = dict(before)
    for name, facts in updates.items():
        _put(after, name, facts)
    return after
