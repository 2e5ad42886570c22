"""Tests of the views of a pod and its containers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, pod
from tests.case_names import case_name
from webhook.errors import ShapeError
from webhook.model.pod import Container, Pod

PATH = ("spec", "containers", 0)


def test_a_field_is_read_once() -> None:
    """A second access returns the same object; another pod has its own."""
    view = Pod(pod(container(env=[{"name": "A", "value": "1"}])))
    (first,) = view.containers
    assert view.container(PATH) is first
    assert first.env is first.env == {"A": "1"}
    assert first.env_items is first.manifest["env"]
    assert Pod(pod(container(env=[{"name": "A", "value": "2"}]))).containers[0].env == {"A": "2"}


@pytest.mark.parametrize(
    ("field", "written", "says"),
    [
        ("resources", {"resources": 1}, "resources must be a mapping, but is a number (1)"),
        (
            "limits",
            {"resources": {"limits": []}},
            "resources.limits must be a mapping, but is a list ([])",
        ),
        ("command", {"command": "run"}, "command must be a list, but is a string ('run')"),
        ("args", {"args": [1]}, "args[0] must be a string, but is a number (1)"),
        ("env_from", {"envFrom": "x"}, "envFrom must be a list, but is a string ('x')"),
        (
            "privileged",
            {"securityContext": {"privileged": "yes"}},
            "securityContext.privileged must be true or false, but is a string ('yes')",
        ),
    ],
    ids=case_name,
)
def test_only_the_field_that_is_asked_for_can_be_wrong(
    field: str, written: dict[str, Any], says: str
) -> None:
    """The message names its place in the pod; it is raised each time."""
    view = Container(PATH, container(**written))
    assert view.mounts == []
    for _ in range(2):
        with pytest.raises(ShapeError) as raised:
            getattr(view, field)
        assert str(raised.value) == f"spec.containers[0].{says}"


def test_absent_fields_are_empty() -> None:
    """Null is the same as absent, on any step of the way."""
    for fields in ({}, {"resources": None, "securityContext": None, "command": None}):
        view = Container(PATH, fields)
        assert (view.limits, view.requests, view.quantities, view.claims) == ({}, {}, {}, [])
        assert (view.command, view.args, view.command_text, view.env) == ([], [], "", {})
        assert view.privileged is False
        assert view.name == "containers[0]"


def test_the_limit_counts_where_a_resource_has_both() -> None:
    """A request alone counts, too."""
    resources = {"requests": {"a": 1, "b": 1}, "limits": {"b": 2, "c": 3}}
    assert Container(PATH, container(resources=resources)).quantities == {"a": 1, "b": 2, "c": 3}


def test_all_words_of_a_command_are_lines() -> None:
    """The words of `command` come before the words of `args`."""
    view = Container(PATH, container(command=["sh", "-c"], args=["run"]))
    assert view.command_text == "sh\n-c\nrun"


def test_a_node_may_be_named_by_a_field() -> None:
    """Only `metadata.name` is such a field, and only `In` names nodes."""
    fields = [
        {"key": "metadata.name", "operator": "In", "values": ["a", "b"]},
        {"key": "metadata.name", "operator": "NotIn", "values": ["c"]},
        {"key": "metadata.uid", "operator": "In", "values": ["d"]},
    ]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert Pod(pod(affinity=affinity)).node_names == ["a", "b"]
