"""The figures of the tables, with as many digits as show on which side of the goal they are."""

from __future__ import annotations


def figure_text(figure: float, goal: float, decimals: int = 2) -> str:
    """Write a figure with these decimals, or with more if it would otherwise read as the goal."""
    text = f"{figure:.{decimals}f}"
    while float(text) == goal != figure:
        decimals += 1
        text = f"{figure:.{decimals}f}"
    return text
