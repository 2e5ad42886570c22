"""The pairs of nodes, and their rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.diagnose.verify.runs.plan import Round, all_pair_rounds, ring_rounds

NODES = st.lists(st.text("abc012", min_size=1, max_size=5), min_size=2, max_size=40, unique=True)


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (ring_rounds, {2: ["a>b"], 3: ["a>b", "b>c", "c>a"], 4: ["a>b c>d", "b>c d>a"]}),
        (
            all_pair_rounds,
            {2: ["a>b"], 3: ["b>c", "a>c", "a>b"], 4: ["a>d b>c", "a>c b>d", "a>b c>d"]},
        ),
    ],
    ids=["ring", "all pairs"],
)
def test_few_nodes(
    pair: Callable[[list[str]], list[Round]], expected: dict[int, list[str]]
) -> None:
    """The rounds of two, three and four nodes; > is the direction of the data."""
    for count, rounds in expected.items():
        measured_rounds = pair(list("abcd"[:count]))
        round_texts = [
            " ".join(sorted(f"{client}>{server}" for client, server in pairs))
            for pairs in measured_rounds
        ]
        assert sorted(round_texts) == sorted(rounds)


@pytest.mark.parametrize("pair", [ring_rounds, all_pair_rounds], ids=["ring", "all pairs"])
@given(nodes=NODES)
def test_nobody_is_in_two_pairs_at_a_time(
    pair: Callable[[list[str]], list[Round]], nodes: list[str]
) -> None:
    """A node is in at most one pair of a round, and no round is empty."""
    for round_pairs in pair(nodes):
        assert round_pairs
        assert max(Counter(node for node_pair in round_pairs for node in node_pair).values()) == 1


@given(NODES)
def test_a_ring(nodes: list[str]) -> None:
    """Each node sends and receives once, in at most three rounds; two nodes are a single pair."""
    rounds = ring_rounds(nodes)
    pairs = [node_pair for round_pairs in rounds for node_pair in round_pairs]
    if len(nodes) == 2:
        assert pairs == [(nodes[0], nodes[1])]
        return
    assert Counter(node_pair.client for node_pair in pairs) == Counter(nodes)
    assert dict(pairs) == dict(zip(nodes, [*nodes[1:], nodes[0]], strict=True))
    assert len(rounds) == 2 + len(nodes) % 2


@given(NODES)
def test_all_pairs(nodes: list[str]) -> None:
    """Each unordered pair occurs once, in as few rounds as possible."""
    rounds = all_pair_rounds(nodes)
    pairs = [node_pair for round_pairs in rounds for node_pair in round_pairs]
    expected = {(node, later) for index, node in enumerate(nodes) for later in nodes[index + 1 :]}
    assert set(pairs) == expected
    assert len(pairs) == len(expected)
    assert len(rounds) == len(nodes) - 1 + len(nodes) % 2
