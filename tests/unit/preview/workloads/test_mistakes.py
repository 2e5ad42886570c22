"""Tests of the mistakes in manifests that only a preview can name."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client

from tests.growth import MAX_CPU_RATIO, cpu_ratio
from webhook.preview.workloads import mistakes
from webhook.preview.workloads.mistakes import mistakes_in
from webhook.preview.workloads.templates import Template, templates_of

WHOLE = {"name": "a", "image": "x"}


def template_of(pod: Any) -> Template:
    """Return the template of a Job."""
    value = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": pod}}
    (template,) = templates_of(value)
    return template


def mistakes_of(
    spec: Any = None, container: Any = None, *, allows_only_known_fields: bool = True
) -> list[str]:
    """Return the mistakes in a Job's template with these fields; without their common path."""
    pod = {"metadata": {}, "spec": {"containers": [{**WHOLE, **(container or {})}], **(spec or {})}}
    sentences = mistakes_in(template_of(pod), allows_only_known_fields=allows_only_known_fields)
    return [sentence.removeprefix("spec.template.") for sentence in sentences]


@pytest.mark.parametrize(
    ("container", "sentence"),
    [
        ({"resource": {}}, "resource is not a field of a container (did you mean resources?)"),
        (
            {"resources": {"limit": {}}},
            "resources.limit is not a field of a container's resources (did you mean limits?)",
        ),
        (
            {"securityContext": {"capabilites": {}}},
            (
                "securityContext.capabilites is not a field of a container's securityContext "
                "(did you mean capabilities?)"
            ),
        ),
        (
            {"securityContext": {"capabilities": {"ad": []}}},
            (
                "securityContext.capabilities.ad is not a field of a container's capabilities "
                "(did you mean add?)"
            ),
        ),
        ({"gpus": 8}, "gpus is not a field of a container"),
    ],
)
def test_an_unknown_field_is_named_with_the_nearest(container: Any, sentence: str) -> None:
    """The API server drops such a field, so the pod lacks what it was to have."""
    assert mistakes_of(container=container) == [f"spec.containers[0].{sentence}"]


def test_unknown_fields_of_the_pod() -> None:
    """Of its spec and its metadata; init containers are containers as well."""
    assert mistakes_of({"nodeSelectors": {}, "initContainers": [{"cmd": 1}]}) == [
        "spec.nodeSelectors is not a field of a pod's spec (did you mean nodeSelector?)",
        "spec.initContainers[0].cmd is not a field of a container",
    ]
    pod = {"metadata": {"annotation": {}}, "spec": {"containers": [WHOLE]}}
    assert mistakes_in(template_of(pod), allows_only_known_fields=True) == (
        "spec.template.metadata.annotation is not a field of metadata (did you mean annotations?)",
    )


def test_other_kinds_may_have_fields_of_their_own() -> None:
    """Only what resembles a known field counts there."""
    container = {"gpus": 8, "resource": {}}
    assert mistakes_of(container=container, allows_only_known_fields=False) == [
        "spec.containers[0].resource is not a field of a container (did you mean resources?)"
    ]


def test_a_few_mistakes_are_enough() -> None:
    """The search for similar names takes time."""
    assert len(mistakes_of({f"field{index}": 1 for index in range(99)})) == 8


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"image": "x:${TAG}"}, "image has 'x:${TAG}'"),
        ({"image": "$IMAGE"}, "image has '$IMAGE'"),
        ({"resources": {"limits": {"${GPU:-a/b}": 1}}}, "resources.limits has '${GPU:-a/b}'"),
        ({"ports": [{"name": "${A}"}, {"name": "x-${A}"}]}, "ports[0].name has '${A}'"),
    ],
)
def test_an_unexpanded_variable_is_named_once(fields: Any, sentence: str) -> None:
    """In a key or a value; one remedy removes all."""
    assert mistakes_of(container=fields) == [
        f"spec.containers[0].{sentence}, an unexpanded variable (run envsubst first)"
    ]


def test_all_unexpanded_variables_are_named_in_one_sentence() -> None:
    """Each with its first place: the second may be the one that matters."""
    image = "${A}/${B}"
    pod = {"image": image, "ports": [{"name": "${B}"}, {"name": "${C}"}, {"name": "$D"}]}
    place = "spec.template.spec.containers[0]"
    (sentence,) = mistakes_of(container=pod)
    assert sentence == (
        f"spec.containers[0].image has '{image}', {place}.ports[1].name has '${{C}}' and "
        f"{place}.ports[2].name has '$D', unexpanded variables (run envsubst first)"
    )
    pod = {"ports": [{"name": f"${{A{index}}}"} for index in range(99)]}
    (sentence,) = mistakes_of(container=pod)
    assert sentence.count(" has ") == 8


@pytest.mark.parametrize(
    "fields",
    [
        {"command": ["sh", "-c", "echo ${X}"], "args": ["$X"]},
        {"env": [{"name": "X", "value": "${Y}"}]},
        {"image": "$(X)"},
        {"image": "a$b"},
        {"image": "x" * 300 + "${X}"},
    ],
)
def test_a_variable_may_be_expanded_in_the_pod(fields: Any) -> None:
    """By a shell, a program or the kubelet; and a long text is a program's own."""
    assert mistakes_of(container=fields) == []


def test_a_bare_spec_has_the_paths_of_the_document() -> None:
    """It has no `spec` of its own."""
    bare = {"containers": [{**WHOLE, "resource": {}, "image": "${X}"}]}
    value = {"apiVersion": "x/v1", "kind": "X", "spec": {"podSpec": bare}}
    (template,) = templates_of(value)
    assert mistakes_in(template, allows_only_known_fields=False) == (
        (
            "spec.podSpec.containers[0].resource is not a field of a container (did you mean "
            "resources?)"
        ),
        "spec.podSpec.containers[0].image has '${X}', an unexpanded variable (run envsubst first)",
    )


@pytest.mark.parametrize("pod", [{"spec": {"containers": 5}}, {"spec": {"containers": [5, None]}}])
def test_a_malformed_pod_has_other_mistakes(pod: Any) -> None:
    """The decision names them."""
    assert mistakes_in(template_of(pod), allows_only_known_fields=True) == ()


@pytest.mark.parametrize(
    ("fields", "model"),
    [
        ("METADATA_FIELDS", "V1ObjectMeta"),
        ("SPEC_FIELDS", "V1PodSpec"),
        ("CONTAINER_FIELD_NAMES", "V1Container"),
        ("CONTAINER_FIELD_NAMES", "V1EphemeralContainer"),
        ("RESOURCE_FIELDS", "V1ResourceRequirements"),
        ("SECURITY_FIELDS", "V1SecurityContext"),
        ("CAPABILITY_FIELDS", "V1Capabilities"),
    ],
)
def test_the_fields_are_those_of_the_api(fields: str, model: str) -> None:
    """A new version of the client may bring fields that the list lacks."""
    assert set(getattr(client, model).attribute_map.values()) <= getattr(mistakes, fields)


def test_the_time_is_linear() -> None:
    """A document may have 200,000 values."""

    def search(count: int) -> None:
        containers = [{**WHOLE, "ports": [{"name": "x"}] * 10} for _ in range(count // 10)]
        mistakes_in(
            template_of({"spec": {"containers": containers}}), allows_only_known_fields=True
        )

    assert cpu_ratio(lambda: search(2000), lambda: search(8000)) < MAX_CPU_RATIO
