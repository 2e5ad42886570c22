"""Lists and watches over HTTP, with the official client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import orjson
from kubernetes.client.rest import RESTResponse

from webhook.errors import ClusterError
from webhook.kube.api import LargePageError, Query, StatusError, message_of
from webhook.kube.client import BROKEN, Client

#: Timeouts for connecting, and for a page, which a busy API server may send slowly.
CONNECT, READ = 3.0, 30.0
#: The longest accepted Retry-After in seconds; API servers send 1.
MAX_RETRY_SECONDS = 60.0
#: The largest page with several objects, in bytes; usual ones have a quarter. Users decide how
#: large their objects are, and a parsed page takes up to 30 times as much memory.
MAX_PAGE_BYTES = 2 * 1024 * 1024
_OK = 200


class HttpReads:
    """Reads and watches of an API server over HTTP, for several threads."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, path: str, query: Query) -> dict[str, object]:
        """Return an object, or a page of a list."""
        answer = self._open(path, query, READ)
        has_several = int(query.get("limit", 1)) > 1
        manifest = _object(self._page(answer, path) if has_several else self._body(answer))
        if manifest is None:
            raise ClusterError(f"the API server's answer to {path} is not an object")
        return manifest

    def stream(self, path: str, query: Query, silence: float) -> HttpWatchStream:
        """Begin a watch; it breaks if nothing arrives for `silence` seconds."""
        return HttpWatchStream(self._client, self._open(path, query, silence))

    def _open(self, path: str, query: Query, seconds: float) -> RESTResponse:
        answer = self._client.open("GET", path, query=[*query.items()], seconds=(CONNECT, seconds))
        if answer.status != _OK:
            status = _object(self._body(answer)) or {}
            after = _seconds(answer.headers.get("Retry-After"))
            raise StatusError(answer.status, message_of(status), after)
        return answer

    def _page(self, answer: RESTResponse, path: str) -> bytes:
        try:
            body: bytes = answer.response.read(MAX_PAGE_BYTES + 1)
        except BROKEN as error:
            raise self._client.unreachable(error) from error
        if len(body) > MAX_PAGE_BYTES:
            answer.response.close()
            raise LargePageError(f"a page of {path} has more than {MAX_PAGE_BYTES} bytes")
        return body

    def _body(self, answer: RESTResponse) -> bytes:
        try:
            body: bytes = answer.read()  # type: ignore[no-untyped-call]
        except BROKEN as error:
            raise self._client.unreachable(error) from error
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
                    yield orjson.loads(line)
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
        document: object = orjson.loads(body)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None
