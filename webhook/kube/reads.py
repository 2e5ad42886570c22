"""Lists and watches over HTTP, by the official client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import orjson
from kubernetes.client.rest import RESTResponse

from webhook.errors import ClusterError
from webhook.kube.api_status import message_of
from webhook.kube.client import BROKEN, Client
from webhook.kube.requests import Query, RefusedError

#: To connect; and to wait for a page, for which a busy API server may need a while.
CONNECT, READ = 3.0, 30.0
_OK = 200


class ApiReads:
    """Reads an API server, for several threads."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, path: str, query: Query) -> dict[str, Any]:
        """Return an object, or a page of a list."""
        body = self._body(self._open(path, query, READ))
        found = _object(body)
        if found is None:
            raise ClusterError(f"the API server answered {path} with no object")
        return found

    def stream(self, path: str, query: Query, silence: float) -> ApiEvents:
        """Begin a watch; one that says nothing for so many seconds is broken."""
        return ApiEvents(self._client, self._open(path, query, silence))

    def _open(self, path: str, query: Query, seconds: float) -> RESTResponse:
        answer = self._client.open("GET", path, query=[*query.items()], seconds=(CONNECT, seconds))
        if answer.status != _OK:
            status = _object(self._body(answer)) or {}
            raise RefusedError(answer.status, message_of(status))
        return answer

    def _body(self, answer: RESTResponse) -> bytes:
        try:
            body: bytes = answer.read()  # type: ignore[no-untyped-call]
        except BROKEN as error:
            raise self._client.unreachable(error) from error
        return body


class ApiEvents:
    """The events of one watch: a line of JSON each."""

    def __init__(self, client: Client, answer: RESTResponse) -> None:
        self._client = client
        self._response = answer.response

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Wait for events; ends when the API server ends it, ClusterError if it breaks off."""
        rest = b""
        try:
            for chunk in self._response.stream(amt=None, decode_content=False):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in filter(None, lines):
                    yield orjson.loads(line)
        except BROKEN as error:
            raise self._client.unreachable(error) from error

    def interrupt(self) -> None:
        """End it from another thread; one that has ended already stays so."""
        with suppress(ValueError, RuntimeError, OSError):
            self._response.shutdown()

    def close(self) -> None:
        """Give back what it holds."""
        self._response.close()


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        found: Any = orjson.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
