"""The names of parametrized cases describe the case."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.builders import V100, gpu, pod
from tests.case_names import case_name

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("", '""'),
        ({"env": None, "args": ["-x"]}, "{env:None,args:[-x]}"),
        ({"rdma/b", "rdma/a"}, "[rdma/a,rdma/b]"),
        (-(10**100), "-2^333"),
        (V100, "v100-ib"),
        (pod(gpu(), hostNetwork=True), None),
        ("x" * 121, "x" * 40 + "..." + "x" * 80),
        ("é\t\\", "U+00E9U+0009U+005C"),
    ],
    ids=["nothing", "mapping", "set", "number", "fabric", "pod", "long", "escaped"],
)
def test_a_name_is_short_and_the_same_everywhere(value: Any, name: str | None) -> None:
    """Sets are sorted, since their order varies by process; pods lose what all have in common."""
    usual = "{containers:[{resources:{limits:{nvidia.com/v100:1}}}],hostNetwork:True}"
    assert case_name(value) == (name or usual)


def test_what_a_pod_asks_for_comes_first() -> None:
    """Annotations come first: most cases differ in them. The one that all pods have is omitted."""
    asked = case_name(pod(annotations={"rdma.lab/skip": "env"}))
    assert asked.startswith("{rdma.lab/skip:env} {containers:")


def test_no_case_is_named_by_its_number() -> None:
    """A failure named `[3]` makes its reader count lines."""
    numbered = re.compile(r"\bids=range\(")
    for file in TESTS.rglob("test_*.py"):
        if file != Path(__file__):
            assert not numbered.search(file.read_text(encoding="utf-8")), file
