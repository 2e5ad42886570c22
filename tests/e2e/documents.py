"""Documents for the tests on a cluster, and dry runs of their creation, with the warnings."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.cluster.cluster import Cluster
from tests.e2e.wire import send
from tests.waiting import until

ENABLE = "rdma.lab/enable"
Document = dict[str, Any]


class Answer(NamedTuple):
    """The API server's answer."""

    #: Why it was rejected; "" if it would have been created.
    refusal: str
    #: The messages of one policy's warnings; `detector` has the other's.
    advice: list[str]
    detector: list[str]

    @property
    def created(self) -> bool:
        """Whether the API server would have created it."""
        return not self.refusal


def ask(cluster: Cluster, document: Document) -> Answer:
    """Dry-run the creation of a document."""
    response = send(cluster, "POST", f"{_collection(document)}?dryRun=All", document)
    return Answer(
        response.refusal,
        *(_messages(response.warnings, policy) for policy in ("advice", "detector")),
    )


def _collection(document: Document) -> str:
    """Return the path to which such an object is posted."""
    version, kind = document["apiVersion"], document["kind"]
    root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
    space = document["metadata"].get("namespace")
    return f"{root}/namespaces/{space}/{kind.lower()}s" if space else f"{root}/{kind.lower()}s"


def _messages(warnings: list[str], policy: str) -> list[str]:
    name = f"rdma-webhook-{policy}"
    head = f"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': "
    return [warning.removeprefix(head) for warning in warnings if warning.startswith(head)]


def policy_messages(text: str, policy: str) -> list[str]:
    """Return a policy's messages from kubectl's output."""
    head = "Warning: "
    lines = [line.removeprefix(head) for line in text.splitlines() if line.startswith(head)]
    return _messages(lines, policy)


def pod(namespace: str, annotations: Document | None = None, **metadata: Any) -> Document:
    """Return a pod without a GPU, to create alone or to use as a template."""
    pod_metadata: Document = {"name": "probe", "namespace": namespace, **metadata}
    if annotations is not None:
        pod_metadata["annotations"] = annotations
    spec = {"containers": [{"name": "main", "image": "example.com/none"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": pod_metadata, "spec": spec}


def template(annotations: Document | None = None, labels: Document | None = None) -> Document:
    """Return a pod template that all workloads accept."""
    base = pod("unused", annotations)
    metadata = {"labels": {"app": "probe", **(labels or {})}, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {**base["spec"], "restartPolicy": "Always"}}


def once(of: Document) -> Document:
    """Return the template for pods that run to completion."""
    return {**of, "spec": {**of["spec"], "restartPolicy": "Never"}}


SELECTOR = {"selector": {"matchLabels": {"app": "probe"}}}
#: Each kind, with its apiVersion and a spec that contains a template.
WORKLOADS: dict[str, tuple[str, Callable[[Document], Document]]] = {
    "Deployment": ("apps/v1", lambda t: {**SELECTOR, "template": t}),
    "StatefulSet": ("apps/v1", lambda t: {**SELECTOR, "serviceName": "s", "template": t}),
    "DaemonSet": ("apps/v1", lambda t: {**SELECTOR, "template": t}),
    "ReplicaSet": ("apps/v1", lambda t: {**SELECTOR, "template": t}),
    "Job": ("batch/v1", lambda t: {"template": once(t)}),
    "CronJob": (
        "batch/v1",
        lambda t: {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": once(t)}}},
    ),
}


def workload(kind: str, namespace: str, of: Document, **metadata: Any) -> Document:
    """Return a workload of this kind around a template."""
    version, hold = WORKLOADS[kind]
    workload_metadata = {"name": "probe", "namespace": namespace, **metadata}
    return {"apiVersion": version, "kind": kind, "metadata": workload_metadata, "spec": hold(of)}


def namespace(name: str, value: str | None) -> Document:
    """Return a namespace with this value of the opt-in label, or without the label."""
    labels = {} if value is None else {ENABLE: value}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def make_namespaces(cluster: Cluster, *documents: Document) -> None:
    """Apply namespaces, and wait until pods can be created in them.

    A pod needs the ServiceAccount `default`, which a controller makes in each namespace. A test
    must not create it with a plain `kubectl apply`: kubectl may find none, and the controller may
    make it before kubectl does.
    """
    apply(cluster, *documents)
    wait_for_accounts(cluster, *(document["metadata"]["name"] for document in documents))


def wait_for_accounts(cluster: Cluster, *names: str) -> None:
    """Wait until namespaces have their ServiceAccount `default`."""
    until(lambda: {*names} <= _with_accounts(cluster))


def _with_accounts(cluster: Cluster) -> set[str]:
    named = ("serviceaccounts", "--all-namespaces", "--field-selector=metadata.name=default")
    accounts = json.loads(cluster.kubectl("get", *named, "--output=json"))["items"]
    return {account["metadata"]["namespace"] for account in accounts}


def apply(cluster: Cluster, *documents: Document) -> None:
    """Apply documents."""
    manifest = {"apiVersion": "v1", "kind": "List", "items": documents}
    cluster.kubectl("apply", "--filename=-", input=json.dumps(manifest))
