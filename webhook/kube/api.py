"""The API server of a reflector: pages of a list, the stream of a watch, and errors.

`webhook.kube.reads` implements these protocols over HTTP; tests have their own implementations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import NamedTuple, Protocol
from urllib.parse import quote

from webhook.errors import ClusterError
from webhook.model.json import JsonObject

#: Parameters of a request.
Query = Mapping[str, str]


class StatusError(ClusterError):
    """The API server answered with an error."""

    def __init__(self, code: int, message: str, retry_after: float = 0.0) -> None:
        """`retry_after`: seconds after which to try again; 0 if the answer has none."""
        super().__init__(f"the API server answered {code}: {message}")
        self.code = code
        self.retry_after = retry_after

    def says_missing(self, name: str) -> bool:
        """Return whether the object `name` does not exist.

        A version of a kind that is not served is answered with 404 as well, but without the name.
        """
        return self.code == HTTPStatus.NOT_FOUND and f'"{name}" not found' in str(self)


class LargePageError(ClusterError):
    """A page with several objects is too large to be parsed; one with fewer may not be."""


class PlainAnswer(NamedTuple):
    """An answer that need not be an object."""

    status: int
    text: str
    #: The header Date: when the API server sent it, in the format of HTTP; "" without one.
    date: str


class WatchStream(Protocol):
    """The stream of one watch: its events as they arrive, each as sent by the API server."""

    def __iter__(self) -> Iterator[JsonObject]:
        """Wait for events until the API server ends the watch; raise ClusterError if it breaks."""

    def interrupt(self) -> None:
        """End the watch from another thread; does nothing if it has ended already."""

    def close(self) -> None:
        """Release the connection."""


class ObjectReads(Protocol):
    """Blocking reads of objects from an API server.

    Raises StatusError if the API server rejects a request, and ClusterError if it does not answer.
    """

    def get(self, path: str, query: Query) -> JsonObject:
        """Return an object, or a page of a list.

        Raises LargePageError if a page with several objects is too large for the process.
        """


class ListerWatcher(ObjectReads, Protocol):
    """Reads and watches for a reflector, with the same errors."""

    def stream(self, path: str, query: Query, silence: float) -> WatchStream:
        """Begin a watch; it breaks if nothing arrives for `silence` seconds."""


# Names in paths.

#: What a segment may contain besides letters, digits and `_.-~`. Source: RFC 3986, pchar.
_PLAIN = "!$&'()*+,;=:@"


def path_segment(name: str) -> str:
    """Return a name as one segment of a path.

    Users choose some names, such as those of a pod's owners, and the API server accepts anything:
    `../../secrets/x`, `pod/proxy/quit?now`. With the rights of an administrator, that would be a
    request to whatever they want. An API server decodes a path before it splits it; so such a name
    is encoded twice, and it gets a name with `%`, which it refuses.
    """
    encoded = name.replace(".", "%2E") if name in {".", ".."} else quote(name, safe=_PLAIN)
    return encoded.replace("%", "%25")


# The message of a Kubernetes `Status`, the answer to a failed request, on one line.

#: Characters of a message; an API server may quote the request in it.
_MAX_MESSAGE_LENGTH = 300


def message_of(status: Mapping[str, object]) -> str:
    """Return the message of a Status on one line, shortened."""
    return single_line(status.get("message") or "no reason given")


def single_line(text: object) -> str:
    """Return text on one line, shortened."""
    return " ".join(str(text).split())[:_MAX_MESSAGE_LENGTH]
