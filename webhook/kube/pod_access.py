"""What is inside a pod: its log, and commands that run in its containers."""

from __future__ import annotations

from kubernetes.client import CoreV1Api
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import stream

from webhook.errors import ClusterError
from webhook.kube.api import Query, RefusedError
from webhook.kube.api_status import message_of, one_line
from webhook.kube.client import BROKEN, Client, parsed

_OK = 200
#: Seconds for a command; it reads a few files.
_COMMAND = 30


class PodAccess:
    """Reads logs and runs commands, with a client's credentials."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def log(self, path: str, query: Query, most: int) -> str:
        """Return at most `most` bytes of a log.

        Raises RefusedError if the API server rejects the request, and ClusterError if it does not
        answer.
        """
        answer = self._client.open("GET", path, query=[*query.items()], seconds=(3.0, 30.0))
        try:
            if answer.status != _OK:
                status = parsed(answer.read())  # type: ignore[no-untyped-call]
                raise RefusedError(answer.status, message_of(status))
            body: bytes = answer.response.read(most)
        except BROKEN as error:
            raise self._client.unreachable(error) from error
        finally:
            answer.response.close()
        return body.decode(errors="replace")

    def run(self, namespace: str, pod: str, container: str, command: list[str]) -> str:
        """Run a command in a container, and return what it prints; ClusterError if it cannot."""
        if self._client.impersonates:
            # The official client sends no headers of impersonation with a command.
            raise ClusterError(
                "no command is run with --as, since it would run with your own rights"
            )
        core = CoreV1Api(self._client.api)
        try:
            running = stream(
                core.connect_get_namespaced_pod_exec, pod, namespace, container=container,
                command=command, stdin=False, stdout=True, stderr=True, tty=False,
                _preload_content=False,
            )  # fmt: skip
            try:
                running.run_forever(timeout=_COMMAND)
                said: str = running.read_all()
            finally:
                # The client leaves the connection open, and its `close` too once the peer closed.
                running.sock.shutdown()
        except ApiException as error:
            raise ClusterError(one_line(error.reason)) from error
        except BROKEN as error:
            raise self._client.unreachable(error) from error
        return said
