"""No file, public class or public function shares its name with another one."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = tuple(path for top in ("webhook", "certs") for path in (ROOT / top).rglob("*.py"))
#: Modules here are named after the command, endpoint or mutation that they serve, so these names
#: may occur again.
FACES = ("webhook/cli", "webhook/cli/verify", "webhook/app/http", "webhook/mutations")
#: Functions that every module of a table defines.
IN_TABLES = {
    "add_arguments": "webhook/cli/",
    "judge": "webhook/pipeline/verdict/",
    "run": "webhook/cli/",
    "mutate": "webhook/mutations/",
    "read": "webhook/machine/readers/",
    "write": "webhook/preview/formats/",
}


def _place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _modules() -> Iterator[tuple[str, str]]:
    """Yield each file and each package, except those in `FACES`."""
    for path in FILES:
        place = path.parent if path.stem == "__init__" else path
        if path.stem != "__main__" and _place(place.parent) not in FACES:
            yield place.stem, _place(path)


def _defined(kinds: tuple[type[ast.AST], ...]) -> Iterator[tuple[str, str]]:
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            name = getattr(node, "name", "_")
            in_table = _place(path).startswith(IN_TABLES.get(name, "nowhere"))
            if isinstance(node, kinds) and not name.startswith("_") and not in_table:
                yield name, _place(path)


@pytest.mark.parametrize(
    "named",
    [_modules(), _defined((ast.ClassDef,)), _defined((ast.FunctionDef, ast.AsyncFunctionDef))],
    ids=["modules", "classes", "functions"],
)
def test_no_two_things_have_one_name(named: Iterator[tuple[str, str]]) -> None:
    """A search for a name finds one thing, and an import says which thing it is."""
    places = defaultdict(list)
    for name, place in named:
        places[name].append(place)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
