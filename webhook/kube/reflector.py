"""Reflectors, which list all objects of one kind and then watch their changes.

The projection of an object is what is kept of it; see `webhook.kube.watched_resources`.

The client's SharedInformer (37.0.2) is not used. It lists everything in one answer and keeps
whole objects; it reconnects without a pause to an unreachable API server (thousands of errors
a second), requests no bookmarks, has no read timeout and does not report whether it has listed.
The code needed around it would be longer than this module.

    a watch ends, as it does every few minutes    watch again from the last version
    the API server has not reached that version   list again at once: etcd was restored
    the API server has dropped the version (410)  list again at once: it may have restarted
    an optional kind is refused (403, 404)        treat it as an empty list, and list again later
    anything goes wrong                           list again, after a pause
    it is too busy, and sends a Retry-After       try again after that time

A watch from a version that lies in the future is silent until the API server gets there (seen on
1.36), and versions go back if etcd is restored from a snapshot. So the version is checked before
each watch, and is not kept after a failure, although it could be.

Pauses grow while attempts keep failing, and are short again after a watch that lasted.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Generic, NamedTuple, TypeVar

from webhook.errors import ClusterError
from webhook.kube.api import (
    LargePageError,
    ListerWatcher,
    ObjectReads,
    Query,
    StatusError,
    WatchStream,
    message_of,
)
from webhook.kube.watched_resources import Item, WatchedResource
from webhook.model.facts import key_of
from webhook.model.json import JsonObject

# The changes of one kind, and the thread that watches it.

#: The API server sends a bookmark each minute if there is no event: a watch that is silent
#: for longer has lost its connection.
SILENCE = 90.0
#: An attempt that lasted this many seconds counts as a success: pauses are short again.
STEADY = 10.0


class Change(NamedTuple):
    """A change of an object."""

    key: Key
    #: Its projection; None for a deleted object, or one that does not affect decisions.
    projection: object


#: Called with changes in order, in the reflector's thread; after each list, even without changes.
Deliver = Callable[[WatchedResource[object], list[Change]], None]


class Reflector:
    """A list and watch of one kind, in a thread; any thread may read its public attributes."""

    def __init__(
        self,
        watched: WatchedResource[object],
        connect: Callable[[], ListerWatcher],
        deliver: Deliver,
        pauses: Callable[[], Iterator[float]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare, without calling anything; `connect` may be slow."""
        self.watched = watched
        #: The time of the API server's last message, by `clock`; None before the first.
        self.last_contact: float | None = None
        #: The present problem, on one line; "" if all is well.
        self.problem = ""
        #: The exception of a problem that is a defect of the webhook.
        self.defect: Exception | None = None
        self.list_count = 0
        self.failures = 0
        #: Whether an optional kind was refused at the last list, which then counted as empty.
        self.absent = False
        self._connect = connect
        self._deliver = deliver
        self._pauses = pauses
        self._clock = clock
        self._projections: dict[Key, object] = {}
        self._version = ""  # of the last event; "": list first
        self._retry_after = 0.0  # seconds, if the last attempt got one
        self._stream: WatchStream | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=watched.resource, daemon=True)

    @property
    def object_count(self) -> int:
        """The number of projected objects."""
        return len(self._projections)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, without waiting for its end."""
        self._stop.set()
        stream = self._stream
        if stream is not None:
            stream.interrupt()

    def join(self, seconds: float) -> bool:
        """Wait at most `seconds` for the end of the thread; return whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        pauses = self._pauses()
        while not self._stop.is_set():
            began = self._clock()
            self.attempt()
            if self._clock() - began >= STEADY:
                pauses = self._pauses()
            self._stop.wait(max(next(pauses), self._retry_after))

    def attempt(self) -> None:
        """List if necessary, and watch until the watch ends; never raises."""
        self._retry_after = 0.0
        try:
            self._keep_up(self._connect())
        except Exception as error:  # noqa: BLE001 -- nothing else keeps up if this thread ends
            self._version = ""
            self._retry_after = getattr(error, "retry_after", 0.0)
            self._record_failure(error)

    def _keep_up(self, lister_watcher: ListerWatcher) -> None:
        if self._version and self._resume_watch(lister_watcher):
            return
        self._list(lister_watcher)
        self._watch(lister_watcher)

    def _resume_watch(self, lister_watcher: ListerWatcher) -> bool:
        """Watch from the last version; return whether the API server knows that version."""
        if not self._is_reached(lister_watcher):
            return False
        try:
            self._watch(lister_watcher)
        except StatusError as error:
            if error.code != HTTPStatus.GONE:
                raise
            return False
        return True

    def _is_reached(self, lister_watcher: ListerWatcher) -> bool:
        """Return whether the API server has reached the version; it is an integer.

        Source: Kubernetes' API concepts, Resource versions: integers that can be compared.
        """
        query = {**self.watched.query, "limit": "1"}
        metadata = (
            _page(lister_watcher, self.watched.path, query, self._stop.wait).get("metadata") or {}
        )
        return int(metadata["resourceVersion"]) >= int(self._version)

    def _record_failure(self, error: Exception) -> None:
        if self._stop.is_set():
            return
        self.failures += 1
        ours = not isinstance(error, ClusterError)
        self.defect = error if ours else None
        self.problem = f"internal error: {type(error).__name__}" if ours else str(error)

    def _record_success(self) -> None:
        self.last_contact = self._clock()
        self.problem, self.defect = "", None

    def _list(self, lister_watcher: ListerWatcher) -> None:
        try:
            listing = read_list(lister_watcher, self.watched, self._stop.wait)
        except StatusError as error:
            if self._counts_as_empty(error):
                self.absent = True
                self._apply_list(Listing({}, ""))
            raise
        self.absent = False
        self._apply_list(listing)

    def _counts_as_empty(self, error: StatusError) -> bool:
        """Whether to go on without this kind; after a list, a 403 keeps the objects."""
        missing = error.code == HTTPStatus.NOT_FOUND
        denied = error.code == HTTPStatus.FORBIDDEN and not self.list_count
        return self.watched.optional and (
            missing or (denied and not self.watched.forbidden_is_error)
        )

    def _apply_list(self, listing: Listing[object]) -> None:
        changes = [
            *(Change(key, None) for key in self._projections.keys() - listing.projections.keys()),
            *(
                Change(key, projection)
                for key, projection in listing.projections.items()
                if self._projections.get(key) != projection
            ),
        ]
        self._projections, self._version = listing
        self.list_count += 1
        self._record_success()
        self._deliver(self.watched, changes)

    def _watch(self, lister_watcher: ListerWatcher) -> None:
        query = {
            **self.watched.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(random.randint(*self.watched.watch_seconds)),  # noqa: S311 -- not a secret
        }
        self._stream = stream = lister_watcher.stream(self.watched.path, query, SILENCE)
        try:
            self._record_success()
            if not self._stop.is_set():
                for event in stream:
                    self._record_success()
                    self._apply_event(event)
        finally:
            self._stream = None
            stream.close()

    def _apply_event(self, event: JsonObject) -> None:
        manifest = event["object"]
        if event["type"] == "ERROR":
            raise StatusError(int(manifest.get("code") or 0), message_of(manifest))
        if event["type"] != "BOOKMARK":
            self._apply_change(manifest, deleted=event["type"] == "DELETED")
        self._version = str(manifest["metadata"]["resourceVersion"])

    def _apply_change(self, manifest: Item, *, deleted: bool) -> None:
        key, projection = (
            key_of(manifest),
            None if deleted else self.watched.project(manifest) or None,
        )
        if self._projections.get(key) == projection:
            return
        if projection is None:
            del self._projections[key]
        else:
            self._projections[key] = projection
        self._deliver(self.watched, [Change(key, projection)])


# Read a whole list page by page, keeping only projections in memory.

#: Namespace ("" for cluster-scoped objects) and name.
Key = tuple[str, str]
#: Waits for some seconds; returns whether to stop instead of going on.
Wait = Callable[[float], bool]
#: How often a page is requested again after a Retry-After.
#: Source: client-go, rest/request.go (maxRetries).
RETRIES = 10
_Projection = TypeVar("_Projection")


class StoppedError(ClusterError):
    """The list was not read to its end, because the program stops."""


class Listing(NamedTuple, Generic[_Projection]):
    """The projections of all objects of a kind, and the version after which to watch."""

    projections: dict[Key, _Projection]
    version: str


def pause(seconds: float) -> bool:
    """Wait for some seconds: a `Wait` that never stops."""
    time.sleep(seconds)
    return False


def read_list(
    reads: ObjectReads, watched: WatchedResource[_Projection], wait: Wait = pause
) -> Listing[_Projection]:
    """Read the list as it is now (no resourceVersion: never an old copy from a cache).

    Pages have fewer objects where these are large, since users could otherwise exhaust the memory.
    Raises StatusError with code 410 if the API server has dropped the list's version before the
    last page was read, and StoppedError if `wait` returns true.
    """
    projections: dict[Key, _Projection] = {}
    query, limit = watched.query, watched.page
    while True:
        try:
            page = _page(reads, watched.path, {**query, "limit": str(limit)}, wait)
        except LargePageError:
            limit //= 2
            continue
        for manifest in page.get("items") or ():
            if projection := watched.project(manifest):
                projections[key_of(manifest)] = projection
        after = page.get("metadata") or {}
        if not after.get("continue"):
            return Listing(projections, str(after["resourceVersion"]))
        query = {**watched.query, "continue": after["continue"]}
        limit = min(2 * limit, watched.page)  # large objects may be few
        del page  # before the wait, since it takes much more memory than the projections
        if wait(watched.page_pause):
            raise StoppedError("stopped")


def _page(reads: ObjectReads, path: str, query: Query, wait: Wait) -> JsonObject:
    """Read a page; retry with a busy API server after its Retry-After (429, 503)."""
    for _ in range(RETRIES):
        try:
            return reads.get(path, query)
        except StatusError as error:
            if not error.retry_after:
                raise
            if wait(error.retry_after):
                raise StoppedError("stopped") from error
    return reads.get(path, query)
