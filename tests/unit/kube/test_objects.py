"""Kubernetes objects as records."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.kube.container_states import ContainerState, Terminated
from webhook.kube.objects import (
    ApiResourceList,
    Condition,
    Event,
    KubernetesObject,
    Metadata,
    NodeRecord,
    OwnerReference,
    PodRecord,
    PodSpec,
    PodStatus,
)
from webhook.kube.records import LenientObject

ANYTHING: tuple[Any, ...] = (None, True, 7, 1.5, "x", [], ["x", None, 7, [{}]], {}, {"x": {}, 7: 8})


def container_state(state: object) -> ContainerState:
    """Return the state of a pod's only container."""
    (status,) = PodStatus.model_validate(
        {"containerStatuses": [{"state": state}]}
    ).container_statuses
    return status.state


@pytest.mark.parametrize("kind", [PodRecord, Event, NodeRecord, ApiResourceList])
@pytest.mark.parametrize("value", ANYTHING, ids=repr)
def test_an_object_of_any_shape(kind: type[LenientObject], value: object) -> None:
    """It becomes an empty object, and a field of a wrong type is absent."""
    assert kind.model_validate(value) == kind()
    fields = {str(field.alias): field for field in kind.model_fields.values()}
    fields.pop("manifest", None)
    for name, field in fields.items():
        read = kind.model_validate({name: value})
        if not isinstance(value, str):
            assert read == kind(), f"{name}: {field}"


@pytest.mark.parametrize("value", ANYTHING, ids=repr)
def test_metadata_of_any_shape(value: object) -> None:
    """Metadata in any form without a name, namespace or owners has none of them."""
    read = Metadata.model_validate(
        {"name": [value], "ownerReferences": value, "managedFields": value, "labels": value}
    )
    assert read == Metadata()


def test_numbers_and_flags() -> None:
    """Integers count as numbers, but booleans do not; only `true` sets a flag."""
    numbers: tuple[tuple[object, int], ...] = ((3, 3), (True, 0), ("3", 0), (3.0, 0))
    for value, count in numbers:
        ended = Terminated.model_validate({"exitCode": value})
        assert ended.exit_code == count
    flags: tuple[tuple[object, bool], ...] = (
        (True, True),
        (1, False),
        ("true", False),
        (None, False),
    )
    for value, is_set in flags:
        assert PodSpec.model_validate({"hostPID": value}).host_pid is is_set


def test_labels_and_annotations() -> None:
    """Labels are strings; annotations stay unparsed, since a denial quotes them."""
    written = {"a": "b", "c": True, 7: "d", "e": None}
    read = Metadata.model_validate({"labels": written, "annotations": written})
    assert read.labels == {"a": "b"}
    assert read.annotations == {"a": "b", "c": True, "e": None}


def test_text_that_is_not_unicode() -> None:
    """JSON may contain half a character, which stays unchanged."""
    assert Metadata.model_validate({"name": "\ud800"}).name == "\ud800"


def test_whether_an_object_is_deleted() -> None:
    """A time in any form means deletion; null does not."""
    times: tuple[tuple[str | None, bool], ...] = (("2026-11-22", True), ("", True), (None, False))
    for value, is_deleted in times:
        assert Metadata.model_validate({"deletionTimestamp": value}).is_deleted is is_deleted


def test_the_controller() -> None:
    """It is the first owner with the mark of a controller."""
    owners = [{"name": "a"}, {"name": "b", "controller": 1}]
    assert Metadata.model_validate({"ownerReferences": owners}).controller is None
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
    read = Metadata.model_validate({"ownerReferences": [*owners, job, {"controller": True}]})
    assert read.controller == OwnerReference.model_validate(job)
    assert read.controller is not None
    assert (read.controller.api_version, read.controller.kind) == ("batch/v1", "Job")


def test_when_a_label_was_written() -> None:
    """The newest time of its writers; annotations are separate, and null does not count."""

    def entry(time: str, field: str, keys: object) -> dict[str, Any]:
        return {"time": time, "fieldsV1": {"f:metadata": {field: keys}}}

    read = Metadata.model_validate(
        {
            "managedFields": [
                entry("2", "f:labels", {"f:a": {}}),
                entry("3", "f:labels", {"f:a": {}, "f:b": None}),
                entry("4", "f:annotations", {"f:a": {}}),
                entry("5", "f:labels", "x"),
            ]
        }
    )
    assert (read.label_written_at("a"), read.annotation_written_at("a")) == ("3", "4")
    assert (read.label_written_at("b"), read.annotation_written_at("b")) == ("", "")


def test_the_manifest_is_kept() -> None:
    """It is the mapping as read; a field named `manifest` in it has no effect."""
    manifest = {"kind": "Job", "metadata": {"name": "train"}, "manifest": {"kind": "Pod"}}
    read = KubernetesObject.read(manifest)
    assert read.manifest is manifest
    assert read.title == "Job train"
    assert KubernetesObject.read([]) == KubernetesObject()
    assert KubernetesObject.read({"kind": "Job"}).title == "Job"


def test_the_states_of_a_container() -> None:
    """A state without content counts: the container runs, or has ended well."""
    assert container_state({"running": {}}).is_running
    assert container_state({"terminated": {}}).terminated == Terminated()
    waiting = container_state({"waiting": {"reason": "ErrImagePull", "message": "no"}}).waiting
    assert waiting is not None
    assert (waiting.reason, waiting.message) == ("ErrImagePull", "no")
    for absent in ({"running": None}, {"terminated": "x", "waiting": []}, "x"):
        assert container_state(absent) == ContainerState()


def test_a_condition() -> None:
    """The first of its type; an empty one if missing."""
    ready = [{"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}]
    read = PodStatus.model_validate({"conditions": [{"type": "Other"}, *ready]})
    assert read.condition("Ready") == Condition(type="Ready", status="True")
    assert read.condition("PodScheduled") == Condition()


@pytest.mark.parametrize(
    ("phase", "node", "waits"),
    [("Pending", "", True), ("Pending", "node-1", False), ("Running", "", False), ("", "", False)],
)
def test_whether_a_pod_waits_for_a_node(phase: str, node: str, waits: bool) -> None:
    """A pod that is not pending, or not in a cluster, does not."""
    pod = PodRecord.read({"spec": {"nodeName": node}, "status": {"phase": phase}})
    assert pod.waits_for_node is waits


def test_events_of_both_groups() -> None:
    """Both have the same content; the time of the last repetition counts, if there is one."""
    core = {"message": "m", "involvedObject": {"kind": "Pod", "name": "a"}, "lastTimestamp": "2"}
    new = {"note": "m", "regarding": {"kind": "Pod", "name": "a"}, "eventTime": "2"}
    for written in (core, new):
        event = Event.model_validate({"metadata": {"creationTimestamp": "1"}, **written})
        assert (event.text, event.about.kind, event.about.name) == ("m", "Pod", "a")
        assert event.time == "2"
    assert Event.model_validate({"metadata": {"creationTimestamp": "1"}}).time == "1"
    assert Event.model_validate({"lastTimestamp": "3", "eventTime": "2"}).time == "3"


@pytest.mark.parametrize(
    ("condition", "is_ready"),
    [
        ({"type": "Ready", "status": "True"}, True),
        ({"type": "Ready", "status": "Unknown"}, False),
        ({"type": "DiskPressure", "status": "True"}, False),
    ],
    ids=str,
)
def test_whether_a_node_or_a_pod_is_ready(condition: dict[str, str], is_ready: bool) -> None:
    """The kubelet's condition decides."""
    status = {"conditions": [condition]}
    assert NodeRecord.model_validate({"status": status}).status.is_ready is is_ready
    assert PodRecord.read({"status": status}).status.is_ready is is_ready
