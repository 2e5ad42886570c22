from __future__ import annotations

from typing import Any

import pytest

from webhook.preview.workloads.hints import OptInHints, annotations_location
from webhook.preview.workloads.templates import templates_of

ENABLE = "rdma.lab/enable"
PLACE = "spec.template.metadata.annotations"


def deployment(metadata_of_deployment: dict[str, Any], template: dict[str, Any]) -> dict[str, Any]:
    """Make a Deployment with this metadata, and this metadata of its pod template."""
    spec = {"template": {"metadata": template, "spec": {"containers": []}}}
    metadata = {"name": "trainer", **metadata_of_deployment}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def hint(metadata_of_deployment: dict[str, Any], template: dict[str, Any]) -> str:
    """Return the hint for the only template."""
    value = deployment(metadata_of_deployment, template)
    (source,) = templates_of(value)
    return OptInHints(value).of(source)


def test_other_keys_need_no_hint() -> None:
    """Other annotations and labels are not mistakes."""
    for key in ("team", "rdma.lab/fabric", "rdma.lab/disable", "x.io/enable", "sidecar/enabled"):
        assert hint({"labels": {key: "true"}}, {"annotations": {key: "true"}}) == ""


def test_a_pod_that_sets_false_gets_a_hint() -> None:
    """The hint quotes the line that the user has to change."""
    assert hint({}, {"annotations": {ENABLE: "false"}}) == f'{PLACE} sets {ENABLE}: "false"'


def test_a_label_of_the_pod_is_not_an_annotation() -> None:
    """The namespace needs a label of this name, the pod an annotation."""
    assert hint({}, {"labels": {ENABLE: "true"}}) == (
        "rdma.lab/enable is in spec.template.metadata.labels, but on a pod it must be an annotation"
    )


@pytest.mark.parametrize(
    "key",
    [
        "rdma.lab/enabled", "rdma/enable", "RDMA.lab/enable", "rdma.lab/Enable", "rdma.lab.enable",
        "rdma-lab/enable", "rdma-enable", "rmda.lab/enable", "rdma.lab/enalbe", "rdma.lab/enable ",
    ],
)  # fmt: skip
def test_a_near_miss_gets_a_suggestion(key: str) -> None:
    """Kubernetes accepts any key, and the webhook is not called for this one."""
    assert hint({}, {"annotations": {key: "true"}}) == (
        f"{key!r} in {PLACE} has no effect (did you mean rdma.lab/enable?)"
    )


@pytest.mark.parametrize("field", ["annotations", "labels"])
def test_the_metadata_of_the_outer_object_reach_no_pod(field: str) -> None:
    """The most common mistake is to use the first metadata in the file."""
    assert hint({field: {ENABLE: "true"}}, {}) == (
        f"rdma.lab/enable is in metadata.{field} of Deployment trainer, where it reaches no pod; "
        f"move it to {PLACE}"
    )


def test_the_template_of_a_replica_set_is_that_of_its_deployment() -> None:
    """The Deployment overwrites its ReplicaSets, so the annotation belongs in its own template."""
    owner = {"kind": "Deployment", "name": "trainer", "controller": True}
    metadata = {"annotations": {ENABLE: "true"}, "ownerReferences": [owner]}
    value = {**deployment(metadata, {}), "kind": "ReplicaSet"}
    assert OptInHints(value).of(templates_of(value)[0]) == (
        "rdma.lab/enable is in metadata.annotations of ReplicaSet trainer, where it reaches no "
        "pod; move it to metadata.annotations in the pod template of Deployment trainer"
    )
    owner["controller"] = False
    assert OptInHints(value).of(templates_of(value)[0]).endswith(f"move it to {PLACE}")


def test_a_pod_is_annotated_itself() -> None:
    """Its controller is rarely the object with the template: a ReplicaSet, for most pods."""
    owner = {"kind": "ReplicaSet", "name": "trainer-5d", "controller": True}
    value = {"apiVersion": "v1", "kind": "Pod", "metadata": {"ownerReferences": [owner]}}
    assert annotations_location(templates_of(value)[0]) == "metadata.annotations"


def test_a_template_around_the_template_is_named_by_its_path() -> None:
    """A CronJob has a template of Jobs, which has a template of pods; the nearest one is named."""
    job = deployment({}, {})
    metadata = {"annotations": {"rdma.lab/enabled": "true"}}
    value = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "c", "annotations": {ENABLE: "true"}},
        "spec": {"jobTemplate": {"metadata": metadata, "spec": job["spec"]}},
    }
    assert OptInHints(value).of(templates_of(value)[0]) == (
        "rdma.lab/enabled is in spec.jobTemplate.metadata.annotations, where it reaches no pod; "
        "move it to spec.jobTemplate.spec.template.metadata.annotations (did you mean "
        "rdma.lab/enable?)"
    )


def test_templates_beside_the_template() -> None:
    """Those that the object surrounds, too, need the annotation as well; others have their own."""
    jobs: list[dict[str, Any]] = [
        {"template": {"spec": deployment({}, {})["spec"]}} for _ in range(2)
    ]
    value: dict[str, Any] = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "s", "annotations": {ENABLE: "true"}},
        "spec": {"replicatedJobs": jobs},
    }
    place = "spec.replicatedJobs[{}].template.spec.template.metadata.annotations"
    first, second = templates_of(value)
    assert (
        OptInHints(value)
        .of(first, [second])
        .endswith(f"reaches no pod; move it to {place.format(0)} and {place.format(1)}")
    )
    jobs[0]["template"]["metadata"] = {"annotations": {ENABLE: "true"}}
    assert OptInHints(value).of(first, [second]).endswith(f"move it to {place.format(0)}")
    assert OptInHints(value).of(first, [first]).endswith(f"move it to {place.format(0)}")


@pytest.mark.parametrize("metadata", [None, 5, [], {"annotations": 5, "labels": []}])
def test_any_shape_is_searched_without_complaint(metadata: Any) -> None:
    """A document may be any JSON."""
    value = deployment({}, metadata)
    value["metadata"] = metadata
    assert OptInHints(value).of(templates_of(value)[0]) == ""
