"""Lists and watches over HTTP, with the official client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from kubernetes.client.rest import RESTResponse

from webhook.errors import ClusterError
from webhook.kube.api import LargePageError, Query, StatusError, message_of
from webhook.kube.client import BROKEN, Client
from webhook.kube.tolerant_json import read_json

#: Timeouts for connecting, and for a page, which a busy API server may send slowly.
CONNECT, READ = 3.0, 30.0
#: The longest accepted Retry-After in seconds; API servers send 1.
MAX_RETRY_SECONDS = 60.0
_OK = 200


class HttpReads:
    """Reads and watches of an API server over HTTP, for several threads."""

    def __init__(self, client: Client, max_page_bytes: int | None = None) -> None:
        """Prepare. `max_page_bytes`: a larger page of several objects raises LargePageError."""
        self._client = client
        self._max_page_bytes = max_page_bytes

    def get(self, path: str, query: Query) -> dict[str, object]:
        """Return an object, or a page of a list."""
        answer = self._open(path, query, READ)
        has_several = int(query.get("limit", 1)) > 1
        body = self._body(answer, path, self._max_page_bytes if has_several else None)
        manifest = _object(body)
        if manifest is None:
            raise ClusterError(f"the API server's answer to {path} is not an object")
        return manifest

    def stream(self, path: str, query: Query, silence: float) -> HttpWatchStream:
        """Begin a watch; it breaks if nothing arrives for `silence` seconds."""
        return HttpWatchStream(self._client, self._open(path, query, silence))

    def _open(self, path: str, query: Query, seconds: float) -> RESTResponse:
        answer = self._client.open("GET", path, query=[*query.items()], seconds=(CONNECT, seconds))
        if answer.status != _OK:
            status = _object(self._body(answer, path)) or {}
            after = _seconds(answer.headers.get("Retry-After"))
            raise StatusError(answer.status, message_of(status), after)
        return answer

    def _body(self, answer: RESTResponse, path: str, limit: int | None = None) -> bytes:
        """Return the body; more than `limit` bytes raise LargePageError."""
        try:
            body: bytes = answer.response.read(None if limit is None else limit + 1)
        except BROKEN as error:
            raise self._client.unreachable(error) from error
        if limit is not None and len(body) > limit:
            answer.response.close()
            raise LargePageError(f"a page of {path} has more than {limit} bytes")
        return body


class HttpWatchStream:
    """The events of one watch, each a line of JSON."""

    def __init__(self, client: Client, answer: RESTResponse) -> None:
        self._client = client
        self._response = answer.response

    def __iter__(self) -> Iterator[dict[str, object]]:
        """Wait for events until the API server ends the watch; raise ClusterError if it breaks."""
        rest = b""
        try:
            for chunk in self._response.stream(amt=None, decode_content=False):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in filter(None, lines):
                    yield read_json(line)
        except BROKEN as error:
            raise self._client.unreachable(error) from error

    def interrupt(self) -> None:
        """End the watch from another thread; does nothing if it has ended already."""
        with suppress(ValueError, RuntimeError, OSError):
            self._response.shutdown()

    def close(self) -> None:
        """Release the connection."""
        self._response.close()


def _seconds(retry_after: str | None) -> float:
    """Return the seconds of a Retry-After header; API servers send no dates."""
    numeric = retry_after is not None and retry_after.isascii() and retry_after.isdigit()
    return min(float(retry_after or 0), MAX_RETRY_SECONDS) if numeric else 0.0


def _object(body: bytes) -> dict[str, object] | None:
    try:
        document = read_json(body)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None
