"""Tests of the table of fields whose annotations reach the pods of custom resources."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.preview.workloads.metadata_sources import (
    METADATA_SOURCES,
    MetadataSource,
    annotations_for,
    metadata_source_of,
)

ON = {"rdma.lab/enable": "true"}


def metadata_source_of_kind(name: str) -> MetadataSource:
    """Return the row of "GROUP KIND"."""
    group, _, kind = name.rpartition(" ")
    metadata_source = metadata_source_of(f"{group}/v1", kind)
    assert metadata_source is not None
    return metadata_source


def test_each_kind_has_one_row_with_a_source() -> None:
    """A row without a field has an advice instead."""
    kinds = [kind for row in METADATA_SOURCES for kind in row.kinds]
    assert len(kinds) == len(set(kinds))
    assert all(row.source for row in METADATA_SOURCES)
    assert all(row.fields or row.advice for row in METADATA_SOURCES)


def test_the_group_counts_and_not_the_version() -> None:
    """Another project may have a kind with the same name."""
    assert metadata_source_of_kind("argoproj.io Workflow").operator == "Argo"
    assert metadata_source_of("other.io/v1", "Workflow") is None
    assert metadata_source_of("v1", "Workflow") is None


def test_the_instruction_names_the_fields_or_the_alternative() -> None:
    """It ends a sentence about the pods."""
    assert metadata_source_of_kind("argoproj.io Workflow").instruction == (
        "Argo copies annotations to them from spec.podMetadata.annotations and "
        "spec.templates.*.metadata.annotations"
    )
    assert metadata_source_of_kind("serving.kserve.io LLMInferenceService").instruction == (
        "KServe copies no annotations to the pods; have a mutating policy of the cluster set "
        "rdma.lab/enable on the pods"
    )


@pytest.mark.parametrize(
    ("kind", "value", "path", "values", "place"),
    [
        (
            "argoproj.io Workflow",
            {"spec": {"podMetadata": {"annotations": ON}}},
            ("spec", "templates", 1, "container"),
            ON,
            ("spec", "podMetadata", "annotations"),
        ),
        (
            "argoproj.io Workflow",
            {
                "spec": {
                    "podMetadata": {"annotations": {"a": "1", "b": "1"}},
                    "templates": [{"metadata": {"annotations": {"b": "2"}}}],
                }
            },
            ("spec", "templates", 0, "container"),
            {"a": "1", "b": "2"},
            ("spec", "templates", 0, "metadata", "annotations"),
        ),
        (
            "argoproj.io Workflow",
            {},
            ("spec", "templates", 0, "container"),
            {},
            ("spec", "templates", 0, "metadata", "annotations"),
        ),
        (
            "nvidia.com DynamoGraphDeployment",
            {"spec": {"services": {"a": {"annotations": ON}, "b": {}}}},
            ("spec", "services", "b", "extraPodSpec", "mainContainer"),
            {},
            ("spec", "services", "b", "extraPodMetadata", "annotations"),
        ),
        (
            "sparkoperator.k8s.io SparkApplication",
            {"spec": {"driver": {"annotations": ON}}},
            ("spec", "executor", "sidecars", 0),
            {},
            ("spec", "executor", "annotations"),
        ),
        (
            "serving.kserve.io InferenceService",
            {"metadata": {"annotations": ON}},
            ("spec", "predictor", "model"),
            ON,
            ("metadata", "annotations"),
        ),
        (
            "kubernetes.dask.org DaskCluster",
            {"metadata": {"annotations": 5}},
            ("spec", "worker", "spec"),
            {},
            ("metadata", "annotations"),
        ),
    ],
)
def test_the_annotations_that_reach_a_pod(
    kind: str, value: Any, path: Any, values: Any, place: Any
) -> None:
    """Those of all fields that apply; the last that is written, or could be, is the place."""
    annotations = annotations_for(metadata_source_of_kind(kind), value, path)
    assert annotations == (values, place)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("serving.kserve.io LLMInferenceService", ("spec", "template")),
        ("nvidia.com DynamoGraphDeployment", ("spec", "other", "a")),
        ("nvidia.com DynamoGraphDeployment", ("spec",)),
    ],
)
def test_nothing_reaches_a_pod_elsewhere(kind: str, path: Any) -> None:
    """The operator copies none, or not to the pods of that part."""
    assert annotations_for(metadata_source_of_kind(kind), {"spec": {}}, path) is None
