"""Values without a type have the type name `Json` in webhook, and `Object` in certs."""

from __future__ import annotations

import ast
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_FILES = [file for top in ("webhook", "certs") for file in sorted((_ROOT / top).rglob("*.py"))]


def _names_any(file: Path) -> bool:
    """Return whether a file imports `Any`, or uses `typing.Any`."""
    return any(
        (isinstance(node, ast.alias) and node.name == "Any")
        or (isinstance(node, ast.Attribute) and node.attr == "Any")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    )


def test_any_is_used_only_where_it_has_a_name() -> None:
    """Elsewhere, unchecked values have one of those names, or the type `object`."""
    naming = [str(file.relative_to(_ROOT)) for file in _FILES if _names_any(file)]
    assert naming == ["webhook/model/json.py", "certs/installation.py"]
