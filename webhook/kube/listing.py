"""Read a whole list page by page, and keep in memory only what is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from webhook.errors import ClusterError
from webhook.kube.api import ObjectReads, Query, RefusedError
from webhook.kube.watched_resources import Kind
from webhook.model.facts import key_of

#: Namespace ("" for cluster-scoped objects) and name.
Key = tuple[str, str]
#: Waits for some seconds; returns whether to stop instead of going on.
Wait = Callable[[float], bool]
#: How often a page is requested again, if the API server says when.
#: Source: client-go, rest/request.go (maxRetries).
RETRIES = 10


class StoppedError(ClusterError):
    """The list was not read to its end, because the program ends."""


class Listing(NamedTuple):
    """What is kept of all objects of a kind, and the version after which to watch."""

    held: dict[Key, Any]
    version: str


def read_list(reads: ObjectReads, kind: Kind, wait: Wait) -> Listing:
    """Read the list as it is now (no resourceVersion: never an old copy from a cache).

    Raises RefusedError with code 410 if the API server has dropped the list's version before the
    last page was read, and StoppedError if `wait` says so.
    """
    held: dict[Key, Any] = {}
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


def _page(reads: ObjectReads, path: str, query: Query, wait: Wait) -> dict[str, Any]:
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
