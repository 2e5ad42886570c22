"""A whole list, page by page, of which only what is needed stays in memory."""

from __future__ import annotations

from typing import Any, NamedTuple

from webhook.decision.facts import key_of
from webhook.kube.kinds import Kind
from webhook.kube.requests import Reads

#: Objects on a page: half a megabyte of namespaces.
PAGE = 500

#: Namespace ("" for what is in none) and name.
Key = tuple[str, str]


class Listing(NamedTuple):
    """What is kept of all objects of a kind, and since when the events are missing."""

    held: dict[Key, Any]
    version: str


def read_list(reads: Reads, kind: Kind) -> Listing:
    """Read the list as it is now (no resourceVersion: never an old copy from a cache).

    RefusedError with code 410 if the pages took longer than the API server remembers.
    """
    held: dict[Key, Any] = {}
    query = {"limit": str(PAGE)}
    while True:
        page = reads.get(kind.path, query)
        for item in page.get("items") or ():
            if kept := kind.project(item):
                held[key_of(item)] = kept
        after = page.get("metadata") or {}
        if not after.get("continue"):
            return Listing(held, str(after["resourceVersion"]))
        query = {"limit": str(PAGE), "continue": after["continue"]}
