"""A namespace that changes, and what is decided in it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.cluster.install import Webhook
from tests.e2e import wire
from tests.e2e.admission.pods import Answer, create
from tests.e2e.asking import Document, apply, namespace

#: Seconds after which a change counts as not seen; how long it took is a figure of each test.
NEVER = 60.0
#: Limits of a LimitRange that keeps the memory limit of the pod that is asked about.
MAXIMUM = [{"type": "Container", "max": {"memory": "100Gi"}}]


@dataclass(frozen=True)
class Lab:
    """A labelled namespace."""

    webhook: Webhook
    name: str

    def begin(self) -> None:
        """Make it, and wait until pods can be created in it."""
        apply(self.webhook.cluster, namespace(self.name, "true"))
        metadata = {"name": "default", "namespace": self.name}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        # Kubernetes makes it too, but takes a minute to find an API server that was gone.
        self.kubectl("apply", "--server-side", "--filename=-", input=json.dumps(account))
        self.decided(lambda answer: bool(answer.object) and answer.memory()[1] is None)

    def end(self) -> None:
        """Take it away."""
        self.webhook.cluster.kubectl("delete", "namespace", self.name, "--wait=false")

    def kubectl(self, *arguments: str, **how: Any) -> str:
        """Run kubectl in it."""
        return self.webhook.cluster.kubectl(f"--namespace={self.name}", *arguments, **how)

    def put(self, kind: str, **spec: Any) -> None:
        """Create an object of this kind."""
        made = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "lab"}, "spec": spec}
        send(self.webhook, "POST", f"namespaces/{self.name}/{kind.lower()}s", made)

    def remove(self, kind: str) -> None:
        """Delete it."""
        send(self.webhook, "DELETE", f"namespaces/{self.name}/{kind.lower()}s/lab")

    def label(self, key: str, value: str | None) -> None:
        """Put a label on the namespace, or take it off."""
        labels = {"metadata": {"labels": {key: value}}}
        send(self.webhook, "PATCH", f"namespaces/{self.name}", labels)

    def ask(self) -> Answer:
        """Ask what would become of a trainer with a memory limit."""
        return ask(self.webhook, self.name)

    def decided(self, condition: Callable[[Answer], bool]) -> float:
        """Wait until answers are as they should be; return how long it took.

        And until all are, whichever replica gives them.
        """
        began = time.monotonic()
        while not condition(self.ask()):
            assert time.monotonic() - began < NEVER, self.ask()
        took = time.monotonic() - began
        while not all(condition(self.ask()) for _ in range(10)):
            assert time.monotonic() - began < NEVER, self.ask()
        return took


def send(webhook: Webhook, method: str, path: str, document: Document | None = None) -> None:
    """Change something at once: kubectl ends a while after the API server has it."""
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    wire.send(webhook.cluster, method, f"/api/v1/{path}", document, kind)


def ask(webhook: Webhook, name: str) -> Answer:
    """Ask what would become of a pod with a GPU and a memory limit in a namespace."""
    return create(webhook.cluster, trainer(name))


def trainer(name: str) -> Document:
    """Return that pod."""
    limits = {"nvidia.com/v100": "1", "memory": "64Gi"}
    container = {"name": "trainer", "image": "example.com/none", "resources": {"limits": limits}}
    metadata = {"name": "probe", "namespace": name, "annotations": {"rdma.lab/enable": "true"}}
    spec = {"containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
