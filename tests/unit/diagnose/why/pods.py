"""Pods as the API server returns them, and what else is known about them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from webhook.diagnose.why.answer import explain_pod
from webhook.diagnose.why.evidence import PodEvidence, registrations
from webhook.diagnose.why.explanation import Explanation, Sentence
from webhook.kube.objects import Event, KubernetesObject, Node, Pod

CREATED = "2026-11-22T10:00:00Z"
EARLIER, LATER = "2026-11-22T09:00:00Z", "2026-11-22T11:00:00Z"
Item = dict[str, Any]


def status(rdma: str = "yes", because: str = "Equipped", **more: Any) -> dict[str, str]:
    """Write the annotations of a pod that the webhook saw."""
    said = {"rdma": rdma, "because": because, "fabric": "v100-ib", "applied": [], **more}
    return {"rdma.lab/enable": "true", "rdma.lab/status": json.dumps(said)}


def live(
    annotations: Mapping[str, str] | None = None,
    *,
    limits: Mapping[str, str] | None = None,
    metadata: Item | None = None,
    spec: Item | None = None,
    **state: Any,
) -> Item:
    """Make a pod that runs on a node; by default, the webhook has seen it."""
    resources = {"limits": dict(limits), "requests": dict(limits)} if limits else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train-0",
            "namespace": "lab",
            "uid": "u",
            "creationTimestamp": CREATED,
            "annotations": status() if annotations is None else dict(annotations),
            **(metadata or {}),
        },
        "spec": {
            "nodeName": "node-1",
            "containers": [{"name": "main", "image": "lab/train", "resources": resources}],
            **(spec or {}),
        },
        "status": {"phase": "Running", **state},
    }


ASKED = {"rdma.lab/enable": "true"}


def unseen(**more: Any) -> Item:
    """Make a pod that asks for RDMA, and that the webhook has not seen."""
    return live(ASKED, **more)


def namespace(labels: Mapping[str, str] | None = None, written: str = EARLIER) -> Item:
    """Make the pods' namespace; its labels were written at a time."""
    fields: Item = {"f:metadata": {"f:labels": {"f:rdma.lab/enable": {}}}}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "lab",
            "labels": {"rdma.lab/enable": "true"} if labels is None else dict(labels),
            "managedFields": [{"manager": "kubectl-label", "time": written, "fieldsV1": fields}],
        },
    }


def configuration(policy: str = "Fail", created: str = EARLIER, bundle: str = "Q0E=") -> Item:
    """Make the webhook's configuration."""
    webhook = {
        "name": "pods.rdma.lab",
        "clientConfig": {"caBundle": bundle},
        "failurePolicy": policy,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "zz-rdma-webhook", "creationTimestamp": created},
        "webhooks": [{"name": "others.example"}, webhook],
    }


def job(annotations: Mapping[str, str] | None = None, **template: Any) -> Item:
    """Make a Job whose controller made the pod `train-0`; `annotations` are those of the Job."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "lab", "annotations": dict(annotations or {})},
        "spec": {
            "template": {
                "metadata": {"annotations": template.pop("asked", {})},
                "spec": {"containers": [{"name": "main", "image": "lab/train", **template}]},
            }
        },
    }


OWNED = {
    "ownerReferences": [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True, "uid": "j"}
    ]
}


def event(reason: str, message: str, kind: str = "Pod", name: str = "train-0", **more: Any) -> Item:
    """Make a warning about an object."""
    return {
        "kind": "Event",
        "type": "Warning",
        "reason": reason,
        "message": message,
        "involvedObject": {"kind": kind, "name": name},
        "lastTimestamp": CREATED,
        **more,
    }


def explain(
    pod: Item,
    *,
    namespace: Item | None = None,
    owners: Iterable[Item] = (),
    events: Iterable[Item] | None = None,
    webhooks: Iterable[Item] | None = None,
    nodes: Iterable[Item] | None = None,
    **known: Any,
) -> Explanation:
    """Explain a pod of which this is known; `webhooks` are configurations."""
    evidence = PodEvidence(
        pod=Pod.read(pod),
        namespace=None if namespace is None else KubernetesObject.read(namespace),
        owners=tuple(map(KubernetesObject.read, owners)),
        events=None if events is None else tuple(map(Event.model_validate, events)),
        webhooks=None if webhooks is None else registrations(webhooks),
        nodes=None if nodes is None else tuple(map(Node.model_validate, nodes)),
        **known,
    )
    return explain_pod(evidence)


def told(explanation: Explanation, chapter: str) -> list[Sentence]:
    """Return the sentences of a chapter."""
    found = [one for one in explanation.chapters if one.name == chapter]
    return list(found[0].sentences) if found else []


def codes(explanation: Explanation, chapter: str) -> list[str]:
    """Return the codes of a chapter's sentences."""
    return [sentence.code for sentence in told(explanation, chapter)]
