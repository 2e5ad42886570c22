"""The pod that results if one configuration alone decides both calls for it."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import Any

from tests.api_server import patched
from tests.cluster.cluster import Cluster
from tests.e2e.admission.neighbor import Habit
from tests.e2e.documents import Document
from tests.e2e.wire import send
from tests.integration.serving import review
from tests.server_state import configured
from webhook.decide import decide
from webhook.kube.watched_resources import KINDS
from webhook.model.fabric import CompiledConfiguration
from webhook.model.facts import Facts
from webhook.serve.http.mutate import Mutate
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics

#: The fields that the API server writes into each pod.
_ITS_OWN = ("name", "namespace", "uid", "creationTimestamp", "managedFields")


class Expectation:
    """Decides with the code of this checkout; defaulting is the API server's, by dry runs.

    The dry runs are in a namespace that did not opt in, so that no webhook is called.
    """

    def __init__(self, cluster: Cluster, space: str, plain: str, habit: Habit) -> None:
        self._cluster = cluster
        self._space, self._plain = space, plain
        self._habit = habit
        objects = [*_objects(cluster, [kind.resource for kind in KINDS])]
        nodes = [*_objects(cluster, ["nodes"])]
        self._facts = [Facts.from_objects(objects), Facts.from_objects([*objects, *nodes])]

    def pods(
        self,
        pod: Document,
        configuration: CompiledConfiguration,
        then: CompiledConfiguration | None = None,
    ) -> list[Document]:
        """Return the pod after our call, the other webhook's, and our second one.

        `then`: the fabrics of the replica that answers the second call, if it does not know the
        first replica's.

        There are two pods: a replica knows which fabric a node belongs to a moment after it uses
        other fabrics, and the status shows its knowledge.
        """
        return [
            self._pod(pod, (configuration, then or configuration), facts) for facts in self._facts
        ]

    def _pod(
        self,
        created: Document,
        pair: tuple[CompiledConfiguration, CompiledConfiguration],
        facts: Facts,
    ) -> Document:
        first, second = (_replica(configuration, facts) for configuration in pair)
        pod = self._called(first, self._defaulted(created))
        pod = self._defaulted(patched(pod, self._habit(pod)))
        return self._called(second, pod)

    def _called(self, ours: Mutate, pod: Document) -> Document:
        pod = {**pod, "metadata": {**pod["metadata"], "namespace": self._space}}
        response = json.loads(ours.answer(review(pod, namespace=self._space)).body)["response"]
        assert response["allowed"], response
        operations = json.loads(b64decode(response["patch"])) if "patch" in response else []
        return self._defaulted(patched(pod, operations))

    def _defaulted(self, pod: Document) -> Document:
        metadata = {**pod["metadata"], "namespace": self._plain}
        path = f"/api/v1/namespaces/{self._plain}/pods?dryRun=All"
        response = send(self._cluster, "POST", path, {**pod, "metadata": metadata})
        assert response.code == 201, response.object
        return without_server_fields(response.object)


def _replica(configuration: CompiledConfiguration, facts: Facts) -> Mutate:
    return Mutate(configured(configuration, facts), Metrics(), Log("error"), decide)


def _objects(cluster: Cluster, resources: Iterable[str]) -> Iterator[Document]:
    """Read all objects of these kinds."""
    for resource in resources:
        listed = json.loads(cluster.kubectl("get", resource, "--all-namespaces", "-o=json"))
        yield from listed["items"]


def without_server_fields(pod: Document) -> Document:
    """Return a pod without the fields that the API server writes."""
    metadata = {key: value for key, value in pod["metadata"].items() if key not in _ITS_OWN}
    return {**pod, "metadata": metadata}


def leaves(node: Any, path: str = "") -> dict[str, Any]:
    """Return each value that contains no other value, by its path."""
    if isinstance(node, dict) and node:
        parts = ((f"{path}.{key}", value) for key, value in node.items())
    elif isinstance(node, list) and node:
        parts = ((f"{path}[{number}]", value) for number, value in enumerate(node))
    else:
        return {path: node}
    return {key: value for part in parts for key, value in leaves(part[1], part[0]).items()}
