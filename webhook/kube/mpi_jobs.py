"""Create, list and delete MPIJobs (kubeflow.org/v2beta1) by their labels."""

from __future__ import annotations

from http import HTTPStatus

from webhook.kube.api import RefusedError
from webhook.kube.api_status import message_of
from webhook.kube.client import Client, Object
from webhook.model.facts import key_of

_GROUP = "/apis/kubeflow.org/v2beta1"
_NOT_INSTALLED = (
    "the cluster has no MPIJobs (kubeflow.org/v2beta1): install mpi-operator, "
    "https://github.com/kubeflow/mpi-operator"
)


class MpiJobs:
    """The MPIJobs of a namespace, or of all; raises RefusedError and ClusterError as reads do."""

    def __init__(self, client: Client, namespace: str) -> None:
        """Use a client; the namespace "" stands for all, for listing and deleting."""
        self._client = client
        self._path = (
            f"{_GROUP}/namespaces/{namespace}/mpijobs" if namespace else f"{_GROUP}/mpijobs"
        )

    def create(self, job: Object) -> None:
        """Create a job; one with its name that is there is ours: an answer may have been lost.

        Raises RefusedError if the cluster has no MPIJobs, or does not take this one.
        """
        status, answer = self._client.send("POST", self._path, job, "application/json")
        if status == HTTPStatus.NOT_FOUND and _kind_of(answer) != "namespaces":
            raise RefusedError(status, _NOT_INSTALLED)
        if status != HTTPStatus.CONFLICT:
            _check(status, answer)

    def list(self, selector: str) -> list[Object]:
        """Return the jobs with these labels; none where the cluster has no MPIJobs."""
        query = [("labelSelector", selector)]
        status, answer = self._client.send("GET", self._path, query=query)
        if status == HTTPStatus.NOT_FOUND:
            return []
        _check(status, answer)
        return list(answer.get("items") or ())

    def delete(self, job: Object) -> None:
        """Delete a job, and by that its pods; one that is gone is no error."""
        namespace, name = key_of(job)
        path = f"{_GROUP}/namespaces/{namespace}/mpijobs/{name}"
        query = [("propagationPolicy", "Background")]
        status, answer = self._client.send("DELETE", path, query=query)
        if status != HTTPStatus.NOT_FOUND:
            _check(status, answer)


def _kind_of(answer: Object) -> str:
    """Return the kind of what was not found; "" for a path that does not exist."""
    return str((answer.get("details") or {}).get("kind") or "")


def _check(status: int, answer: Object) -> None:
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        raise RefusedError(status, message_of(answer))
