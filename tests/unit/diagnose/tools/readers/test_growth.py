"""The work of reading lspci grows no faster than its output."""

from __future__ import annotations

from functools import partial

import pytest

from tests.growth import executed_lines
from webhook.diagnose.tools.observations import Cut, Line
from webhook.diagnose.tools.readers.pci import read_lspci

#: A card, as -Dn, -nn and plain show it.
CARDS = (
    ("0000:e1:00.0 0207: 15b3:1021",),
    ("e1:00.0 Infiniband controller [0207]: Mellanox Technologies MT2910 [15b3:1021]",),
    (
        "e1:00.0 Infiniband controller: Mellanox Technologies MT2910 [ConnectX-7] (rev 01)",
        "\tLnkSta: Speed 16GT/s (downgraded), Width x16",
    ),
)


def output(card: tuple[str, ...], count: int) -> list[Line]:
    """Return the lines of a node with a number of such cards."""
    return [Line(number, text) for number, text in enumerate(card * count, 1)]


@pytest.mark.parametrize("card", CARDS, ids=["numeric", "both", "plain"])
def test_twice_the_cards_are_twice_the_lines(card: tuple[str, ...]) -> None:
    """Each card is read once, and only the last may be cut off."""
    small, large = (
        executed_lines(partial(read_lspci, output(card, count))) for count in (100, 200)
    )
    assert large <= 2 * small


def test_the_last_card_is_compared_with_those_before_it() -> None:
    """It lacks the link that they have; a card in between that lacks it is not cut off."""
    head, link = CARDS[2]
    lines = output((head, link, head, link, head), 1)
    assert read_lspci(lines).cuts == (Cut("lspci", 5, "e1:00.0"),)
    assert read_lspci(lines[:4]).cuts == ()
    unlike = output((head, link, head, head, link, head), 1)
    assert read_lspci(unlike).cuts == ()
    assert len(read_lspci(unlike).observations) == 4
    assert read_lspci([]).cuts == ()
