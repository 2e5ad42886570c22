"""Create, list and delete pods by their labels, and read their logs."""

from __future__ import annotations

from http import HTTPStatus

from webhook.kube.api import RefusedError
from webhook.kube.api_status import message_of
from webhook.kube.client import Client, Object
from webhook.kube.pod_access import PodAccess
from webhook.model.facts import key_of

#: Bytes of a log that are read.
_LARGEST_LOG = 8 << 20
_PAGE = "500"


class LabelledPods:
    """The pods of a namespace, or of all; raises RefusedError and ClusterError as reads do."""

    def __init__(self, client: Client, namespace: str) -> None:
        """Use a client; the namespace "" stands for all, for listing and deleting."""
        self._client = client
        self._access = PodAccess(client)
        self._path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"

    def create(self, pod: Object) -> Object:
        """Create a pod, and return it as the API server stored it.

        One with its name that is there already is returned: an answer may have been lost.
        """
        status, answer = self._client.send("POST", self._path, pod, "application/json")
        if status == HTTPStatus.CONFLICT and answer.get("reason") == "AlreadyExists":
            name = key_of(pod)[1]
            return self._checked(*self._client.send("GET", f"{self._path}/{name}"))
        return self._checked(status, answer)

    def list(self, selector: str) -> list[Object]:
        """Return the pods with these labels."""
        found: list[Object] = []
        query = [("labelSelector", selector), ("limit", _PAGE)]
        while True:
            page = self._checked(*self._client.send("GET", self._path, query=query))
            found += page.get("items") or ()
            after = (page.get("metadata") or {}).get("continue")
            if not after:
                return found
            query = [*query[:2], ("continue", str(after))]

    def delete(self, pod: Object) -> None:
        """Delete a pod; one that is gone is no error."""
        namespace, name = key_of(pod)
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        status, answer = self._client.send("DELETE", path)
        if status != HTTPStatus.NOT_FOUND:
            self._checked(status, answer)

    def log(self, name: str, container: str) -> str:
        """Return the log of a container, or its first part if it is very long."""
        query = {"container": container, "limitBytes": str(_LARGEST_LOG)}
        return self._access.log(f"{self._path}/{name}/log", query, _LARGEST_LOG)

    @staticmethod
    def _checked(status: int, answer: Object) -> Object:
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise RefusedError(status, message_of(answer))
        return answer
