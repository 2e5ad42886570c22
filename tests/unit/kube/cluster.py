"""An API server in memory, for lists and watches."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

from tests.builders import READY
from webhook.errors import ClusterError
from webhook.kube.api import LargePageError, Query, StatusError

NAMESPACES = "/api/v1/namespaces"
LIMIT_RANGES = "/api/v1/limitranges"
QUOTAS = "/api/v1/resourcequotas"
NODES = "/api/v1/nodes"


def namespace(name: str, **metadata: Any) -> dict[str, Any]:
    """Return a Namespace as an item of a list, without a kind."""
    return {"metadata": {"name": name, **metadata}}


def limit_range(name: str = "sizes", space: str = "lab", **limit: Any) -> dict[str, Any]:
    """Return a LimitRange; without a limit, it requires nothing."""
    limits = [{"type": "Container", **limit}]
    return {"metadata": {"name": name, "namespace": space}, "spec": {"limits": limits}}


def quota(name: str = "team", space: str = "lab", **hard: str) -> dict[str, Any]:
    """Return a ResourceQuota."""
    written = {key.replace("_", "."): amount for key, amount in hard.items()}
    return {"metadata": {"name": name, "namespace": space}, "spec": {"hard": written}}


def node(name: str, product: str = "", **offered: str) -> dict[str, Any]:
    """Return a Node; `rdma_v100="63"` is its allocatable amount of nvidia.com/rdma_v100."""
    labels = {"kubernetes.io/hostname": name}
    if product:
        labels["nvidia.com/gpu.product"] = product
    amounts = {f"nvidia.com/{key}": amount for key, amount in offered.items()}
    status = {"allocatable": amounts, "conditions": READY}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


class Stream:
    """A watch that a test ends or breaks."""

    def __init__(self, query: Query, silence: float) -> None:
        self.query, self.silence = query, silence
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.closed = False

    def send(self, *events: Any) -> None:
        """Send events; None ends the watch, and an exception breaks it."""
        for event in events:
            self._waiting.put(event)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while (event := self._waiting.get(timeout=300)) is not None:
            if isinstance(event, Exception):
                raise event
            yield event

    def interrupt(self) -> None:
        """End the watch with an error, as a silent connection does."""
        self.send(ClusterError("the connection was closed"))

    def close(self) -> None:
        """Record that the watch was closed."""
        self.closed = True


class Cluster:
    """Objects by path; each change is sent to the open watches."""

    def __init__(self, page: int = 500) -> None:
        self.asked: list[tuple[str, Query]] = []
        self.streams: dict[str, list[Stream]] = {}
        #: The errors that the next requests raise, in order; None for a request without an error.
        self.failures: list[Exception | None] = []
        #: The paths that may not be read.
        self.forbidden: set[str] = set()
        self.version = 100
        self._page = page
        #: The largest page with several objects, in characters.
        self.largest_page = 1 << 30
        self._objects: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def put(self, path: str, *items: dict[str, Any]) -> None:
        """Create or change objects."""
        for item in items:
            stored = self._objects.setdefault(path, {})
            kind = "MODIFIED" if _key(item) in stored else "ADDED"
            stored[_key(item)] = item
            self._tell(path, kind, item)

    def delete(self, path: str, item: dict[str, Any]) -> None:
        """Delete an object."""
        del self._objects[path][_key(item)]
        self._tell(path, "DELETED", item)

    def forget(self, path: str, *items: dict[str, Any]) -> None:
        """Replace all objects without sending events, as if the events were lost."""
        self.version += 1
        self._objects[path] = {_key(item): item for item in items}

    def watch(self, path: str) -> Stream:
        """Return the open watch."""
        return self.streams[path][-1]

    def get(self, path: str, query: Query) -> dict[str, Any]:
        """Return a page of a list."""
        self._ask(path, query)
        items = list(self._objects.get(path, {}).values())
        start = int(query.get("continue") or 0)
        end = start + min(self._page, int(query.get("limit", self._page)))
        metadata = {"resourceVersion": str(self.version)}
        if end < len(items):
            metadata["continue"] = str(end)
        page = items[start:end]
        if len(page) > 1 and sum(map(_size, page)) > self.largest_page:
            raise LargePageError("too large")
        return {"metadata": metadata, "items": page}

    def stream(self, path: str, query: Query, silence: float) -> Stream:
        """Start a watch."""
        self._ask(path, query)
        stream = Stream(query, silence)
        self.streams.setdefault(path, []).append(stream)
        return stream

    def _ask(self, path: str, query: Query) -> None:
        with self._lock:
            self.asked.append((path, dict(query)))
            if self.failures and (failure := self.failures.pop(0)):
                raise failure
            if path in self.forbidden:
                raise refused(403)

    def _tell(self, path: str, kind: str, item: dict[str, Any]) -> None:
        self.version += 1
        for stream in self.streams.get(path, [])[-1:]:
            stream.send(event(kind, item, self.version))


def event(kind: str, item: dict[str, Any], version: int) -> dict[str, Any]:
    """Return an event, with its version in the object."""
    metadata = {**item.get("metadata", {}), "resourceVersion": str(version)}
    return {"type": kind, "object": {**item, "metadata": metadata}}


def bookmark(version: int) -> dict[str, Any]:
    """Return a bookmark."""
    return event("BOOKMARK", {}, version)


def gone(code: int = 410) -> dict[str, Any]:
    """Return the event that ends a watch with an old version."""
    return {"type": "ERROR", "object": {"code": code, "message": "too old\nresource version"}}


def refused(code: int, retry_after: float = 0.0) -> StatusError:
    """Return the error of a refused request."""
    return StatusError(code, "no", retry_after)


def _key(item: dict[str, Any]) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _size(item: dict[str, Any]) -> int:
    return len(str(item))
