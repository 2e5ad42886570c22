"""The figures in the tables of the benchmarks."""

from __future__ import annotations

import pytest

from tests.benchmarks.figures import figure_text


@pytest.mark.parametrize(
    ("figure", "goal", "decimals", "text"),
    [
        (1.049, 1.2, 2, "1.05"),
        (1.2345, 1.1, 2, "1.23"),
        (1.0512, 1.05, 2, "1.051"),
        (1.0488, 1.05, 2, "1.049"),
        (2.00004, 2, 2, "2.00004"),
        (2.0, 2, 2, "2.00"),
        (120.4, 120, 0, "120.4"),
        (84.4, 120, 0, "84"),
        (1.96, 2, 1, "1.96"),
    ],
)
def test_a_figure_shows_on_which_side_of_its_goal_it_is(
    figure: float, goal: float, decimals: int, text: str
) -> None:
    """One that would read as the goal gets more digits, unless it is exactly the goal."""
    assert figure_text(figure, goal, decimals) == text


def test_ratios_have_two_decimals() -> None:
    """Most rows of the tables are ratios."""
    assert figure_text(1.0, 1.2) == "1.00"
