"""What keeping up with a cluster asks of it: pages of a list, and a stream of events.

A seam: tests stand in for it, and `webhook.kube.reads` does it over HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from webhook.errors import ClusterError

#: Parameters of a request.
Query = Mapping[str, str]


class RefusedError(ClusterError):
    """The API server answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"the API server answered {code}: {message}")
        self.code = code


class Events(Protocol):
    """The events of a watch as they come, each as the API server writes it."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Wait for events; ends when the API server ends it, ClusterError if it breaks off."""

    def interrupt(self) -> None:
        """End it from another thread; one that has ended already stays so."""

    def close(self) -> None:
        """Give back what it holds."""


class Reads(Protocol):
    """An API server that is read; every method blocks.

    Raises RefusedError where it says no, and ClusterError where it says nothing.
    """

    def get(self, path: str, query: Query) -> dict[str, Any]:
        """Return an object, or a page of a list."""

    def stream(self, path: str, query: Query, silence: float) -> Events:
        """Begin a watch; one that says nothing for so many seconds is broken."""
