"""docs/security.md names the tests that prove its claims, and each of these tests exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_NAMED = sorted(
    set(re.findall(r"`(tests/\S+\.py)(?:::(\w+))?`", (_ROOT / "docs/security.md").read_text()))
)


@pytest.mark.parametrize(("file", "test"), _NAMED, ids=["::".join(names) for names in _NAMED])
def test_exists(file: str, test: str) -> None:
    """If a test is renamed, the page no longer has a proof for its claim."""
    assert re.search(rf"^def {test or 'test_'}", (_ROOT / file).read_text(), re.MULTILINE)


def test_there_are_some() -> None:
    """The pattern above still finds the names of tests."""
    assert len(_NAMED) > 15
