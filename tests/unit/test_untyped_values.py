"""A value without a type has a name that says what it is: `Json` in webhook, `Object` in certs."""

from __future__ import annotations

import ast
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_FILES = [file for top in ("webhook", "certs") for file in sorted((_ROOT / top).rglob("*.py"))]


def _names_any(file: Path) -> bool:
    """Whether a file imports `Any`, or has it as `typing.Any`."""
    return any(
        (isinstance(node, ast.alias) and node.name == "Any")
        or (isinstance(node, ast.Attribute) and node.attr == "Any")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    )


def test_any_stands_where_it_has_a_name() -> None:
    """Elsewhere, a value that is not checked has one of those names, or it is an `object`."""
    naming = [str(file.relative_to(_ROOT)) for file in _FILES if _names_any(file)]
    assert naming == ["webhook/model/json.py", "certs/installation.py"]
