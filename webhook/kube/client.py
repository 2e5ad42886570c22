"""A Kubernetes API server, through the official client.

Importing that client takes a third of a second and tens of MiB, so import this module only
where it is used, in the thread that uses it. Requests are raw (`call_api`), since the objects
are changed as JSON and need no models. The client's own retries are off: callers of this module
retry after growing pauses, and can be stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

from kubernetes.client.exceptions import ApiException
from kubernetes.client.rest import RESTResponse
from urllib3 import HTTPHeaderDict
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as NoAnswerError

from webhook.errors import ClusterError
from webhook.kube.access import UNCHANGED, Overrides
from webhook.kube.api import PlainAnswer, message_of, single_line
from webhook.kube.credentials import official_client
from webhook.kube.tolerant_json import read_json
from webhook.model.json import JsonObject

#: An object as returned by the API server, in JSON's types.
Object = JsonObject
#: The body of a request: an object, the operations of a JSON patch, or nothing.
Body = Object | list[Object] | None

#: The owner of all fields that this program writes. The guards, which are the admission policies
#: rdma-webhook-guard and rdma-webhook-guard-*, know it by this name.
FIELD_MANAGER = "rdma-webhook"
_MANAGER = [("fieldManager", FIELD_MANAGER)]
#: The entries of updates in `managedFields`. Source: apimachinery, pkg/util/managedfields/internal,
#: fieldmanager.go (DefaultMaxUpdateManagers).
MAX_UPDATES = 10
#: Timeouts for connecting and for an answer; all these requests are small.
SECONDS = (3.0, 10.0)
#: The libraries' errors if there is no answer, or only a part of one.
BROKEN = (ApiException, HTTPError, OSError)


class Client:
    """An API server, accessed with a service account or a kubeconfig."""

    def __init__(self, kubeconfig: Path | None = None, overrides: Overrides = UNCHANGED) -> None:
        """Use the service account of this pod, or a kubeconfig.

        Nothing is sent yet. Raises ClusterError if the credentials cannot be read.
        """
        #: The official client, for requests that this class does not offer.
        self.api = official_client(kubeconfig, overrides)
        self._overrides = overrides

    @property
    def impersonates(self) -> bool:
        """Whether requests impersonate another user."""
        return bool(self._overrides.acting_as)

    def read(self, path: str) -> Object | None:
        """Return the object at a path; None if it does not exist."""
        status, answer = self.send("GET", path)
        return None if status == HTTPStatus.NOT_FOUND else _checked(status, answer)

    def create(self, path: str, body: Object) -> bool:
        """Create an object in a collection; False if one with its name already exists."""
        status, answer = self.send("POST", path, body, "application/json", _MANAGER)
        if status == HTTPStatus.CONFLICT and answer.get("reason") == "AlreadyExists":
            return False
        _checked(status, answer)
        return True

    def replace(self, path: str, body: Object) -> bool:
        """Replace an object; False if its resourceVersion is no longer that of `body`."""
        return _succeeded(*self.put(path, body))

    def put(self, path: str, body: Object) -> tuple[int, Object]:
        """Replace an object, and own only the fields that change; return as `send` does."""
        return self.send("PUT", path, _disowned(body), "application/json", _MANAGER)

    def apply(self, path: str, body: Object) -> bool:
        """Apply the fields of `body` (server-side, with force), and own them.

        False if the uid or resourceVersion of the object is no longer that of `body`.
        """
        query = [*_MANAGER, ("force", "true")]
        status, answer = self.send("PATCH", path, body, "application/apply-patch+yaml", query)
        return _succeeded(status, answer)

    def merge(self, path: str, body: Object) -> bool:
        """Merge `body` into an object (JSON merge patch).

        False if the object is gone, or its resourceVersion is no longer that of `body`.
        """
        status, answer = self.send("PATCH", path, body, "application/merge-patch+json", _MANAGER)
        return _succeeded(status, answer)

    def send(
        self,
        method: str,
        path: str,
        body: Body = None,
        content_type: str = "",
        query: list[tuple[str, str]] | None = None,
    ) -> tuple[int, Object]:
        """Return the status and the object of an answer, whatever the status is.

        Raises ClusterError if there is no answer.
        """
        answer = self.open(method, path, body, content_type, query=query)
        try:
            return answer.status, parsed(answer.read())  # type: ignore[no-untyped-call]
        except BROKEN as error:
            raise self.unreachable(error) from error

    def plain(self, path: str) -> PlainAnswer:
        """Return an answer that need not be an object; raise ClusterError without an answer."""
        answer = self.open("GET", path)
        try:
            text = answer.read().decode(errors="replace")  # type: ignore[no-untyped-call]
        except BROKEN as error:
            raise self.unreachable(error) from error
        return PlainAnswer(answer.status, text, answer.headers.get("Date", ""))

    def open(
        self,
        method: str,
        path: str,
        body: Body = None,
        content_type: str = "",
        *,
        query: list[tuple[str, str]] | None = None,
        seconds: tuple[float, float] = SECONDS,
    ) -> RESTResponse:
        """Return an answer after reading its head, whatever its status is.

        `seconds`: timeouts for connecting and for each part of the answer. Raises ClusterError if
        there is no answer.
        """
        headers = {"Accept": "application/json"}
        if content_type:
            headers["Content-Type"] = content_type
        request = self.api.param_serialize(
            method, path, query_params=query, header_params=headers, body=body,
            auth_settings=["BearerToken"],
        )  # fmt: skip
        impersonating = _impersonation(self._overrides, request[2] or {})
        limit = self._overrides.request_timeout
        seconds = (min(seconds[0], limit), min(seconds[1], limit)) if limit else seconds
        try:
            return self.api.call_api(
                method, request[1], impersonating, request[3], _request_timeout=seconds
            )
        except BROKEN as error:
            raise self.unreachable(error) from error

    def unreachable(self, error: Exception) -> ClusterError:
        """Return a one-line error with the API server that could not be reached, and the reason."""
        host = self.api.configuration.host
        return ClusterError(f"cannot reach the API server {host}: {_reason(error)}")


def _disowned(body: Object) -> Object:
    """Return an object without this program's entries in `managedFields`.

    The API server then makes a new entry. It would add to the old one, and the guards limit its
    size: somebody with our token could fill it, and the guards would then reject our own writes.
    Nor may there be more entries of updates than the API server keeps: it would merge old ones into
    an entry that the guards do not know.
    """
    metadata = body.get("metadata") or {}
    entries = metadata.get("managedFields") or ()
    foreign = [entry for entry in entries if entry.get("manager") != FIELD_MANAGER]
    updates = [entry for entry in foreign if entry.get("operation") == "Update"]  # oldest first
    surplus = updates[: 1 - MAX_UPDATES]
    foreign = [entry for entry in foreign if entry not in surplus]
    # An empty list would leave the entries as they are; an empty entry removes them all. Source:
    # Kubernetes' documentation, Server-Side Apply, Clearing managedFields.
    metadata = {**metadata, "managedFields": foreign or [{}]}
    return {**body, "metadata": metadata} if entries else body


def _impersonation(overrides: Overrides, headers: dict[str, str]) -> HTTPHeaderDict:
    """Add the headers of impersonation, one for each group.

    Source: Kubernetes' documentation, Authenticating, User impersonation.
    """
    impersonating = HTTPHeaderDict(headers)
    if overrides.acting_as:
        impersonating["Impersonate-User"] = overrides.acting_as
    if overrides.acting_uid:
        impersonating["Impersonate-Uid"] = overrides.acting_uid
    for group in overrides.acting_groups:
        impersonating.add("Impersonate-Group", group)
    return impersonating


def parsed(body: bytes) -> Object:
    """Return the object in an answer; {} for anything else."""
    try:
        document = read_json(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _checked(status: int, answer: Object) -> Object:
    if 200 <= status < 300:  # noqa: PLR2004 -- HTTP's range of success
        return answer
    raise ClusterError(f"the API server answered {status}: {message_of(answer)}")


def _succeeded(status: int, answer: Object) -> bool:
    """Return whether a change was made; one that came too late is not an error."""
    if status in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND):
        return False
    _checked(status, answer)
    return True


def _reason(error: BaseException) -> str:
    """Return the cause in the operating system's words, without the text of four libraries."""
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    if any(isinstance(cause, (TimeoutError, NoAnswerError)) for cause in _causes(error)):
        return "timed out"  # their text has an object's memory address, different each time
    reason = error.reason if isinstance(error, ApiException) else error
    return single_line(reason) or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
