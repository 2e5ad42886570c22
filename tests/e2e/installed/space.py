"""A labeled namespace, and the pods that tests create in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.install import TOLERATION
from tests.e2e.documents import ENABLE, Document
from tests.waiting import PATIENCE, until


@dataclass(frozen=True)
class Space:
    """A namespace, and the image of its pods."""

    cluster: Cluster
    name: str
    image: str

    def kubectl(self, *arguments: str, **how: Any) -> str:
        """Run kubectl in the namespace."""
        return self.cluster.kubectl(f"--namespace={self.name}", *arguments, **how)

    def pod(
        self, name: str, gpu: str = "", annotations: Document | None = None, **spec: Any
    ) -> Document:
        """Return a pod that sleeps, for the real node or a fake one; by default it has opted in."""
        limits = {gpu: "1", "memory": "64Mi"} if gpu else {}
        main = {"name": "main", "image": self.image, "imagePullPolicy": "Never"}
        container = {**main, "resources": {"limits": limits}, **spec.pop("container", {})}
        written = {ENABLE: "true"} if annotations is None else annotations
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": self.name, "annotations": written},
            "spec": {"containers": [container], "tolerations": [TOLERATION], **spec},
        }

    def create(self, *documents: Document, check: bool = True) -> str:
        """Create objects, and return kubectl's output; without `check`, errors as well."""
        manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
        return self.kubectl("create", "--filename=-", input=manifest, check=check)

    def proposed(self, document: Document) -> Document:
        """Return the object as the API server would store it."""
        create = ("create", "--dry-run=server", "--output=json", "--filename=-")
        stored: Document = json.loads(self.kubectl(*create, input=json.dumps(document)))
        return stored

    def get(self, pod: str) -> Document:
        """Return a pod."""
        document: Document = json.loads(self.kubectl("get", "pod", pod, "--output=json"))
        return document

    def wait_until_started(self, pod: str) -> Document:
        """Wait until a pod runs; if it does not, fail with the events."""
        self.cluster.skip_if_existing("an image for workloads on its nodes")
        try:
            wait = ("wait", "--for=condition=Ready", f"--timeout={PATIENCE:g}s")
            self.kubectl(*wait, f"pod/{pod}")
        except Exception as error:
            raise AssertionError(self.kubectl("get", "events", "--output=wide")) from error
        return self.get(pod)

    def inside(self, pod: str, *command: str) -> str:
        """Run a command in a pod, and return its output."""
        return self.kubectl("exec", pod, "--container=main", "--", *command)

    def delete(self, *pods: str) -> None:
        """Delete pods at once."""
        self.kubectl("delete", "pod", *pods, "--now", "--wait=false", "--ignore-not-found")

    def event(self, about: str, reason: str) -> str:
        """Wait for an event about an object, and return its message."""
        messages: list[str] = []

        def is_reported() -> bool:
            of = f"--field-selector=involvedObject.name={about},reason={reason}"
            events = json.loads(self.kubectl("get", "events", of, "--output=json"))["items"]
            messages[:] = [event["message"] for event in events]
            return bool(messages)

        until(is_reported)
        return messages[0]
