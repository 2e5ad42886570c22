"""The docstring of each package leads a reader to a file that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_ROOMS = {
    str(file.parent.relative_to(_ROOT)): ast.parse(file.read_text("utf-8"))
    for top in ("webhook", "certs")
    for file in sorted((_ROOT / top).rglob("__init__.py"))
}
#: Rooms without code in `__init__`, whose first module to read is another file.
_FOLDERS = [room for room, tree in _ROOMS.items() if len(tree.body) == 1]


@pytest.mark.parametrize("room", _ROOMS)
def test_a_room_describes_its_content(room: str) -> None:
    """The docstring has a sentence on the room, and one or more on its content."""
    summary, _, details = (ast.get_docstring(_ROOMS[room]) or "").partition("\n\n")
    assert summary
    assert details


@pytest.mark.parametrize("room", _FOLDERS)
def test_a_room_names_the_first_module_to_read(room: str) -> None:
    """The docstring ends with the modules to read first."""
    docstring = ast.get_docstring(_ROOMS[room]) or ""
    assert re.search(r"Start\swith\s`[\w.]+`(, then `[\w.]+`)?\.$", docstring)


@pytest.mark.parametrize("room", _FOLDERS)
def test_a_room_names_existing_modules(room: str) -> None:
    """A lower-case name in the docstring is a module, a package or a script."""
    for name in re.findall(r"`([a-z_.]+)`", ast.get_docstring(_ROOMS[room]) or ""):
        path = name.replace(".", "/")
        places = (_ROOT / room / name, _ROOT / room / path, _ROOT / path)
        assert any(place.exists() or place.with_suffix(".py").is_file() for place in places), name
