"""Read a whole list page by page, and keep in memory only what is needed."""

from __future__ import annotations

from typing import Any, NamedTuple

from webhook.decision.facts import key_of
from webhook.kube.kinds import Kind
from webhook.kube.requests import Reads

#: Namespace ("" for cluster-scoped objects) and name.
Key = tuple[str, str]


class Listing(NamedTuple):
    """What is kept of all objects of a kind, and the version after which to watch."""

    held: dict[Key, Any]
    version: str


def read_list(reads: Reads, kind: Kind) -> Listing:
    """Read the list as it is now (no resourceVersion: never an old copy from a cache).

    Raises RefusedError with code 410 if the API server has dropped the list's version before the
    last page was read.
    """
    held: dict[Key, Any] = {}
    first = query = {**kind.query, "limit": str(kind.page)}
    while True:
        page = reads.get(kind.path, query)
        for item in page.get("items") or ():
            if kept := kind.project(item):
                held[key_of(item)] = kept
        after = page.get("metadata") or {}
        if not after.get("continue"):
            return Listing(held, str(after["resourceVersion"]))
        query = {**first, "continue": after["continue"]}
