"""Every earlier finding of the fuzzer now keeps all laws, including the law that it broke."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.check import TARGETS, Violation, check
from tests.fuzz.found import FOLDER, keep, stored_case


def test_earlier_findings_stay_fixed() -> None:
    """A case that once broke a law does not break any now."""
    violations = {path.name: check(*stored_case(path)).violation for path in FOLDER.glob("*.json")}
    assert {
        name: violation for name, violation in violations.items() if violation is not None
    } == {}


def test_a_stored_case_is_read_back_unchanged(tmp_path: Path) -> None:
    """Bytes that are not text, and invalid values, are read back unchanged."""
    parts = {"fabrics": "é", "cluster": [{"kind": "Namespace"}], "body": b"\xff{}", "text": b"{}"}
    path = keep(TARGETS["mutate"], parts, Violation("a_law", "", "message"), tmp_path)
    target, back = stored_case(path)
    assert (target.name, back) == ("mutate", parts)
