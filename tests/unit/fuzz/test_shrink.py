"""A finding is shrunk, and still breaks its law."""

from __future__ import annotations

import json
from typing import Any

from tests.fuzz.shrink import shrunk


def test_json_is_shrunk_to_what_matters() -> None:
    """Only the part of a review that breaks the law remains, with minimal words and lists."""
    body = {"a": [1, 2, {"x": "mmmpirun", "y": None}], "b": {"c": "d"}}
    parts = {"body": json.dumps(body).encode(), "cluster": [{"kind": "Node"}]}

    def breaks(small: dict[str, Any]) -> bool:
        return b"mpi" in small["body"] and json.loads(small["body"])["a"] is not None

    small = shrunk(parts, breaks)
    assert json.loads(small["body"]) == {"a": [{"x": "mpi"}]}
    assert small["cluster"] == []


def test_other_bytes_are_shrunk_as_bytes() -> None:
    """Text is shrunk by lines and letters, and other bytes one by one."""
    assert shrunk({"body": b"{x\ny\nzz"}, lambda small: b"y" in small["body"]) == {"body": b"y"}
    assert shrunk({"body": b"\xff\x00\xfe"}, lambda small: b"\x00" in small["body"]) == {
        "body": b"\x00"
    }


def test_shrinking_ends() -> None:
    """When the time is over, the smallest case so far is returned, even the first."""
    parts = {"text": "x" * 100_000}
    assert shrunk(parts, lambda _: True, seconds=-1) == parts
