"""Which nodes measure with which, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.diagnose.verify.runs.plan import Round, all_pair_rounds, ring_rounds

NODES = st.lists(st.text("abc012", min_size=1, max_size=5), min_size=2, max_size=40, unique=True)


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (ring_rounds, {2: ["a>b"], 3: ["a>b", "b>c", "c>a"], 4: ["a>b c>d", "b>c d>a"]}),
        (
            all_pair_rounds,
            {2: ["a>b"], 3: ["b>c", "a>c", "a>b"], 4: ["a>d b>c", "a>c b>d", "a>b c>d"]},
        ),
    ],
    ids=["ring", "all pairs"],
)
def test_few_nodes(pair: Callable[[list[str]], list[Round]], said: dict[int, list[str]]) -> None:
    """The rounds of two, three and four nodes; > is the direction of the data."""
    for count, rounds in said.items():
        found = pair(list("abcd"[:count]))
        shown = [" ".join(sorted(f"{one}>{other}" for one, other in each)) for each in found]
        assert sorted(shown) == sorted(rounds)


@pytest.mark.parametrize("pair", [ring_rounds, all_pair_rounds], ids=["ring", "all pairs"])
@given(nodes=NODES)
def test_nobody_is_in_two_pairs_at_a_time(
    pair: Callable[[list[str]], list[Round]], nodes: list[str]
) -> None:
    """A node is in one pair of a round at most, and no round is empty."""
    for each in pair(nodes):
        assert each
        assert max(Counter(node for one in each for node in one).values()) == 1


@given(NODES)
def test_a_ring(nodes: list[str]) -> None:
    """Each node sends once and receives once, in at most three rounds; two nodes are one pair."""
    rounds = ring_rounds(nodes)
    pairs = [one for each in rounds for one in each]
    if len(nodes) == 2:
        assert pairs == [(nodes[0], nodes[1])]
        return
    assert Counter(one.client for one in pairs) == Counter(nodes)
    assert dict(pairs) == dict(zip(nodes, [*nodes[1:], nodes[0]], strict=True))
    assert len(rounds) == 2 + len(nodes) % 2


@given(NODES)
def test_all_pairs(nodes: list[str]) -> None:
    """Each unordered pair is there once, in as few rounds as possible."""
    rounds = all_pair_rounds(nodes)
    pairs = [one for each in rounds for one in each]
    wanted = {(one, other) for place, one in enumerate(nodes) for other in nodes[place + 1 :]}
    assert set(pairs) == wanted
    assert len(pairs) == len(wanted)
    assert len(rounds) == len(nodes) - 1 + len(nodes) % 2
