"""Ten thousand Nodes and as many Namespaces, created through an API server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection
from itertools import islice
from urllib.parse import urlsplit

from tests.benchmarks.cluster.modes import Document
from tests.benchmarks.facts import labeled_namespace, namespace_name
from tests.benchmarks.node_list import large_node
from tests.cluster.cluster import Cluster

#: Requests at once.
AT_ONCE = 8
_HTTP_CREATED = 201


def node_name(number: int) -> str:
    """Name a node that no kubelet runs."""
    return f"gpu-{number}"


def nodes(count: int) -> Iterator[tuple[str, Document]]:
    """Yield Nodes with their path."""
    for number in range(count):
        document = large_node(node_name(number))
        yield "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", **_sent(document)}


def namespaces(count: int) -> Iterator[tuple[str, Document]]:
    """Yield Namespaces with their path."""
    for number in range(count):
        document = labeled_namespace(namespace_name(number))
        yield "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", **_sent(document)}


def _sent(document: Document) -> Document:
    """Return an object without the fields that an API server writes."""
    server_fields = ("uid", "resourceVersion", "managedFields")
    metadata = {
        key: value for key, value in document["metadata"].items() if key not in server_fields
    }
    return {**document, "metadata": metadata}


def create(cluster: Cluster, objects: Iterable[tuple[str, Document]]) -> float:
    """Create objects, `AT_ONCE` at a time, and return the seconds that it took."""
    waiting = iter(objects)
    began = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while chunk := [*islice(waiting, AT_ONCE * 50)]:
            parts = [chunk[first::AT_ONCE] for first in range(AT_ONCE)]
            for _ in pool.map(lambda part: _create(cluster, part), parts):
                pass
    return time.monotonic() - began


def _create(cluster: Cluster, objects: Iterable[tuple[str, Document]]) -> None:
    """Create objects one after another, on one connection."""
    access = cluster.access
    address = urlsplit(access.url)
    connection = HTTPSConnection(
        str(address.hostname), address.port, context=access.administrator, timeout=60
    )
    headers = {"Content-Type": "application/json", **access.headers}
    for path, document in objects:
        connection.request("POST", path, json.dumps(document), headers)
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == _HTTP_CREATED, body
    connection.close()
