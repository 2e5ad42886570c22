"""Tests of named pod templates that other parts of an object refer to."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.preview.workloads.fragments import fragments_of
from webhook.preview.workloads.templates import templates_of

POD = {"spec": {"containers": [{"name": "a", "image": "x"}]}}


def fragments(spec: dict[str, Any]) -> list[str]:
    """Return the sentences on the fragments in an object."""
    value = {
        "apiVersion": "x.io/v1",
        "kind": "Thing",
        "metadata": {"name": "m", "namespace": "lab"},
        "spec": spec,
    }
    return list(fragments_of(value, templates_of(value)).values())


@pytest.mark.parametrize(
    "reference",
    [
        {"podTemplate": "base"},
        {"templateRef": {"name": "base"}},
        {"groups": [{"x": {"templateName": "base"}}]},
    ],
)
@pytest.mark.parametrize("item", [POD, {"template": POD}, {"deep": {"er": POD}}])
def test_a_named_template_that_others_refer_to(item: Any, reference: Any) -> None:
    """No pod is made from it alone, so it has no verdict of its own."""
    (note,) = fragments({"templates": [{"name": "base", **item}], **reference})
    assert note.startswith("Thing lab/m (spec.templates[0]")
    assert note.endswith("): no pod is made from this named template alone, so it has no verdict")


@pytest.mark.parametrize(
    "spec",
    [
        {"templates": [{"name": "base", **POD}]},
        {"templates": [{"name": "base", **POD}], "podTemplate": "other"},
        {"templates": [{"name": "base", **POD}], "dependsOn": "base"},
        {"templates": [{"name": "", **POD}], "podTemplate": ""},
        {"templates": [{"name": 5, **POD}], "podTemplate": 5},
        {"template": POD, "podTemplate": "base", "name": "base"},
        {"outer": [{"name": "base", "jobs": [{"name": "x", **POD}]}], "podTemplate": "base"},
    ],
)
def test_a_template_that_makes_pods_is_no_fragment(spec: dict[str, Any]) -> None:
    """It has no name that a field for templates refers to."""
    assert fragments(spec) == []


def test_without_templates_nothing_is_searched() -> None:
    """A document with devices everywhere has no candidates."""
    assert fragments_of({"podTemplate": "x"}, []) == {}
