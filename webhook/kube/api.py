"""What a reflector needs from an API server: pages of a list, a stream of events, and its errors.

`webhook.kube.reads` implements these protocols over HTTP; tests have their own implementations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from webhook.errors import ClusterError
from webhook.model.json import JsonObject

#: Parameters of a request.
Query = Mapping[str, str]


class RefusedError(ClusterError):
    """The API server answered with an error."""

    def __init__(self, code: int, message: str, retry_after: float = 0.0) -> None:
        """`retry_after`: the seconds after which it wants to be asked again; 0 if it says none."""
        super().__init__(f"the API server answered {code}: {message}")
        self.code = code
        self.retry_after = retry_after


class Events(Protocol):
    """The events of a watch as they arrive, each as the API server writes it."""

    def __iter__(self) -> Iterator[JsonObject]:
        """Wait for events until the API server ends the watch; ClusterError if it breaks."""

    def interrupt(self) -> None:
        """End the watch from another thread; does nothing if it has ended already."""

    def close(self) -> None:
        """Release the connection."""


class ObjectReads(Protocol):
    """Reads of objects from an API server, which block.

    Raises RefusedError if the API server rejects a request, and ClusterError if it does not answer.
    """

    def get(self, path: str, query: Query) -> JsonObject:
        """Return an object, or a page of a list."""


class ApiReader(ObjectReads, Protocol):
    """Reads and watches; the same errors."""

    def stream(self, path: str, query: Query, silence: float) -> Events:
        """Begin a watch; it breaks if nothing arrives for `silence` seconds."""


# The message of a Kubernetes `Status`, the answer to a request that failed, as one line.

#: Characters of a message; an API server may quote the request in it.
_LONGEST = 300


def message_of(status: Mapping[str, object]) -> str:
    """Return the message of a Status on one line, shortened."""
    return one_line(status.get("message") or "no reason given")


def one_line(words: object) -> str:
    """Return text on one line, shortened."""
    return " ".join(str(words).split())[:_LONGEST]
