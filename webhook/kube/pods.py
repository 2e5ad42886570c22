"""Pods and MPIJobs by their labels, pods' logs, and commands in pods."""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Protocol

from kubernetes.client.exceptions import ApiException
from kubernetes.stream.ws_client import WSClient, websocket_call
from websocket import ABNF, WebSocketException, WebSocketTimeoutException

from webhook.errors import ClusterError
from webhook.kube.api import Query, StatusError, message_of, single_line
from webhook.kube.client import BROKEN, Client, Object, parsed
from webhook.model.facts import key_of

# Pods by their labels, and their logs.

#: The maximum number of bytes to read of a log.
_MAX_LOG_BYTES = 8 << 20
_PAGE = "500"


class LabeledPods:
    """The pods of one or all namespaces; raises StatusError and ClusterError as reads do."""

    def __init__(self, client: Client, namespace: str) -> None:
        """Use a client; the namespace "" means all, for listing and deleting."""
        self._client = client
        self._access = PodAccess(client)
        self._path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"

    def create(self, pod: Object) -> Object:
        """Create a pod, and return it as stored by the API server.

        Return an existing pod of the same name: an earlier answer may have been lost.
        """
        status, answer = self._client.send("POST", self._path, pod, "application/json")
        if status == HTTPStatus.CONFLICT and answer.get("reason") == "AlreadyExists":
            name = key_of(pod)[1]
            return self._checked(*self._client.send("GET", f"{self._path}/{name}"))
        return self._checked(status, answer)

    def list(self, selector: str) -> list[Object]:
        """Return the pods with these labels."""
        pods: list[Object] = []
        query = [("labelSelector", selector), ("limit", _PAGE)]
        while True:
            page = self._checked(*self._client.send("GET", self._path, query=query))
            pods += page.get("items") or ()
            after = (page.get("metadata") or {}).get("continue")
            if not after:
                return pods
            query = [*query[:2], ("continue", str(after))]

    def delete(self, pod: Object) -> None:
        """Delete a pod; a missing one is not an error."""
        namespace, name = key_of(pod)
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        status, answer = self._client.send("DELETE", path)
        if status != HTTPStatus.NOT_FOUND:
            self._checked(status, answer)

    def log(self, name: str, container: str) -> str:
        """Return the log of a container, or the first part of a very long one."""
        query = {"container": container, "limitBytes": str(_MAX_LOG_BYTES)}
        return self._access.log(f"{self._path}/{name}/log", query, _MAX_LOG_BYTES)

    @staticmethod
    def _checked(status: int, answer: Object) -> Object:
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise StatusError(status, message_of(answer))
        return answer


# Create, list and delete MPIJobs (kubeflow.org/v2beta1) by their labels.

_GROUP = "/apis/kubeflow.org/v2beta1"
_NOT_INSTALLED = (
    "the cluster has no MPIJobs (kubeflow.org/v2beta1); install mpi-operator, "
    "https://github.com/kubeflow/mpi-operator"
)


class MpiJobs:
    """The MPIJobs of one or all namespaces; raises StatusError and ClusterError as reads do."""

    def __init__(self, client: Client, namespace: str) -> None:
        """Use a client; the namespace "" means all, for listing and deleting."""
        self._client = client
        self._path = (
            f"{_GROUP}/namespaces/{namespace}/mpijobs" if namespace else f"{_GROUP}/mpijobs"
        )

    def create(self, job: Object) -> None:
        """Create a job.

        If an object with its name exists, it is ours, and an earlier answer was lost.
        Raises StatusError if the cluster has no MPIJobs, or rejects this one.
        """
        status, answer = self._client.send("POST", self._path, job, "application/json")
        if status == HTTPStatus.NOT_FOUND and _kind_of(answer) != "namespaces":
            raise StatusError(status, _NOT_INSTALLED)
        if status != HTTPStatus.CONFLICT:
            _check(status, answer)

    def list(self, selector: str) -> list[Object]:
        """Return the jobs with these labels; [] if the cluster has no MPIJobs."""
        query = [("labelSelector", selector)]
        status, answer = self._client.send("GET", self._path, query=query)
        if status == HTTPStatus.NOT_FOUND:
            return []
        _check(status, answer)
        return list(answer.get("items") or ())

    def delete(self, job: Object) -> None:
        """Delete a job and its pods; a missing job is not an error."""
        namespace, name = key_of(job)
        path = f"{_GROUP}/namespaces/{namespace}/mpijobs/{name}"
        query = [("propagationPolicy", "Background")]
        status, answer = self._client.send("DELETE", path, query=query)
        if status != HTTPStatus.NOT_FOUND:
            _check(status, answer)


def _kind_of(answer: Object) -> str:
    """Return the kind of a missing object; "" for a path that does not exist."""
    return str((answer.get("details") or {}).get("kind") or "")


def _check(status: int, answer: Object) -> None:
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        raise StatusError(status, message_of(answer))


# The logs of containers, and commands in them.

_OK = 200
#: Seconds for a command, which reads a few files, and bytes of its output.
_COMMAND, _MAX_OUTPUT = 30.0, 1 << 20
#: The channels of standard output and standard error. Source: Kubernetes, the subprotocol
#: v4.channel.k8s.io (apimachinery, pkg/util/remotecommand/constants.go).
_OUTPUT = (b"\1", b"\2")


class PodAccess:
    """Reads logs and runs commands, with a client's credentials."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def log(self, path: str, query: Query, limit: int) -> str:
        """Return at most `limit` bytes of a log.

        Raises StatusError if the API server rejects the request, and ClusterError if it does not
        answer.
        """
        answer = self._client.open("GET", path, query=[*query.items()], seconds=(3.0, 30.0))
        try:
            if answer.status != _OK:
                status = parsed(answer.read())  # type: ignore[no-untyped-call]
                raise StatusError(answer.status, message_of(status))
            body: bytes = answer.response.read(limit)
        except BROKEN as error:
            raise self._client.unreachable(error) from error
        finally:
            answer.response.close()
        return body.decode(errors="replace")

    def run(self, namespace: str, pod: str, container: str, command: list[str]) -> str:
        """Run a command in a container and return its output; raise ClusterError if that fails."""
        if self._client.impersonates:
            # The official client sends no headers of impersonation with a command.
            raise ClusterError(
                "commands in pods are not supported with --as, since they would run with your own "
                "rights"
            )
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/exec"
        query = [("container", container), ("stdout", "true"), ("stderr", "true")]
        query += [("command", word) for word in command]
        try:
            process = self._connected(path, query)
            try:
                return output_of(process.sock)
            finally:
                # The client leaves the connection open, and its `close` too once the peer closed.
                process.sock.shutdown()
        except ApiException as error:
            raise ClusterError(single_line(error.reason)) from error
        except (*BROKEN, WebSocketException) as error:
            raise self._client.unreachable(error) from error

    def _connected(self, path: str, query: list[tuple[str, str]]) -> WSClient:
        """Return a WebSocket; raise ApiException if the API server does not open it.

        The official `CoreV1Api` needs 270 modules for the same; the image has none of them.
        """
        api = self._client.api
        method, url, headers, *_ = api.param_serialize(
            "GET", path, query_params=query, header_params={"Accept": "*/*"},
            auth_settings=["BearerToken"],
        )  # fmt: skip
        process: WSClient = websocket_call(  # type: ignore[no-untyped-call]
            api.configuration, method, url, headers=headers, _preload_content=False
        )
        return process


class Frame(Protocol):
    """A frame of a connection; see `websocket.ABNF`."""

    data: bytes


class Connection(Protocol):
    """The connection to a command; see `websocket.WebSocket`."""

    def settimeout(self, timeout: float) -> None:
        """Set the seconds to wait for a frame."""

    def recv_data_frame(self, control_frame: bool = False) -> tuple[int, Frame]:
        """Return the next frame and its kind; raise WebSocketException without one."""


def output_of(connection: Connection, clock: Callable[[], float] = time.monotonic) -> str:
    """Return what a command prints until it ends, with a limit on its time and its output.

    A container may print without an end. The official client's `run_forever` looks at the time only
    when there is nothing to read, and keeps all of it. Raises WebSocketException if the connection
    breaks.
    """
    until, parts, free = clock() + _COMMAND, list[bytes](), _MAX_OUTPUT
    while free > 0 and (seconds := until - clock()) > 0:
        connection.settimeout(seconds)
        try:
            kind, frame = connection.recv_data_frame(True)
        except WebSocketTimeoutException:
            break
        if kind == ABNF.OPCODE_CLOSE:
            break
        if frame.data[:1] in _OUTPUT:
            parts.append(frame.data[1 : free + 1])
            free -= len(parts[-1])
    return b"".join(parts).decode(errors="replace")
