from __future__ import annotations

from typing import Any

import pytest

from tests.case_names import case_name
from webhook.model.pod import OwnerReference, owners_of


def reference(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    """Make a reference to a controller."""
    version = {"ReplicaSet": "apps/v1", "Job": "batch/v1"}.get(kind, "lab/v1")
    given = {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}"}
    return {**given, "controller": True, **fields}


def owned(*references: Any, **labels: str) -> dict[str, Any]:
    """Make a pod with these owners."""
    return {"metadata": {"ownerReferences": list(references), "labels": labels}}


JOB = OwnerReference("batch/v1", "Job", "train", "uid-train")


def test_the_controller_is_an_owner() -> None:
    """A pod may have other owners, which do not control it."""
    other = reference("Thing", "other", controller=False)
    assert owners_of(owned(other, reference("Job", "train"))) == (JOB,)
    assert owners_of(owned(other)) == ()


def test_a_deployment_is_known_by_its_replica_set() -> None:
    """The ReplicaSet's name ends in the hash that its pods have as a label."""
    pod = owned(reference("ReplicaSet", "serve-5d8f"), **{"pod-template-hash": "5d8f"})
    above = OwnerReference("apps/v1", "Deployment", "serve")
    assert owners_of(pod) == (
        OwnerReference("apps/v1", "ReplicaSet", "serve-5d8f", "uid-serve-5d8f"),
        above,
    )


def test_a_replica_set_of_its_own_has_no_deployment() -> None:
    """Its name does not end in the hash, or the pod has no hash."""
    for labels in ({"pod-template-hash": "77"}, {}):
        pod = owned(reference("ReplicaSet", "serve-5d8f"), **labels)
        assert [owner.kind for owner in owners_of(pod)] == ["ReplicaSet"]


def test_a_job_set_is_named_by_its_pods() -> None:
    """Its Jobs are the pods' controllers; the label on another kind of pod has no meaning."""
    label = {"jobset.sigs.k8s.io/jobset-name": "all"}
    above = OwnerReference("jobset.x-k8s.io/v1alpha2", "JobSet", "all")
    assert owners_of(owned(reference("Job", "train"), **label)) == (JOB, above)
    assert len(owners_of(owned(reference("Thing", "train"), **label))) == 1


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"metadata": None},
        {"metadata": {"ownerReferences": None}},
        {"metadata": {"ownerReferences": "Job"}},
        owned(None, 7, "Job"),
        owned({"controller": True}),
        owned(reference("Job", "train", uid=7)),
        owned(reference("Job", "train", controller="true")),
    ],
    ids=case_name,
)
def test_malformed_references_are_none(manifest: dict[str, Any]) -> None:
    """The API server rejects such references, and no Event is made."""
    assert owners_of(manifest) == ()


def test_malformed_labels_say_nothing() -> None:
    """Only the controller is known then."""
    pod = owned(reference("ReplicaSet", "serve-5d8f"))
    pod["metadata"]["labels"] = {"pod-template-hash": 7, "jobset.sigs.k8s.io/jobset-name": 7}
    assert len(owners_of(pod)) == 1
    pod["metadata"]["ownerReferences"] = [reference("Job", "train")]
    assert len(owners_of(pod)) == 1
