"""Keep up with all objects of one kind: list them, then watch their changes.

The client's SharedInformer (37.0.2) is not used. It lists everything in one answer and keeps
whole objects; it reconnects without a pause to an API server that is gone (thousands of
errors a second), requests no bookmarks, has no read timeout and cannot say whether it has
listed. The code needed around it would be longer than this module.

    a watch ends, as it does every few minutes    watch again from the last version
    the API server has dropped the version (410)  list again at once: it was restarted
    an optional kind is refused (403, 404)        as an empty list, and list again after a pause
    anything goes wrong                           list again, after a pause
    it is too busy, and says for how long         ask again then (Retry-After)

The version is not kept after a failure, although it could be: if etcd was restored meanwhile,
the API server has not reached that version yet, and sends nothing until it has (seen on 1.36).

Pauses grow as long as attempts fail, and are short again after a watch that lasted.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Generic, NamedTuple, TypeVar

from webhook.errors import ClusterError
from webhook.kube.api import ApiReader, Events, ObjectReads, Query, RefusedError, message_of
from webhook.kube.watched_resources import Item, WatchedResource
from webhook.model.facts import key_of
from webhook.model.json import JsonObject

# The changes of one kind, and the thread that keeps up with it.

#: The API server sends a bookmark each minute if there is no event: a watch that is silent
#: for longer has lost its connection.
SILENCE = 90.0
#: An attempt that lasted this many seconds counts as a success: pauses are short again.
STEADY = 10.0


class Change(NamedTuple):
    """A change of an object."""

    key: Key
    #: What is kept of it; None if it is gone, or if decisions do not depend on it.
    kept: object


#: Called with changes in order, in the reflector's thread; after each list once, even without any.
Deliver = Callable[[WatchedResource[object], list[Change]], None]


class Reflector:
    """Keeps up with one kind, in a thread. Any thread may read its public attributes."""

    def __init__(
        self,
        kind: WatchedResource[object],
        connect: Callable[[], ApiReader],
        deliver: Deliver,
        pauses: Callable[[], Iterator[float]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is called before `start`, not even `connect`, which may be slow."""
        self.kind = kind
        #: When the API server last sent something, by `clock`; None: never since the start.
        self.heard: float | None = None
        #: What went wrong last, as one line; "" if all is well.
        self.problem = ""
        #: The exception, if the problem is a defect of the webhook.
        self.defect: Exception | None = None
        self.lists = 0
        self.failures = 0
        #: Whether an optional kind was refused at the last list, which then counted as empty.
        self.absent = False
        self._connect = connect
        self._deliver = deliver
        self._pauses = pauses
        self._clock = clock
        self._held: dict[Key, object] = {}
        self._version = ""  # of the last event; "": list first
        self._retry_after = 0.0  # seconds, if the API server said so at the last attempt
        self._events: Events | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=kind.resource, daemon=True)

    @property
    def objects(self) -> int:
        """How many objects are kept."""
        return len(self._held)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; does not wait until it has."""
        self._stop.set()
        events = self._events
        if events is not None:
            events.interrupt()

    def join(self, seconds: float) -> bool:
        """Wait until the thread has ended, at most `seconds`; return whether it has."""
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
            self._failed(error)

    def _keep_up(self, reads: ApiReader) -> None:
        if self._version and self._resumed(reads):
            return
        self._list(reads)
        self._watch(reads)

    def _resumed(self, reads: ApiReader) -> bool:
        try:
            self._watch(reads)
        except RefusedError as error:
            if error.code != HTTPStatus.GONE:
                raise
            return False
        return True

    def _failed(self, error: Exception) -> None:
        if self._stop.is_set():
            return
        self.failures += 1
        ours = not isinstance(error, ClusterError)
        self.defect = error if ours else None
        self.problem = f"internal error: {type(error).__name__}" if ours else str(error)

    def _well(self) -> None:
        self.heard = self._clock()
        self.problem, self.defect = "", None

    def _list(self, reads: ApiReader) -> None:
        try:
            listing = read_list(reads, self.kind, self._stop.wait)
        except RefusedError as error:
            if self._without(error):
                self.absent = True
                self._use(Listing({}, ""))
            raise
        self.absent = False
        self._use(listing)

    def _without(self, error: RefusedError) -> bool:
        """Whether the webhook works on without this kind: objects that it has, it keeps on 403."""
        gone = error.code == HTTPStatus.NOT_FOUND
        denied = error.code == HTTPStatus.FORBIDDEN and not self.lists
        return self.kind.optional and (gone or (denied and not self.kind.permitted))

    def _use(self, listing: Listing[object]) -> None:
        changes = [
            *(Change(key, None) for key in self._held.keys() - listing.held.keys()),
            *(
                Change(key, kept)
                for key, kept in listing.held.items()
                if self._held.get(key) != kept
            ),
        ]
        self._held, self._version = listing
        self.lists += 1
        self._well()
        self._deliver(self.kind, changes)

    def _watch(self, reads: ApiReader) -> None:
        query = {
            **self.kind.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(random.randint(*self.kind.lasts)),  # noqa: S311 -- not a secret
        }
        self._events = events = reads.stream(self.kind.path, query, SILENCE)
        try:
            self._well()
            if not self._stop.is_set():
                for event in events:
                    self._well()
                    self._take(event)
        finally:
            self._events = None
            events.close()

    def _take(self, event: JsonObject) -> None:
        item = event["object"]
        if event["type"] == "ERROR":
            raise RefusedError(int(item.get("code") or 0), message_of(item))
        if event["type"] != "BOOKMARK":
            self._change(item, gone=event["type"] == "DELETED")
        self._version = str(item["metadata"]["resourceVersion"])

    def _change(self, item: Item, *, gone: bool) -> None:
        key, kept = key_of(item), None if gone else self.kind.project(item) or None
        if self._held.get(key) == kept:
            return
        if kept is None:
            del self._held[key]
        else:
            self._held[key] = kept
        self._deliver(self.kind, [Change(key, kept)])


# Read a whole list page by page, and keep in memory only what is needed.

#: Namespace ("" for cluster-scoped objects) and name.
Key = tuple[str, str]
#: Waits for some seconds; returns whether to stop instead of going on.
Wait = Callable[[float], bool]
#: How often a page is requested again, if the API server says when.
#: Source: client-go, rest/request.go (maxRetries).
RETRIES = 10
_Kept = TypeVar("_Kept")


class StoppedError(ClusterError):
    """The list was not read to its end, because the program ends."""


class Listing(NamedTuple, Generic[_Kept]):
    """What is kept of all objects of a kind, and the version after which to watch."""

    held: dict[Key, _Kept]
    version: str


def read_list(reads: ObjectReads, kind: WatchedResource[_Kept], wait: Wait) -> Listing[_Kept]:
    """Read the list as it is now (no resourceVersion: never an old copy from a cache).

    Raises RefusedError with code 410 if the API server has dropped the list's version before the
    last page was read, and StoppedError if `wait` says so.
    """
    held: dict[Key, _Kept] = {}
    first = query = {**kind.query, "limit": str(kind.page)}
    while True:
        page = _page(reads, kind.path, query, wait)
        for item in page.get("items") or ():
            if kept := kind.project(item):
                held[key_of(item)] = kept
        after = page.get("metadata") or {}
        if not after.get("continue"):
            return Listing(held, str(after["resourceVersion"]))
        query = {**first, "continue": after["continue"]}
        del page  # before the wait, since it takes much more memory than what is kept
        if wait(kind.pace):
            raise StoppedError("stopped")


def _page(reads: ObjectReads, path: str, query: Query, wait: Wait) -> JsonObject:
    """Read a page; an API server that is busy is asked again when it says (429, 503)."""
    for _ in range(RETRIES):
        try:
            return reads.get(path, query)
        except RefusedError as error:
            if not error.retry_after:
                raise
            if wait(error.retry_after):
                raise StoppedError("stopped") from error
    return reads.get(path, query)
