"""Which nodes measure with which, in rounds: in a round, a node is in one pair at most.

A node that is in two pairs at a time would share its links between them.
"""

from __future__ import annotations

from collections.abc import Sequence

from webhook.diagnose.verify.run_report import NodePair

#: Pairs that measure at the same time.
Round = tuple[NodePair, ...]


def ring_rounds(nodes: Sequence[str]) -> list[Round]:
    """Pair each node with the next one, and the last one with the first: two or three rounds.

    Every node sends and receives. Two nodes are one pair.
    """
    after = [*nodes[1:], nodes[0]]
    pairs = [NodePair(client, server) for client, server in zip(nodes, after, strict=True)]
    if len(nodes) == 2:  # noqa: PLR2004 -- a pair
        return [(pairs[0],)]
    even, odd = tuple(pairs[::2]), tuple(pairs[1::2])
    if len(nodes) % 2:
        # The last pair ends where the first one begins.
        return [even[:-1], odd, even[-1:]]
    return [even, odd]


def all_pair_rounds(nodes: Sequence[str]) -> list[Round]:
    """Pair each node with every other one, once.

    By the circle method of round-robin tournaments: one node stays, the others move on by one seat,
    so that n nodes need n - 1 rounds, or n if their number is odd.
    """
    seats: list[int | None] = [*range(len(nodes)), *([None] if len(nodes) % 2 else [])]
    rounds: list[Round] = []
    for _ in range(len(seats) - 1):
        half = len(seats) // 2
        facing = zip(seats[:half], reversed(seats[half:]), strict=True)
        pairs = [
            sorted((one, other)) for one, other in facing if one is not None and other is not None
        ]
        rounds.append(tuple(NodePair(nodes[client], nodes[server]) for client, server in pairs))
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return rounds
