"""Tests of the pods that are derived from containers outside any pod template."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.preview.workloads.derived import derived_templates
from webhook.preview.workloads.templates import Template, templates_of

GPU = {"limits": {"nvidia.com/v100": 8}}
MAIN = {"image": "x", "resources": GPU}
ON = {"rdma.lab/enable": "true"}


def derived(spec: Any, kind: str = "x.io/v1 Thing", **metadata: Any) -> list[Template]:
    """Return the pods derived from an object."""
    api_version, _, word = kind.rpartition(" ")
    return derived_templates(
        {"apiVersion": api_version, "kind": word, "metadata": metadata, "spec": spec}
    )


def test_a_container_is_a_pod_with_the_fields_around_it() -> None:
    """A field of another type is the operator's own."""
    around = {"nodeSelector": {"pool": "a"}, "volumes": {"x": 1}, "hostNetwork": True, "size": 2}
    (template,) = derived({"worker": {"mainContainer": MAIN, **around}}, name="m")
    assert template.path == ("spec", "worker", "mainContainer")
    assert template.pod == {
        "spec": {
            "nodeSelector": {"pool": "a"},
            "hostNetwork": True,
            "containers": [{"name": "mainContainer", **MAIN}],
        }
    }
    assert (template.derived, template.spec_only, template.annotations_path) == (True, True, None)
    assert (template.kind, template.name) == ("Thing", "m")


def test_a_container_in_a_list_has_the_fields_around_the_list() -> None:
    """Its own name stays."""
    spec = {"templates": [{"nodeSelector": {"a": "b"}, "sidecars": [{**MAIN, "name": "s"}]}]}
    (template,) = derived(spec)
    assert template.pod["spec"] == {
        "nodeSelector": {"a": "b"},
        "containers": [{**MAIN, "name": "s"}],
    }


def test_a_list_of_containers_is_a_single_pod() -> None:
    """With the fields next to it; containers of the pod make no other pods."""
    containers = [{"name": "a", "resources": GPU}, {"name": "b", **MAIN}]
    (template,) = derived({"engine": {"containers": containers, "tolerations": [], "x": 1}})
    assert template.path == ("spec", "engine")
    assert template.pod == {"spec": {"tolerations": [], "containers": containers}}


@pytest.mark.parametrize(
    "resources",
    [
        {"limits": {"rdma/ib": 1}},
        {"requests": {"nvidia.com/gpu": 1}},
        {"claims": [{"name": "gpu"}]},
    ],
)
def test_only_a_part_with_a_device_is_a_pod(resources: Any) -> None:
    """Otherwise the operator adds the devices, and the verdict would be wrong."""
    assert len(derived({"main": {"image": "x", "resources": resources}})) == 1
    others: tuple[Any, ...] = ({"limits": {"cpu": 1}}, {"claims": []}, {"limits": 5}, None)
    for other in others:
        assert derived({"main": {"image": "x", "resources": other}}) == []


@pytest.mark.parametrize(
    "spec",
    [
        {"template": {"spec": {"containers": [{"name": "a", **MAIN}]}}},
        {"podSpec": {"containers": [{"name": "a", **MAIN}]}},
        {"containers": 5},
        {"containers": [5, {"name": 5}]},
    ],
)
def test_pods_and_other_shapes_are_left_alone(spec: Any) -> None:
    """`templates_of` finds the pods."""
    assert derived(spec) == []
    assert derived_templates({"spec": {"main": MAIN}}) == []


def test_the_annotations_that_the_operator_copies() -> None:
    """The kind has a row in the table."""
    spec = {
        "podMetadata": {"annotations": ON},
        "templates": [{"container": MAIN, "metadata": {"annotations": {"a": "b"}}}],
    }
    (template,) = derived(spec, "argoproj.io/v1alpha1 Workflow")
    assert template.pod["metadata"] == {"annotations": {**ON, "a": "b"}}
    assert template.annotations_path == ("spec", "templates", 0, "metadata", "annotations")


def test_the_path_of_the_annotations_is_that_of_the_document() -> None:
    """The object may be in a List."""
    workflow = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "spec": {"templates": [{"container": MAIN}]},
    }
    (template,) = derived_templates({"apiVersion": "v1", "kind": "List", "items": [workflow]})
    place = ("items", 0, "spec", "templates", 0, "metadata", "annotations")
    assert template.annotations_path == place


def test_a_template_of_an_operator_gets_the_annotations_that_it_copies() -> None:
    """The metadata next to the spec is not the pods', unless it is a template by its name."""
    pod = {"metadata": {"annotations": {"own": "x"}}, "spec": {"containers": [{"name": "a"}]}}
    value = {
        "apiVersion": "kubernetes.dask.org/v1",
        "kind": "DaskCluster",
        "metadata": {"annotations": ON},
        "spec": {"worker": pod, "podTemplate": pod},
    }
    worker, other = templates_of(value)
    assert worker.path == ("spec", "worker", "spec")
    assert worker.pod == {"metadata": {"annotations": ON}, "spec": pod["spec"]}
    assert (worker.spec_only, worker.annotations_path) == (True, ("metadata", "annotations"))
    assert (other.path, other.pod, other.spec_only) == (("spec", "podTemplate"), pod, False)
