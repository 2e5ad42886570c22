"""Fields that are read from an object have a type and a default, whatever the object is."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import Field

from webhook.kube.records import Flag, LenientObject, Text
from webhook.preview.workloads.objects import (
    MappingOrEmpty,
    ObjectMetadata,
    TextOrDefault,
    below,
    values_along,
)

EMPTY: dict[str, Any] = {
    "kind": None,
    "name": None,
    "generate_name": None,
    "namespace": None,
    "labels": {},
    "annotations": {},
}


class Job(LenientObject):
    """A record with a field of each type."""

    slots_per_worker: TextOrDefault = "1"
    is_elastic: Flag = False
    image: Text = ""
    start_params: MappingOrEmpty = Field(default_factory=dict)
    runtime: Text = below("spec", "runtimeRef", "name", default="")


def test_fields_are_read_under_their_names_in_kubernetes() -> None:
    """Those are in camel case; a field below the mapping has a path; others are not read."""
    value = {
        "slotsPerWorker": 8,
        "isElastic": True,
        "image": "x",
        "startParams": {"a": 1},
        "spec": {"runtimeRef": {"name": "torch"}},
        "slots_per_worker": 9,
        "other": 1,
    }
    assert Job.model_validate(value).model_dump() == {
        "slots_per_worker": "8",
        "is_elastic": True,
        "image": "x",
        "start_params": {"a": 1},
        "runtime": "torch",
    }


@pytest.mark.parametrize(
    "junk",
    [None, [], ["x"], 1.5, 0, 10**5000, {}],
    ids=["null", "list", "items", "fraction", "zero", "long", "mapping"],
)
def test_a_field_of_another_type_counts_as_absent(junk: Any) -> None:
    """So does a field whose parents have another type."""
    fields = ("slotsPerWorker", "isElastic", "image", "startParams")
    value = {**dict.fromkeys(fields, junk), "spec": {"runtimeRef": junk}}
    assert (
        Job.model_validate(value)
        == Job.model_validate({})
        == Job.model_validate({**value, "spec": junk})
    )


@pytest.mark.parametrize("flag", [1, "true", "True", "x", None], ids=repr)
def test_only_true_is_true(flag: Any) -> None:
    """The string "true" is not: the API server rejects it."""
    assert not Job.model_validate({"isElastic": flag}).is_elastic


def test_text_may_have_half_of_a_surrogate_pair() -> None:
    """JSON can contain one, and it is passed on unchanged."""
    job = Job.model_validate({"slotsPerWorker": "\ud800", "image": "\ud800"})
    assert (job.slots_per_worker, job.image) == ("\ud800", "\ud800")


@pytest.mark.parametrize("node", [None, [], "metadata", 7, {}, {"metadata": ["name"]}], ids=str)
def test_the_metadata_of_anything(node: Any) -> None:
    """A value without metadata has empty fields."""
    assert ObjectMetadata.of(node)._asdict() == EMPTY


def test_mappings_are_passed_on_themselves() -> None:
    """They are not copied: hints remember them by their identity."""
    labels: dict[str, Any] = {"a": [1]}
    metadata = ObjectMetadata.of({"kind": "Job", "metadata": {"name": 7, "labels": labels}})
    assert metadata._asdict() == {**EMPTY, "kind": "Job", "name": 7, "labels": labels}
    assert metadata.labels is labels


@pytest.mark.parametrize(
    ("metadata", "place"),
    [
        ({"namespace": "lab", "name": "train"}, "lab/train"),
        ({"name": 7}, "7"),
        ({"namespace": "lab", "name": ""}, "lab"),
        ({}, ""),
    ],
    ids=["both", "number", "namespace", "none"],
)
def test_the_place_of_an_object(metadata: dict[str, Any], place: str) -> None:
    """It is for messages, and has the names that exist."""
    assert ObjectMetadata.of({"metadata": metadata}).full_name == place


def test_values_along_a_path() -> None:
    """They lead from the value itself to the value at the path."""
    value = {"a": [{"b": 1}]}
    assert values_along(value, ("a", 0, "b")) == [value, [{"b": 1}], {"b": 1}, 1]
