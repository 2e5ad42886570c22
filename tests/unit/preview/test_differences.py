from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.case_names import case_name
from webhook.preview.comparison import Difference, differences_between

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


def named(**values: str) -> list[dict[str, str]]:
    """Write a list of variables."""
    return [{"name": name, "value": value} for name, value in values.items()]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 2}, [Difference("a", "1", "2")]),
        ({"a": "1"}, {}, [Difference("a", "1", None)]),
        ({}, {"a": {"b": True}}, [Difference("a.b", None, "true")]),
        ({"a": []}, {"a": ["x"]}, [Difference("a", "[]", '["x"]')]),
        (
            {"x": {"rdma/a": "1"}},
            {"x": {"rdma/b": "1"}},
            [Difference("x[rdma/b]", None, "1"), Difference("x[rdma/a]", "1", None)],
        ),
        (
            {"env": named(A="1", B="2")},
            {"env": named(B="2", A="3")},
            [Difference("env[A].value", "1", "3")],
        ),
        (
            {"c": [{"name": "a"}]},
            {"c": [{"name": "a"}, {"name": "b"}]},
            [Difference("c[b].name", None, "b")],
        ),
        (
            {"c": named(A="1") * 2},
            {"c": []},
            [Difference("c", '[{"name":"A","value":"1"},{"name":"A","value":"1"}]', "[]")],
        ),
    ],
    ids=case_name,
)
def test_values_that_differ(before: Any, after: Any, expected: list[Difference]) -> None:
    """Items with names are compared by name, in any order."""
    assert differences_between(before, after) == expected


@given(JSON, JSON)
def test_only_equal_values_have_no_difference(before: Any, after: Any) -> None:
    """The exceptions are the order of named items, and values with the same text."""
    assert differences_between(before, before) == []
    differences = differences_between({"a": before}, {"b": after})
    assert {difference.path[0] for difference in differences} == {"a", "b"}
