"""A namespace that changes, and the decisions in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.cluster.install import Webhook
from tests.e2e import wire
from tests.e2e.admission.pods import Answer, create
from tests.e2e.documents import Document, apply, namespace
from tests.waiting import until

#: A LimitRange that makes the webhook keep the memory limit of the tested pod.
MAXIMUM = [{"type": "Container", "max": {"memory": "100Gi"}}]


@dataclass(frozen=True)
class ChangingNamespace:
    """A labeled namespace."""

    webhook: Webhook
    name: str

    def begin(self) -> None:
        """Make the namespace, and wait until pods can be created in it."""
        apply(self.webhook.cluster, namespace(self.name, "true"))
        metadata = {"name": "default", "namespace": self.name}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        # Kubernetes makes it, too, but takes a minute to find an API server after an outage.
        self.kubectl("apply", "--server-side", "--filename=-", input=json.dumps(account))
        self.wait_for_answers(lambda answer: bool(answer.object) and answer.memory().limit is None)

    def end(self) -> None:
        """Delete the namespace."""
        self.webhook.cluster.kubectl("delete", "namespace", self.name, "--wait=false")

    def kubectl(self, *arguments: str, **how: Any) -> str:
        """Run kubectl in the namespace."""
        return self.webhook.cluster.kubectl(f"--namespace={self.name}", *arguments, **how)

    def put(self, kind: str, **spec: Any) -> None:
        """Create an object of this kind."""
        document = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "lab"}, "spec": spec}
        send(self.webhook, "POST", f"namespaces/{self.name}/{kind.lower()}s", document)

    def remove(self, kind: str) -> None:
        """Delete the object of this kind."""
        send(self.webhook, "DELETE", f"namespaces/{self.name}/{kind.lower()}s/lab")

    def label(self, key: str, value: str | None) -> None:
        """Set a label of the namespace; None removes it."""
        labels = {"metadata": {"labels": {key: value}}}
        send(self.webhook, "PATCH", f"namespaces/{self.name}", labels)

    def ask(self) -> Answer:
        """Dry-run a trainer with a memory limit."""
        return ask(self.webhook, self.name)

    def wait_for_answers(self, condition: Callable[[Answer], bool]) -> float:
        """Wait until an answer meets the condition; return how long it took.

        Then wait until all answers do, whichever replica gives them.
        """
        took = until(lambda: condition(self.ask()), self.ask)
        until(lambda: all(condition(self.ask()) for _ in range(10)), self.ask)
        return took


def send(webhook: Webhook, method: str, path: str, document: Document | None = None) -> None:
    """Change something by a plain request: kubectl returns a while after the API server is done."""
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    wire.send(webhook.cluster, method, f"/api/v1/{path}", document, kind)


def ask(webhook: Webhook, name: str) -> Answer:
    """Dry-run a pod with a GPU and a memory limit in a namespace."""
    return create(webhook.cluster, trainer(name))


def trainer(name: str) -> Document:
    """Return a pod with a GPU and a memory limit."""
    limits = {"nvidia.com/v100": "1", "memory": "64Gi"}
    container = {"name": "trainer", "image": "example.com/none", "resources": {"limits": limits}}
    metadata = {"name": "probe", "namespace": name, "annotations": {"rdma.lab/enable": "true"}}
    spec = {"containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
