"""Pods as the API server returns them, and the evidence about them, for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from webhook.admission.registration import registrations_in
from webhook.decide.status import ORDER
from webhook.diagnose.why.answer import explain_pod
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.explanation import Explanation
from webhook.kube.objects import Event, KubernetesObject, NodeRecord, PodRecord
from webhook.model.finding import Finding

CREATED = "2026-11-22T10:00:00Z"
EARLIER, LATER = "2026-11-22T09:00:00Z", "2026-11-22T11:00:00Z"
Item = dict[str, Any]
#: The hash of the configuration of the admission.
CONFIG = "0123456789ab"


def status(rdma: str = "yes", because: str = "Equipped", **fields: Any) -> dict[str, str]:
    """Return the annotations of a pod that the webhook was called for."""
    content = {"rdma": rdma, "because": because, "fabric": "v100-ib", "applied": [], **fields}
    written = {key: content[key] for key in ORDER if key in content} | {"config": CONFIG}
    status = json.dumps(written, separators=(",", ":"))
    return {"rdma.lab/enable": "true", "rdma.lab/status": status}


def pod_in_cluster(
    annotations: Mapping[str, str] | None = None,
    *,
    limits: Mapping[str, str] | None = None,
    metadata: Item | None = None,
    spec: Item | None = None,
    **state: Any,
) -> Item:
    """Return a pod that runs on a node; by default, the webhook was called for it."""
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


def pod_without_call(**fields: Any) -> Item:
    """Return a pod that opts in to RDMA, and that the webhook was not called for."""
    return pod_in_cluster(ASKED, **fields)


def namespace(labels: Mapping[str, str] | None = None, written: str = EARLIER) -> Item:
    """Return the namespace of the pods, with the time at which its labels were written."""
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


CREATION = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["pods"],
}


def configuration(policy: str = "Fail", created: str = EARLIER, bundle: str = "Q0E=") -> Item:
    """Return the webhook's configuration."""
    webhook = {
        "name": "pods.rdma.lab",
        "clientConfig": {"caBundle": bundle},
        "failurePolicy": policy,
        "rules": [CREATION],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "zz-rdma-webhook", "creationTimestamp": created},
        "webhooks": [{"name": "others.example"}, webhook],
    }


def job(annotations: Mapping[str, str] | None = None, **template: Any) -> Item:
    """Return the Job that owns the pod `train-0`; the Job itself has `annotations`."""
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


REFERENCE: Item = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "name": "train",
    "controller": True,
    "uid": "j",
}
OWNED = {"ownerReferences": [REFERENCE]}


def event(
    reason: str, message: str, kind: str = "Pod", name: str = "train-0", **fields: Any
) -> Item:
    """Return a warning about an object."""
    return {
        "kind": "Event",
        "type": "Warning",
        "reason": reason,
        "message": message,
        "involvedObject": {"kind": kind, "name": name},
        "lastTimestamp": CREATED,
        **fields,
    }


def explain(
    pod: Item,
    *,
    namespace: Item | None = None,
    owners: Iterable[Item] = (),
    events: Iterable[Item] | None = None,
    webhooks: Iterable[Item] | None = None,
    nodes: Iterable[Item] | None = None,
    **evidence_fields: Any,
) -> Explanation:
    """Explain a pod from this evidence; `webhooks` are configurations."""
    evidence = PodEvidence(
        pod=PodRecord.read(pod),
        namespace=None if namespace is None else KubernetesObject.read(namespace),
        owners=tuple(map(KubernetesObject.read, owners)),
        events=None if events is None else tuple(map(Event.model_validate, events)),
        registrations=None if webhooks is None else registrations_in(webhooks),
        nodes=None if nodes is None else tuple(map(NodeRecord.model_validate, nodes)),
        **evidence_fields,
    )
    return explain_pod(evidence)


def chapter_findings(explanation: Explanation, name: str) -> list[Finding]:
    """Return the findings of a chapter."""
    chapters = [chapter for chapter in explanation.chapters if chapter.name == name]
    return list(chapters[0].findings) if chapters else []


def codes(explanation: Explanation, name: str) -> list[str]:
    """Return the codes of a chapter's findings."""
    return [finding.code for finding in chapter_findings(explanation, name)]
