"""Read what a person may read of a cluster, and keep account of what could not be read.

Whoever runs a command may have few rights. What is missing then is no error, but it must be told.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from webhook.errors import ClusterError
from webhook.kube.api import ObjectReads, Query, RefusedError
from webhook.kube.api_status import one_line

#: An object as the API server returns it.
ReadObject = dict[str, Any]
FORBIDDEN, NOT_FOUND = 403, 404
_PAGE = 500


class Unread(NamedTuple):
    """What could not be read, and why."""

    what: str
    #: HTTP status of the API server's answer; 0 if it did not answer.
    code: int
    #: What the API server or the client said, on one line.
    said: str


class PermittedReads:
    """Reads objects and lists; what cannot be read is None, and is added to `unread`."""

    def __init__(self, reads: ObjectReads) -> None:
        self._reads = reads
        #: Each thing once.
        self.unread: list[Unread] = []

    def get(self, path: str, what: str, query: Query | None = None) -> ReadObject | None:
        """Return an object."""
        try:
            return self._reads.get(path, query or {})
        except ClusterError as error:
            self.lack(what, error)
            return None

    def list(self, path: str, what: str, query: Query | None = None) -> list[ReadObject] | None:
        """Return all items of a list, whatever number of pages it takes."""
        found: list[ReadObject] = []
        page: dict[str, str] = {**(query or {}), "limit": str(_PAGE)}
        while True:
            answer = self.get(path, what, page)
            if answer is None:
                return None
            items, metadata = answer.get("items"), answer.get("metadata")
            if isinstance(items, list):
                found.extend(one for one in items if isinstance(one, dict))
            after = metadata.get("continue") if isinstance(metadata, dict) else None
            if not after:
                return found
            page = {**page, "continue": str(after)}

    def lack(self, what: str, error: ClusterError) -> None:
        """Note that something could not be read."""
        code = error.code if isinstance(error, RefusedError) else 0
        found = Unread(what, code, reason_of(error))
        if found not in self.unread:
            self.unread.append(found)


def reason_of(error: ClusterError) -> str:
    """Return what an error says, on one line."""
    return one_line(error).rstrip(".")
