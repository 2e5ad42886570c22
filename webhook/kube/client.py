"""A Kubernetes API server, through the official client.

Importing that client costs a third of a second and tens of MiB, so this module is
imported where it is used, in the thread that uses it. Requests are raw (`call_api`), since
the objects are changed as they are and no model of them is needed. Its own repetitions are
off: who asks here waits longer each time, and can be stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.client.rest import RESTResponse
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as NoAnswerError

from webhook.errors import ClusterError
from webhook.kube.api_status import message_of, one_line

#: An object as the API server has it, in JSON's types.
Object = dict[str, Any]

#: Who owns the fields that are applied.
FIELD_MANAGER = "rdma-webhook"
#: To connect, and to wait for an answer; none of these requests is a heavy one.
SECONDS = (3.0, 10.0)
#: What the libraries below raise where an answer does not come, or breaks off.
BROKEN = (ApiException, HTTPError, OSError)


class Client:
    """An API server as a service account or the user of a kubeconfig sees it."""

    def __init__(self, kubeconfig: Path | None = None) -> None:
        """Connect by the service account that is mounted into this pod, or by a kubeconfig.

        Nothing is sent yet. Raises ClusterError if the one or the other cannot be read.
        """
        configuration = Configuration()
        try:
            if kubeconfig is None:
                # which reads the token again each minute
                load_incluster_config(configuration)  # type: ignore[no-untyped-call]
            else:
                load_kube_config(  # type: ignore[no-untyped-call]
                    str(kubeconfig), client_configuration=configuration
                )
        except Exception as error:
            where = kubeconfig or "the service account"
            raise ClusterError(f"cannot connect by {where}: {_unreadable(error)}") from error
        configuration.retries = False
        #: The official client, for requests that are not made here.
        self.api = ApiClient(configuration)

    def read(self, path: str) -> Object | None:
        """Return the object at a path; None if there is none."""
        status, answer = self.send("GET", path)
        return None if status == HTTPStatus.NOT_FOUND else _checked(status, answer)

    def create(self, path: str, body: Object) -> bool:
        """Create an object in a collection; False if one of its name is there already."""
        status, answer = self.send("POST", path, body, "application/json")
        if status == HTTPStatus.CONFLICT and answer.get("reason") == "AlreadyExists":
            return False
        _checked(status, answer)
        return True

    def replace(self, path: str, body: Object) -> bool:
        """Replace an object; False if it is not the one (resourceVersion) of `body` any more."""
        status, answer = self.send("PUT", path, body, "application/json")
        return _kept(status, answer)

    def apply(self, path: str, body: Object) -> bool:
        """Apply (server-side, with force) the fields of `body`, and own them.

        False if the object is not the one (uid, resourceVersion) of `body` any more.
        """
        query = [("fieldManager", FIELD_MANAGER), ("force", "true")]
        status, answer = self.send("PATCH", path, body, "application/apply-patch+yaml", query)
        return _kept(status, answer)

    def send(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        content_type: str = "",
        query: list[tuple[str, str]] | None = None,
    ) -> tuple[int, Object]:
        """Return the status and the object of an answer, whatever the status is.

        Raises ClusterError where there is none.
        """
        answer = self.open(method, path, body, content_type, query=query)
        try:
            return answer.status, _parsed(answer.read())  # type: ignore[no-untyped-call]
        except BROKEN as error:
            raise self.unreachable(error) from error

    def open(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        content_type: str = "",
        *,
        query: list[tuple[str, str]] | None = None,
        seconds: tuple[float, float] = SECONDS,
    ) -> RESTResponse:
        """Return an answer of which only the head has been read, whatever its status is.

        `seconds`: to connect, and for each part of the answer. ClusterError if there is none.
        """
        headers = {"Accept": "application/json"}
        if content_type:
            headers["Content-Type"] = content_type
        request = self.api.param_serialize(
            method, path, query_params=query, header_params=headers, body=body,
            auth_settings=["BearerToken"],
        )  # fmt: skip
        try:
            return self.api.call_api(*request, _request_timeout=seconds)
        except BROKEN as error:
            raise self.unreachable(error) from error

    def unreachable(self, error: Exception) -> ClusterError:
        """Say in one line which API server could not be reached, and why."""
        host = self.api.configuration.host
        return ClusterError(f"cannot reach the API server {host}: {_why(error)}")


def _unreadable(error: Exception) -> str:
    """Say why; a file that is none makes the client fail anyhow, with its content in the text."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, ConfigException):
        return " ".join(str(error).split())
    return f"not in the form of a kubeconfig ({type(error).__name__})"


def _parsed(body: bytes) -> Object:
    try:
        found: Any = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _checked(status: int, answer: Object) -> Object:
    if 200 <= status < 300:  # noqa: PLR2004 -- what HTTP calls success
        return answer
    raise ClusterError(f"the API server answered {status}: {message_of(answer)}")


def _kept(status: int, answer: Object) -> bool:
    """Return whether a change was made; one that came too late is no error."""
    if status in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND):
        return False
    _checked(status, answer)
    return True


def _why(error: BaseException) -> str:
    """Say what was wrong as the operating system does, not as four libraries around it."""
    for one in _causes(error):
        if isinstance(one, OSError) and one.strerror:
            return one.strerror
    if any(isinstance(one, (TimeoutError, NoAnswerError)) for one in _causes(error)):
        return "timed out"  # theirs names an object by its address, another one each time
    reason = error.reason if isinstance(error, ApiException) else error
    return one_line(reason) or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
