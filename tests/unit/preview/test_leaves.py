from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.case_names import case_name
from webhook.preview.comparison import Leaf, differing

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
        ({"a": 1}, {"a": 2}, [Leaf("a", "1", "2")]),
        ({"a": "1"}, {}, [Leaf("a", "1", None)]),
        ({}, {"a": {"b": True}}, [Leaf("a.b", None, "true")]),
        ({"a": []}, {"a": ["x"]}, [Leaf("a", "[]", '["x"]')]),
        (
            {"x": {"rdma/a": "1"}},
            {"x": {"rdma/b": "1"}},
            [Leaf("x[rdma/b]", None, "1"), Leaf("x[rdma/a]", "1", None)],
        ),
        (
            {"env": named(A="1", B="2")},
            {"env": named(B="2", A="3")},
            [Leaf("env[A].value", "1", "3")],
        ),
        (
            {"c": [{"name": "a"}]},
            {"c": [{"name": "a"}, {"name": "b"}]},
            [Leaf("c[b].name", None, "b")],
        ),
        (
            {"c": named(A="1") * 2},
            {"c": []},
            [Leaf("c", '[{"name":"A","value":"1"},{"name":"A","value":"1"}]', "[]")],
        ),
    ],
    ids=case_name,
)
def test_leaves_that_differ(before: Any, after: Any, expected: list[Leaf]) -> None:
    """Items with names are compared by name, in any order."""
    assert differing(before, after) == expected


@given(JSON, JSON)
def test_only_equal_values_have_no_difference(before: Any, after: Any) -> None:
    """The exceptions are the order of named items, and values with the same text."""
    assert differing(before, before) == []
    leaves = differing({"a": before}, {"b": after})
    assert {leaf.place[0] for leaf in leaves} == {"a", "b"}
