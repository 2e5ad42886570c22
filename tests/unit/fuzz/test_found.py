"""Every case that the fuzzer ever found keeps all laws, including the one that it broke."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.check import TARGETS, Violation, check
from tests.fuzz.found import FOLDER, keep, kept


def test_what_was_found_is_mended() -> None:
    """A case that once broke a law breaks none now."""
    found = {path.name: check(*kept(path)).violation for path in FOLDER.glob("*.json")}
    assert {name: one for name, one in found.items() if one is not None} == {}


def test_what_is_kept_is_read_as_it_was(tmp_path: Path) -> None:
    """Bytes that are not text, and invalid values, are read back unchanged."""
    parts = {"fabrics": "é", "cluster": [{"kind": "Namespace"}], "body": b"\xff{}", "text": b"{}"}
    path = keep(TARGETS["mutate"], parts, Violation("a_law", "", "message"), tmp_path)
    target, back = kept(path)
    assert (target.name, back) == ("mutate", parts)
