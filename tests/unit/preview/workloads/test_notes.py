"""The notes about parts of documents that become pods, but are not pod templates."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.preview.report.record import merge_sentences
from webhook.preview.workloads.notes import notes_of

IF_ASKED = 'patched at admission if they have the annotation rdma.lab/enable: "true"'


#: The end of each note.
NOT_EDITED = f"not edited here; the pods are {IF_ASKED}"
OUTSIDE = f"containers outside any pod template are {NOT_EDITED}"


def pod(name: str = "trainer") -> dict[str, Any]:
    """Make the part that every pod template has."""
    return {"spec": {"containers": [{"name": name, "image": "x"}]}}


def document(kind: str, spec: Any, name: str = "m", **metadata: str) -> dict[str, Any]:
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
    assert notes_of(document("Pod", spec)) == [
        "Pod m: spec.containers is missing, and the API server rejects a pod without containers"
    ]


@pytest.mark.parametrize("key", ["container", "Containers", "contaners"])
def test_misnamed_containers_are_noted(key: str) -> None:
    """Without `containers`, a template is not recognized as one."""
    template = {"spec": {"volumes": [], key: [{"name": "a"}]}}
    assert notes_of(document("Job", {"template": template})) == [
        f"Job m: spec.template.spec.{key} is not a field of a pod's spec (did you mean containers?)"
    ]


@pytest.mark.parametrize("spec", [{"initContainers": []}, {"container": {}}, [], None])
def test_other_specs_are_no_misnamed_pods(spec: Any) -> None:
    """Only a list of containers is one, and a template may be something else."""
    assert notes_of(document("Job", {"template": {"spec": spec}})) == []
    assert notes_of(document("Job", {"other": {"spec": {"container": []}}})) == []


@pytest.mark.parametrize("kind", ["MiniCluster", "ClusterServingRuntime"])
def test_containers_right_under_another_kind(kind: str) -> None:
    """A container is known by its image and another field, or by its name in such a list."""
    containers = [{"image": "a"}, {"image": "b", "command": "x"}]
    notes = notes_of(document(kind, {"containers": containers}))
    assert notes == [f"{kind} m (spec.containers[1]): {OUTSIDE}"]


def test_containers_without_images() -> None:
    """Some kinds leave the image to another object. A pod spec without metadata gets no note."""
    bare = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}
    spec = {"template": bare, "engine": bare, "prefill": {"worker": bare, "leader": bare}}
    places = "spec.engine.containers[0], spec.prefill.leader.containers[0]"
    assert notes_of(document("Service", spec)) == [f"Service m ({places}): {OUTSIDE}"]


def test_an_argo_workflow() -> None:
    """A sentence names three containers: first one of each kind of place, then others."""
    container = {"image": "x", "command": ["y"]}
    templates = [
        {"name": "a", "container": container, "sidecars": [{**container, "name": "s"}]},
        {"name": "b", "container": container},
    ]
    places = (
        "spec.templates[0].container, spec.templates[0].sidecars[0], spec.templates[1].container"
    )
    assert notes_of(document("Workflow", {"templates": templates})) == [
        f"Workflow m ({places}): {OUTSIDE}"
    ]


def test_many_kinds_of_places_are_counted() -> None:
    """One sentence for an object is enough."""
    spec = {key: {"image": "x", "env": []} for key in "abcde"}
    (note,) = notes_of(document("Graph", spec))
    assert note == f"Graph m (spec.a, spec.b, spec.c and 2 more): {OUTSIDE}"


def test_a_spec_that_is_not_a_mapping_has_its_own_message() -> None:
    """The decision explains what is wrong with it."""
    assert notes_of(document("Pod", 5)) == []


def test_more_than_three_containers_are_counted() -> None:
    """Each kind of place is named once before any is named again."""
    service = {"mainContainer": {"image": "x", "env": []}}
    services = {name: {"podSpec": service} for name in "abc"}
    services["d"] = {"podSpec": {"other": {"image": "x", "env": []}}}
    places = (
        "spec.services.a.podSpec.mainContainer, spec.services.d.podSpec.other, "
        "spec.services.b.podSpec.mainContainer and 1 more"
    )
    assert notes_of(document("Graph", {"services": services})) == [f"Graph m ({places}): {OUTSIDE}"]


TRAINER = (
    "; Kubeflow Trainer copies annotations to them from spec.runtimePatches.*.trainingRuntimeSpec."
    "template.spec.replicatedJobs.*.template.spec.template.metadata.annotations; you can also set "
    "it in the pod template of the runtime"
)


@pytest.mark.parametrize(
    ("spec", "origin"),
    [
        ({}, ""),
        (
            {"runtimeRef": {"name": "torch"}, "runtimePatches": [{"template": pod()}]},
            "made from runtime torch, and ",
        ),
    ],
    ids=["no name", "a name"],
)
def test_a_train_job_depends_on_its_runtime(spec: Any, origin: str) -> None:
    """Whether its pods opt in is not in the document."""
    value = document("TrainJob", spec) | {"apiVersion": "trainer.kubeflow.org/v1alpha1"}
    assert notes_of(value) == [f"TrainJob m: the pods are {origin}{IF_ASKED}{TRAINER}"]


def test_an_operator_that_copies_annotations_is_named() -> None:
    """With containers in the object, and without any."""
    copied = "; KServe copies annotations to them from spec.annotations"
    group = {"apiVersion": "serving.kserve.io/v1alpha1"}
    assert notes_of(document("ServingRuntime", {}) | group) == [
        f"ServingRuntime m: the pods are {IF_ASKED}{copied}"
    ]
    value = document("ServingRuntime", {"containers": [{"name": "a"}]}) | group
    assert notes_of(value) == [f"ServingRuntime m (spec.containers[0]): {OUTSIDE}{copied}"]


@pytest.mark.parametrize("section", ["limits", "requests"])
def test_a_device_outside_any_container_is_named(section: str) -> None:
    """An unknown operator makes pods for it; the first device of an object is enough."""
    resources = {section: {"cpu": 1, "nvidia.com/gpu": 8}}
    value = document("Thing", {"resources": resources, "more": {"resources": resources}})
    assert notes_of(value) == [
        (
            "Thing m (spec.resources): nvidia.com/gpu is requested outside any container; an "
            f"operator that is not known here makes the pods, and they are {IF_ASKED}"
        )
    ]
    assert notes_of(document("Thing", {"resources": {section: {"cpu": 1}}})) == []
    assert notes_of({"limits": {"nvidia.com/gpu": 1}}) == []
    value = {"apiVersion": "x.io/v1", "kind": "Thing", "limits": {"nvidia.com/gpu": 1}}
    assert notes_of(value)[0].startswith("Thing: nvidia.com/gpu is requested")


def test_a_device_is_named_next_to_the_note_on_containers() -> None:
    """A device of such a container is not outside it; a resource without a domain is none."""
    device = {"limits": {"gpu": "8", "custom": {"rdma/ib": "8"}}}
    main = {"image": "x", "env": [], "resources": {"limits": {"a/b": 1}}}
    services = {
        "a": {"main": main, "resources": {"limits": {"gpu": "8"}}},
        "b": {"resources": device},
    }
    requested = "rdma/ib is requested outside any container"
    value = document("Graph", {"services": services})
    assert notes_of(value) == [
        f"Graph m (spec.services.a.main): {OUTSIDE}",
        (
            f"Graph m (spec.services.b.resources): {requested}; an operator that is not known here "
            "makes the pods, and only admission judges them"
        ),
    ]
    del services["b"]
    assert notes_of(value) == [f"Graph m (spec.services.a.main): {OUTSIDE}"]


def test_a_known_operator_is_named_with_the_device() -> None:
    """The instruction for the annotation is in the other note."""
    spec = {"resources": {"requests": {"nvidia.com/gpu": 1}}}
    value = document("NIMService", spec) | {"apiVersion": "apps.nvidia.com/v1alpha1"}
    operator, device = notes_of(value)
    assert operator.startswith(f"NIMService m: the pods are {IF_ASKED}; NIM Operator copies")
    assert device == (
        "NIMService m (spec.resources): nvidia.com/gpu is requested outside any container; NIM "
        "Operator makes the pods, and only admission judges them"
    )


def test_a_train_job_names_the_device_of_its_nodes() -> None:
    """Its other parts are partial containers of the runtime's."""
    per_node = {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 1}}}
    value = document("TrainJob", {"trainer": per_node, "other": per_node["resourcesPerNode"]})
    value["apiVersion"] = "trainer.kubeflow.org/v1alpha1"
    assert notes_of(value) == [
        f"TrainJob m: the pods are {IF_ASKED}{TRAINER}",
        (
            "TrainJob m (spec.trainer.resourcesPerNode): nvidia.com/gpu is requested outside any "
            "container; Kubeflow Trainer makes the pods, and only admission judges them"
        ),
    ]
    del value["spec"]["trainer"]
    assert notes_of(value) == [f"TrainJob m: the pods are {IF_ASKED}{TRAINER}"]


def test_parts_that_were_decided_on_get_no_note() -> None:
    """The others of the object do."""
    containers = [{"name": "a"}, {"name": "b"}]
    value = document("Thing", {"x": {"containers": containers}, "y": {"containers": containers}})
    assert notes_of(value, {("spec", "x")}) == [
        f"Thing m (spec.y.containers[0], spec.y.containers[1]): {OUTSIDE}"
    ]
    assert notes_of(value, {("spec", "x"), ("spec", "y")}) == []
    limits = document("Thing", {"x": {"containers": containers}, "limits": {"a/b": 1}})
    assert notes_of(limits, {("spec", "x")}) == []


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
def test_a_manifest_stored_as_text_is_noted(kinds: list[str], named: str) -> None:
    """The kinds are those with containers. The text may be a template, so it is never edited."""
    without = ("ConfigMap", "Service", "ServiceAccount")
    text = "---\n".join(
        f"apiVersion: v1\nkind: {kind}\nspec:\n"
        + ("  a: 1\n" if kind in without else "  x:\n    containers: []\n")
        for kind in kinds
    )
    value = document("ConfigMap", {}, namespace="lab")
    value["data"] = {"job.yaml": text, "run.sh": "mpirun", "note": "containers: apiVersion:"}
    place = 'data["job.yaml"]'
    assert notes_of(value) == [
        f"ConfigMap lab/m ({place}): a manifest stored as text ({named}) is {NOT_EDITED}"
    ]


def test_ordinary_objects_need_no_note() -> None:
    """A pod's own containers, and fields that happen to be called image, need no note."""
    assert notes_of(document("Job", {"template": pod()})) == []
    assert notes_of(document("Driver", {"image": "x", "name": "y"})) == []
    assert notes_of(document("Fleet", {"driver": {"spec": {"image": "x", "env": []}}})) == []
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


def test_a_note_on_several_objects_is_written_once() -> None:
    """The objects and the places in them are the subject, which a report joins."""
    container = {"image": "x", "env": []}
    notes = [
        note
        for name, field in (("a", "main"), ("b", "other"))
        for note in notes_of(document("Graph", {field: container}, name=name))
    ]
    assert merge_sentences(notes, max_names=9) == [
        f"Graph a (spec.main), Graph b (spec.other): {OUTSIDE}"
    ]
