"""docs/architecture.md draws the floors of the import contracts, and stays a page."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from itertools import accumulate, chain, pairwise
from typing import Any

from tests.generated_pages import DOCS, assert_up_to_date

_PAGE = DOCS / "architecture.md"
_PROJECT = tomllib.loads((DOCS.parent / "pyproject.toml").read_text("utf-8"))
_CONTRACTS: list[dict[str, Any]] = _PROJECT["tool"]["importlinter"]["contracts"]
_WIDTH = 78
#: How a line between two floors continues: (upwards, downwards) → its sign.
_JOINTS = {(False, False): "─", (True, False): "┴", (False, True): "┬", (True, True): "┼"}


def _edges(floor: list[str]) -> list[int]:
    """Return the columns of the walls between the rooms of a floor, the outer ones included."""
    widths = [_WIDTH // len(floor)] * (len(floor) - 1)
    return [0, *accumulate(widths), _WIDTH]


def _rooms(floor: list[str]) -> str:
    cells = zip(floor, pairwise(_edges(floor)), strict=True)
    return "".join("│" + room.center(right - left - 1) for room, (left, right) in cells) + "│"


def _line(above: list[str], below: list[str]) -> str:
    """Draw the line between two floors; `[]` is the outside."""
    up, down = (set(_edges(floor)[1:-1]) if floor else set() for floor in (above, below))
    left, right = "├┤" if above and below else ("┌┐" if below else "└┘")
    inner = "".join(_JOINTS[column in up, column in down] for column in range(1, _WIDTH))
    return f"{left}{inner}{right}"


def _picture(layers: list[str]) -> Iterator[str]:
    floors = [layer.split(" | ") for layer in layers]
    yield _line([], floors[0])
    for floor, below in pairwise([*floors, []]):
        yield _rooms(floor)
        yield _line(floor, below)


def _pictures() -> Iterator[str]:
    """Draw each contract of layers, under the name of its package."""
    for contract in _CONTRACTS:
        if contract["type"] == "layers":
            (package,) = contract["containers"]
            yield f"{package.replace('.', '/')}/"
            yield from _picture(contract["layers"])
            yield ""


def test_the_picture_shows_the_contracts() -> None:
    """The page shows the floors as pyproject.toml defines them: higher floors may import."""
    lines = chain(["```text"], list(_pictures())[:-1], ["```"])
    written = "".join(f"{line}\n" for line in lines)
    assert_up_to_date(_PAGE, "<!-- floors:", "<!-- end of floors -->", written)


def test_a_picture_joins_its_walls() -> None:
    """A wall ends at the line above or below it, or goes through it."""
    drawn = [line.replace(" ", "").replace("─", "") for line in _picture(["a", "b | c", "d | e"])]
    assert drawn == ["┌┐", "│a│", "├┬┤", "│b│c│", "├┼┤", "│d│e│", "└┴┘"]


def test_the_page_is_short() -> None:
    """A map is read in one go: at most 150 lines."""
    assert len(_PAGE.read_text("utf-8").splitlines()) <= 150
