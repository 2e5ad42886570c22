"""Tests of the values of nodeSelector that the API server accepts."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.model.pod.node_selection import node_selector_problems

FORM = "(at most 63 letters, digits, -, _ and ., with a letter or digit at either end)"
INVALID_VALUES = ("node1 //one", "-a", "a.", "x" * 64, "é", "a\n")


@pytest.mark.parametrize("value", ["", None, "a", "A-1_b.2", "x" * 63])
def test_a_valid_value(value: Any) -> None:
    """It may be empty, and null is."""
    assert node_selector_problems({"pool": value}) == []


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        *((value, f": {value!r} is not the value of a label {FORM}") for value in INVALID_VALUES),
        (True, " must be a string, but is a boolean (True)"),
        ("${X}", ": '${X}' is an unexpanded variable (run envsubst first)"),
    ],
)
def test_an_invalid_value(value: Any, problem: str) -> None:
    """The API server rejects the pod. YAML reads an unquoted true as a boolean."""
    selector = {"a": "b", "pool": value}
    assert node_selector_problems(selector) == [f"spec.nodeSelector.pool{problem}"]
