"""The previous version, next to this one.

There is no earlier release, so the image of the previous version is a stand-in, made from this
checkout's: tests/cluster/dockerfiles/previous has the differences.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from tests.cluster.fabrics import OBJECT
from tests.cluster.install import NAME, Webhook, site
from tests.e2e.documents import Document
from tests.e2e.installed.test_life import Replica
from webhook.config import compile as compiling
from webhook.config.load import parse_object
from webhook.model.fabric import CompiledConfiguration

#: A rollout waits, as soon as its first replica is ready.
WAITING = [
    {"op": "replace", "path": "/spec/minReadySeconds", "value": 3600},
    {"op": "add", "path": "/spec/progressDeadlineSeconds", "value": 7200},
]
#: What differs in the stand-in: the version of its decisions, and the libraries of a fabric that
#: names none.
_VERSION, _LIBRARIES = 0, ["nccl", "gloo"]


def compiled(configuration: Document) -> CompiledConfiguration:
    """Compile an object as this version does."""
    return parse_object(configuration, OBJECT).compiled


def compiled_before(configuration: Document) -> CompiledConfiguration:
    """Compile an object as the previous version does."""
    with patch.object(compiling, "VERSION", _VERSION):
        config_hash = compiled(configuration).config_hash
    explicit = copy.deepcopy(configuration)
    for fabric in explicit["spec"]["fabrics"]:
        fabric.setdefault("libraries", _LIBRARIES)
    return replace(compiled(explicit), config_hash=config_hash)


def roll(webhook: Webhook, image: str, patches: Sequence[Any] = ()) -> None:
    """Apply the manifests with another image."""
    with site(image, [*patches]) as folder:
        webhook.cluster.kubectl("apply", "-k", str(folder))


def ready_with(webhook: Webhook, image: str) -> list[str]:
    """Return the names of the replicas that have this image and are ready."""
    pods = json.loads(webhook.read(f"/api/v1/namespaces/{NAME}/pods"))["items"]
    return [pod["metadata"]["name"] for pod in pods if _serves(pod, image)]


def _serves(pod: Document, image: str) -> bool:
    conditions = pod["status"].get("conditions") or ()
    ready = ("Ready", "True") in {
        (condition["type"], condition["status"]) for condition in conditions
    }
    (container,) = pod["spec"]["containers"]
    return ready and container["image"] == image and "deletionTimestamp" not in pod["metadata"]


@dataclass(frozen=True)
class ReplicaAnswer:
    """A replica's answer: its status code, and the document."""

    code: int
    document: Document


def post(webhook: Webhook, replica: str, path: str, review: bytes) -> ReplicaAnswer:
    """Send a review to one replica."""
    with closing(Replica(webhook, replica).connect()) as connection:
        connection.request("POST", path, review, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return ReplicaAnswer(answer.status, json.loads(answer.read()))


def review_of(configuration: Document) -> bytes:
    """Write the review of a change of the object."""
    kind = {"group": "rdma.lab", "version": "v1alpha1", "kind": "FabricConfiguration"}
    request = {
        "uid": "0",
        "kind": kind,
        "operation": "UPDATE",
        "name": "default",
        "object": configuration,
    }
    version = "admission.k8s.io/v1"
    return json.dumps(
        {"apiVersion": version, "kind": "AdmissionReview", "request": request}
    ).encode()
