"""A Kubernetes API server, through the official client.

Importing that client takes a third of a second and tens of MiB, so this module is
imported only where it is used, in the thread that uses it. Requests are raw (`call_api`),
since the objects are changed as JSON and need no models. The client's own retries are off:
callers of this module retry after growing pauses, and can be stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.client.rest import RESTResponse
from kubernetes.config import (
    ConfigException,
    list_kube_config_contexts,
    load_incluster_config,
    load_kube_config,
)
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as NoAnswerError

from webhook.errors import ClusterError
from webhook.kube.api_status import message_of, one_line

#: An object as the API server returns it, in JSON's types.
Object = dict[str, Any]

#: The owner of the fields that are applied.
FIELD_MANAGER = "rdma-webhook"
#: Timeouts to connect, and for an answer; all these requests are small.
SECONDS = (3.0, 10.0)
#: What the libraries below raise if there is no answer, or only a part of one.
BROKEN = (ApiException, HTTPError, OSError)


class Client:
    """An API server, accessed with a service account or a kubeconfig."""

    def __init__(self, kubeconfig: Path | None = None, context: str | None = None) -> None:
        """Use the service account that is mounted into this pod, or a kubeconfig.

        `context` is one of the kubeconfig (default: its current one). Nothing is sent yet. Raises
        ClusterError if the credentials cannot be read.
        """
        configuration = Configuration()
        # KUBECONFIG may list several files.
        if kubeconfig and not any(map(os.path.exists, str(kubeconfig).split(os.pathsep))):
            raise ClusterError(
                f"the kubeconfig {kubeconfig} does not exist: name one with --kubeconfig"
            )
        try:
            if kubeconfig is None:
                # The client reads the token again each minute.
                load_incluster_config(configuration)  # type: ignore[no-untyped-call]
            else:
                load_kube_config(  # type: ignore[no-untyped-call]
                    str(kubeconfig), context=context, client_configuration=configuration
                )
        except Exception as error:
            where = kubeconfig or "the service account"
            raise ClusterError(f"cannot connect with {where}: {_unreadable(error)}") from error
        configuration.retries = False
        #: The official client, for requests that this class does not offer.
        self.api = ApiClient(configuration)

    def read(self, path: str) -> Object | None:
        """Return the object at a path; None if there is none."""
        status, answer = self.send("GET", path)
        return None if status == HTTPStatus.NOT_FOUND else _checked(status, answer)

    def create(self, path: str, body: Object) -> bool:
        """Create an object in a collection; False if one with its name already exists."""
        status, answer = self.send("POST", path, body, "application/json")
        if status == HTTPStatus.CONFLICT and answer.get("reason") == "AlreadyExists":
            return False
        _checked(status, answer)
        return True

    def replace(self, path: str, body: Object) -> bool:
        """Replace an object; False if its resourceVersion is no longer that of `body`."""
        status, answer = self.send("PUT", path, body, "application/json")
        return _kept(status, answer)

    def apply(self, path: str, body: Object) -> bool:
        """Apply the fields of `body` (server-side, with force), and own them.

        False if the uid or resourceVersion of the object is no longer that of `body`.
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

        Raises ClusterError if there is no answer.
        """
        answer = self.open(method, path, body, content_type, query=query)
        try:
            return answer.status, parsed(answer.read())  # type: ignore[no-untyped-call]
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

        `seconds`: timeouts to connect, and for each part of the answer. Raises ClusterError if
        there is no answer.
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
        """Make an error that says in one line which API server could not be reached, and why."""
        host = self.api.configuration.host
        return ClusterError(f"cannot reach the API server {host}: {_why(error)}")


def context_namespace(kubeconfig: Path, context: str | None = None) -> str:
    """Return the namespace of a context, as kubectl does: `default` if it names none.

    Raises ClusterError if the kubeconfig cannot be read.
    """
    try:
        contexts, current = list_kube_config_contexts(  # type: ignore[no-untyped-call]
            str(kubeconfig)
        )
        found = [one for one in contexts if one["name"] == context] if context else [current]
        return str(found[0]["context"].get("namespace") or "default") if found else "default"
    except Exception as error:
        raise ClusterError(f"cannot connect with {kubeconfig}: {_unreadable(error)}") from error


def _unreadable(error: Exception) -> str:
    """Return why credentials cannot be read, without content that the client's text may quote.

    If a file is not a kubeconfig, the client may raise any error, with the file's content in it.
    """
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, ConfigException):
        return " ".join(str(error).split())
    return f"it is not a kubeconfig ({type(error).__name__})"


def parsed(body: bytes) -> Object:
    """Return the object in an answer, {} for anything else."""
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
    """Return whether a change was made; a change that came too late is not an error."""
    if status in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND):
        return False
    _checked(status, answer)
    return True


def _why(error: BaseException) -> str:
    """Return the cause as the operating system words it, without the text of four libraries."""
    for one in _causes(error):
        if isinstance(one, OSError) and one.strerror:
            return one.strerror
    if any(isinstance(one, (TimeoutError, NoAnswerError)) for one in _causes(error)):
        return "timed out"  # their text has an object's memory address, different each time
    reason = error.reason if isinstance(error, ApiException) else error
    return one_line(reason) or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
