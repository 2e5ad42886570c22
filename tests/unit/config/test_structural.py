"""Tests of structural schemas: the conversion of each shape of a JSON Schema."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.config.schema import structural

DEFINED: dict[str, Any] = {
    "Part": {
        "type": "object",
        "description": "One part.",
        "properties": {"name": {"type": "string", "description": "Name of the part."}},
        "required": ["name"],
        "additionalProperties": False,
        "title": "Part",
    }
}
PART = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "required": ["name"],
    "properties": {"name": {"description": "Name of the part.", "type": "string"}},
}


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param({"type": "string"}, {"type": "string"}, id="as it is"),
        pytest.param(
            {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "description": "A."},
            {"type": "string", "description": "A."},
            id="no null",
        ),
        pytest.param(
            {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "per-gpu"}]},
            {"x-kubernetes-int-or-string": True},
            id="integer or string",
        ),
        pytest.param(
            {"anyOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"type": "null"}]},
            {"x-kubernetes-int-or-string": True},
            id="integer or string or null",
        ),
        pytest.param(
            {"type": ["string", "integer", "boolean"]}, {"type": "string"}, id="text in any form"
        ),
        pytest.param(
            {"type": ["string", "array"], "items": {"type": "string"}, "minItems": 1},
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
            id="a list of one",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
            id="a mapping of names",
        ),
        pytest.param(
            {"type": "string", "enum": ["a", "b"]},
            {"type": "string", "enum": ["a", "b"]},
            id="choice",
        ),
        pytest.param(
            {"$ref": "#/$defs/Part", "description": "The part.", "default": {"name": "a"}},
            {"description": "The part.", **PART},
            id="reference",
        ),
        pytest.param(
            {"$ref": "#/$defs/Part"}, {"description": "One part.", **PART}, id="its words"
        ),
        pytest.param(
            {"type": "array", "items": {"$ref": "#/$defs/Part"}, "description": "The parts."},
            {"type": "array", "items": PART, "description": "The parts."},
            id="list",
        ),
    ],
)
def test_each_shape_has_one_type(node: dict[str, Any], expected: dict[str, Any]) -> None:
    """A node has a type or is an integer or a string; objects preserve undefined fields."""
    assert structural(node, DEFINED) == expected


def test_an_unquoted_off_is_a_choice() -> None:
    """Kubectl reads it as false, so false is a choice too, and the description explains it."""
    assert structural({"type": "string", "enum": ["on", "off"], "description": "A."}, {}) == {
        "description": "A. `false` means `off`: kubectl reads an unquoted `off` as false.",
        "x-kubernetes-preserve-unknown-fields": True,
        "enum": ["on", "off", False],
    }


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ({"type": "string", "default": "eth0"}, " Defaults to `eth0`."),
        ({"type": "string", "default": ""}, ""),
        ({"type": "boolean", "default": True}, " Defaults to `true`."),
        ({"type": "boolean", "default": False}, " Defaults to `false`."),
        (
            {"type": "array", "items": {"type": "string"}, "default": ["a", "b"]},
            " Defaults to `[a, b]`.",
        ),
        ({"type": "array", "items": {"type": "string"}, "default": []}, ""),
        (
            {"type": "integer", "minimum": 0, "maximum": 9, "default": 1},
            " From 0 to 9. Defaults to `1`.",
        ),
        (
            {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 9}, {"type": "null"}]},
            " From 0 to 9.",
        ),
        ({"type": "integer", "minimum": 0}, ""),
    ],
    ids=[
        *("text", "no text", "true", "false", "list", "empty list"),
        *("range and default", "range of an optional number", "half a range"),
    ],
)
def test_descriptions_name_range_and_default(node: dict[str, Any], words: str) -> None:
    """`kubectl explain` shows neither."""
    assert structural({**node, "description": "A."}, {})["description"] == f"A.{words}"


def test_what_may_be_left_out_may_be_null() -> None:
    """Only a required field and a choice may not."""
    text, choice = {"type": "string"}, {"type": "string", "enum": ["a"]}
    node = {"type": "object", "properties": {"a": text, "b": text, "c": choice}, "required": ["a"]}
    schema = structural(node, {})
    assert schema["properties"] == {"a": text, "b": {**text, "nullable": True}, "c": choice}
    assert schema["required"] == ["a"]
    assert "required" not in structural({**node, "required": []}, {})


def test_what_is_not_described_gets_no_description() -> None:
    """A default alone would be no description."""
    assert "description" not in structural({"type": "string", "default": "a"}, {})
