"""The notes about parts of documents that pods are made from, but that are not pod templates."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.preview.report.record import folded
from webhook.preview.workloads.hints import notes_of

IF_ASKED = 'patched at admission if they have the annotation rdma.lab/enable: "true"'


#: What is said of all parts that are not edited.
LEFT = f"not edited here; the pods are {IF_ASKED}"
OUTSIDE = f"containers outside any pod template: {LEFT}"


def pod(name: str = "trainer") -> dict[str, Any]:
    """Make the part that every pod template has."""
    return {"spec": {"containers": [{"name": name, "image": "x"}]}}


def made(kind: str, spec: Any, name: str = "m", **metadata: str) -> dict[str, Any]:
    """Make an object."""
    return {
        "apiVersion": "x.io/v1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


@pytest.mark.parametrize("spec", [{"containers": None}, {}, None])
def test_missing_containers_are_noted(spec: Any) -> None:
    """They are not an error for the preview, but the API server rejects such a pod."""
    assert notes_of(made("Pod", spec)) == [
        "Pod m: spec.containers is missing: the API server rejects a pod without containers"
    ]


@pytest.mark.parametrize("kind", ["MiniCluster", "ClusterServingRuntime"])
def test_containers_right_under_another_kind(kind: str) -> None:
    """A container is known by its image and another field, or by its name in such a list."""
    containers = [{"image": "a"}, {"image": "b", "command": "x"}]
    found = notes_of(made(kind, {"containers": containers}))
    assert found == [f"{kind} m (spec.containers[1]): {OUTSIDE}"]


def test_containers_without_images() -> None:
    """Some kinds leave the image to another object. A pod spec without metadata gets no note."""
    bare = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}
    spec = {"template": bare, "engine": bare, "prefill": {"worker": bare, "leader": bare}}
    where = "spec.engine.containers[0], spec.prefill.leader.containers[0]"
    assert notes_of(made("Service", spec)) == [f"Service m ({where}): {OUTSIDE}"]


def test_an_argo_workflow() -> None:
    """A sentence names the first container of each kind of place, and counts the others."""
    container = {"image": "x", "command": ["y"]}
    templates = [
        {"name": "a", "container": container, "sidecars": [{**container, "name": "s"}]},
        {"name": "b", "container": container},
    ]
    where = "spec.templates[0].container, spec.templates[0].sidecars[0] and 1 more"
    assert notes_of(made("Workflow", {"templates": templates})) == [
        f"Workflow m ({where}): {OUTSIDE}"
    ]


def test_many_kinds_of_places_are_counted() -> None:
    """One sentence for an object is enough."""
    spec = {key: {"image": "x", "env": []} for key in "abcde"}
    (note,) = notes_of(made("Graph", spec))
    assert note == f"Graph m (spec.a, spec.b, spec.c and 2 more): {OUTSIDE}"


def test_a_spec_that_is_no_mapping_has_a_message_of_its_own() -> None:
    """The decision says what is wrong with it."""
    assert notes_of(made("Pod", 5)) == []


def test_places_alike_are_named_by_the_first() -> None:
    """The keys of the two last steps say what kind of place it is."""
    services = {name: {"podSpec": {"mainContainer": {"image": "x", "env": []}}} for name in "abc"}
    where = "spec.services.a.podSpec.mainContainer and 2 more"
    assert notes_of(made("Graph", {"services": services})) == [f"Graph m ({where}): {OUTSIDE}"]


def test_a_train_job_without_a_name_of_a_runtime() -> None:
    """The API server refuses it, but the sentence stays one."""
    assert notes_of(made("TrainJob", {})) == [
        f"TrainJob m: the pods are made from its runtime, and {IF_ASKED}"
    ]


def test_a_train_job_depends_on_its_runtime() -> None:
    """Whether its pods opt in is not in the document."""
    patches = [{"template": pod()}]
    value = made("TrainJob", {"runtimeRef": {"name": "torch"}, "runtimePatches": patches})
    assert notes_of(value) == [f"TrainJob m: the pods are made from runtime torch, and {IF_ASKED}"]


@pytest.mark.parametrize(
    ("kinds", "named"),
    [
        (["MPIJob"], "MPIJob"),
        (["ConfigMap", "Service", "ServiceAccount", "MPIJob"], "MPIJob"),
        (["Pod", "Job", "JobSet"], "Pod, Job, JobSet"),
        (["Pod", "Job", "Deployment", "JobSet", "Pod"], "Pod, Job, Deployment and 1 more"),
    ],
    ids=["one", "the one that makes pods", "three", "many"],
)
def test_a_manifest_written_as_text_is_told(kinds: list[str], named: str) -> None:
    """The kinds are those with containers. The text may be a template, so it is never edited."""
    without = ("ConfigMap", "Service", "ServiceAccount")
    text = "---\n".join(
        f"apiVersion: v1\nkind: {kind}\nspec:\n"
        + ("  a: 1\n" if kind in without else "  x:\n    containers: []\n")
        for kind in kinds
    )
    value = made("ConfigMap", {}, namespace="lab")
    value["data"] = {"job.yaml": text, "run.sh": "mpirun", "note": "containers: apiVersion:"}
    where = 'data["job.yaml"]'
    assert notes_of(value) == [
        f"ConfigMap lab/m ({where}): a manifest stored as text ({named}): {LEFT}"
    ]


def test_ordinary_objects_need_no_note() -> None:
    """A pod's own containers, and fields that happen to be called image, need no note."""
    assert notes_of(made("Job", {"template": pod()})) == []
    assert notes_of(made("Driver", {"image": "x", "name": "y"})) == []
    assert notes_of(made("Fleet", {"driver": {"spec": {"image": "x", "env": []}}})) == []
    assert notes_of({"image": "x", "command": "y"}) == []
    assert notes_of({"containers": [{"name": "y"}]}) == []


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "x",
        {"kind": 1, "apiVersion": 2},
        {"kind": "X", "apiVersion": "v1", "containers": [{"name": 5}]},
        {"kind": "AdmissionReview", "apiVersion": "v1", "request": []},
    ],
)
def test_any_shape_is_searched_without_complaint(value: Any) -> None:
    """A document may be any JSON."""
    assert notes_of(value) == []


def test_what_is_said_of_many_objects_is_said_once() -> None:
    """The objects and the places in them are the subject, which a report joins."""
    container = {"image": "x", "env": []}
    notes = [
        note
        for name, field in (("a", "main"), ("b", "other"))
        for note in notes_of(made("Graph", {field: container}, name=name))
    ]
    assert folded(notes, max_names=9) == [f"Graph a (spec.main), Graph b (spec.other): {OUTSIDE}"]
