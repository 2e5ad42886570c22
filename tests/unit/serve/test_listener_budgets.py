"""The memory budgets of the listeners."""

from __future__ import annotations

import pytest

from webhook.serve import listener
from webhook.serve.listener import LIMITS, budgets


def test_the_page_adds_no_memory() -> None:
    """It counts against the budget of /preview, whose application it is; the others have theirs."""
    of = budgets()
    assert set(of) == {*LIMITS, "page"}
    assert of["page"] is of["preview"]
    assert len({id(budget) for budget in of.values()}) == len(LIMITS)


@pytest.mark.parametrize(("descriptors", "connections"), [(1 << 20, None), (400, 100)])
def test_few_descriptors_leave_fewer_connections(
    descriptors: int, connections: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the three listeners gets a third of the files that the process may open."""
    monkeypatch.setattr(listener, "max_descriptors", lambda: descriptors)
    for name, limits in LIMITS.items():
        cost = budgets()[name].limits.connection
        assert cost == (limits.in_all // connections if connections else limits.connection)
