"""The rows of the tables, with as many digits as show on which side of the goal a figure is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

NO_GOAL = "none set"


class Row(NamedTuple):
    """One line of the table."""

    title: str
    measured: str
    goal: str = NO_GOAL
    met: bool = True


def figure_text(figure: float, goal: float, decimals: int = 2) -> str:
    """Write a figure with these decimals, or with more if it would otherwise read as the goal."""
    text = f"{figure:.{decimals}f}"
    while float(text) == goal != figure:
        decimals += 1
        text = f"{figure:.{decimals}f}"
    return text


def print_rows(rows: Iterable[Row]) -> None:
    """Print a table in Markdown."""
    print("| what | measured | goal | met |\n|---|---|---|---|")
    for row in rows:
        met = "" if row.goal == NO_GOAL else "yes" if row.met else "NO"
        print(f"| {row.title} | {row.measured} | {row.goal} | {met} |")
