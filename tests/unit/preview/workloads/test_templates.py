"""Pod templates are recognized by their shape."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.model.pod import dotted
from webhook.preview.workloads.templates import not_kubernetes_reason, templates_of
from webhook.text.yaml.documents import read_documents


def pod(name: str = "trainer") -> dict[str, Any]:
    """Make the part that every pod template has."""
    return {"spec": {"containers": [{"name": name, "image": "x"}]}}


def workload(kind: str, name: str, spec: dict[str, Any], **metadata: str) -> dict[str, Any]:
    """Make an object of a kind that holds pods."""
    metadata = {"name": name, **metadata}
    return {"apiVersion": "x.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def listed(value: Any) -> list[tuple[str, str, str, str | None]]:
    """List the templates by path, with kind, name and namespace of their objects."""
    return [(dotted(t.path), t.kind, t.name, t.namespace) for t in templates_of(value)]


def test_a_bare_pod_is_the_document_itself() -> None:
    """Its path is empty, and the pod is the same object as the document."""
    value = workload("Pod", "p", pod()["spec"], namespace="lab")
    assert listed(value) == [("", "Pod", "p", "lab")]
    assert templates_of(value)[0].pod is value


def test_templates_of_kinds_that_nobody_listed() -> None:
    """They may be at any depth; the order is that of the document, each with its owner."""
    value = workload(
        "Fleet", "f", {"roles": [{"template": pod()}, {"template": pod()}], "last": {"t": pod()}}
    )
    assert listed(value) == [
        ("spec.roles[0].template", "Fleet", "f", None),
        ("spec.roles[1].template", "Fleet", "f", None),
        ("spec.last.t", "Fleet", "f", None),
    ]


def test_the_nearest_object_is_named_with_the_namespace_of_its_wrapper() -> None:
    """A Job in a wrapper is named as a Job; items of a List have their own names."""
    job = workload("Job", "j", {"template": pod()})
    wrapper = workload("AppWrapper", "w", {"components": [{"template": job}]}, namespace="lab")
    value = {"apiVersion": "v1", "kind": "List", "items": [{"kind": "Service"}, wrapper, job]}
    assert listed(value) == [
        ("items[1].spec.components[0].template.spec.template", "Job", "j", "lab"),
        ("items[2].spec.template", "Job", "j", None),
    ]


def test_a_generated_name_will_do() -> None:
    """Jobs often have only a generated name."""
    value = workload("Job", "", {"template": pod()}, generateName="train-")
    assert listed(value) == [("spec.template", "Job", "train-", None)]


def test_a_template_with_the_kind_pod_belongs_to_its_workload() -> None:
    """Some kinds require apiVersion and kind of the pod in the template."""
    inner = {"apiVersion": "v1", "kind": "Pod", **pod()}
    assert listed(workload("ElasticJob", "e", {"template": inner})) == [
        ("spec.template", "ElasticJob", "e", None)
    ]


@pytest.mark.parametrize("spec", [{"containers": {"name": "main"}}, {"nodeName": "x"}, None, 5])
def test_a_pod_without_a_list_of_containers_is_a_pod(spec: Any) -> None:
    """A dash may be missing: the decision reports that, while skipping the pod would hide it."""
    value = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    assert listed(value) == [("", "Pod", "p", None)]
    assert listed({"apiVersion": "v1", "kind": "List", "items": [value]})[0][0] == "items[0]"


def test_a_template_without_a_list_of_containers_is_a_template() -> None:
    """The key `template` makes it one; elsewhere such a mapping may be anything."""
    spec = {"containers": {"name": "main"}}
    assert listed(workload("Job", "j", {"template": {"spec": spec}}))[0][0] == "spec.template"
    assert listed(workload("Job", "j", {"other": {"spec": spec}})) == []


def test_no_template_is_inside_a_pod() -> None:
    """A pod inside another pod's spec is data of that pod."""
    outer = pod()
    outer["spec"]["x"] = {"template": pod()}
    assert listed({"template": outer}) == [("template", "", "", None)]


def test_only_the_new_object_of_a_review_is_searched() -> None:
    """The decision is about the new object; the namespace is the request's."""
    value = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "namespace": "lab",
            "object": workload("Pod", "", pod()["spec"], generateName="p-"),
            "oldObject": workload("Pod", "p", pod()["spec"]),
        },
    }
    assert listed(value) == [("request.object", "Pod", "p-", "lab")]


def test_metadata_and_status_hold_no_pods() -> None:
    """The fields that an API server adds to an object are not searched."""
    value = workload("Job", "j", {}) | {"status": {"t": pod()}}
    value["metadata"]["managedFields"] = [pod()]
    assert listed(value) == []


@pytest.mark.parametrize("kind", ["MiniCluster", "ServingRuntime"])
def test_containers_right_under_another_kind_are_no_template(kind: str) -> None:
    """The metadata next to them is not the pods' metadata."""
    value = workload(kind, "m", {"containers": [{"image": "a"}, {"image": "b", "command": "x"}]})
    assert listed(value) == []


@pytest.mark.parametrize("key", ["template", "worker", "podSpec"])
def test_a_pod_spec_without_metadata(key: str) -> None:
    """It needs named containers, but no images, under a key that operators use for one."""
    bare = {"containers": [{"name": "main"}]}
    (template,) = templates_of(workload("Service", "s", {key: bare}))
    assert template.path == ("spec", key)
    assert template.spec_only
    assert template.pod == {"spec": bare}
    assert template.pod["spec"] is bare


@pytest.mark.parametrize(
    "spec",
    [
        {"other": {"containers": [{"name": "main"}]}},
        {"template": {"containers": [{"image": "x"}]}},
        {"template": {"containers": ["main"]}},
        {"template": {"containers": []}},
        {"template": {"containers": {"name": "main"}}},
    ],
    ids=["another key", "no name", "no mapping", "none", "no list"],
)
def test_what_is_not_certainly_a_pod_spec(spec: dict[str, Any]) -> None:
    """An edit of something else would spoil it."""
    assert templates_of(workload("Service", "s", spec)) == []


def test_a_train_job_has_no_template() -> None:
    """Its partial containers are merged into a runtime's, which has the template."""
    patches = [{"template": pod()}]
    value = workload("TrainJob", "t", {"runtimeRef": {"name": "torch"}, "runtimePatches": patches})
    assert listed(value) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("a: 1", "apiVersion and kind"),
        ("services: {web: {image: x}}", "apiVersion and kind"),
        ("{apiVersion: v1, kind: 1}", "kind"),
        ("kind: Pod", "apiVersion"),
        ("apiVersion: v1", "kind"),
    ],
)
def test_other_documents_are_refused_with_their_line(text: str, missing: str) -> None:
    """A Helm values file or a compose file is a common mistake; the message names what lacks."""
    _, document = read_documents(f"a: 1\n---\n{text}", "values.yaml")
    assert not_kubernetes_reason(document) == (
        "values.yaml: document 2, line 3: this is not a Kubernetes object, since it lacks "
        f"{missing}, and contains no pod template"
    )


@pytest.mark.parametrize(
    "text",
    ["{apiVersion: v1, kind: Service}", "spec: {containers: []}", "a: [{apiVersion: v1, kind: X}]"],
)
def test_objects_and_bare_templates_are_kubernetes(text: str) -> None:
    """A pod template file, as Spark uses it, has no kind."""
    (document,) = read_documents(text)
    assert not_kubernetes_reason(document) is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "x",
        {"kind": 1, "apiVersion": 2},
        {"spec": None},
        {"spec": {"containers": {}}},
        {"x": {"kind": "Pod", "apiVersion": "v1", "name": "a reference"}},
        {"kind": "AdmissionReview", "apiVersion": "v1", "request": []},
        {"kind": "TrainJob", "apiVersion": "v1", "spec": []},
    ],
)
def test_any_shape_is_searched_without_complaint(value: Any) -> None:
    """A document may be any JSON."""
    assert templates_of(value) == []
