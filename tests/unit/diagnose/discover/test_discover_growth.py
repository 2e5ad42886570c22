"""Twice the nodes are about twice the work, however much they differ from each other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.growth import DOUBLE, lines
from tests.unit.diagnose.discover.seen import discovered, ethernet, gpus, port, seen
from webhook.diagnose.discover.output import discover_form, discover_text
from webhook.diagnose.discover.page import site_page
from webhook.diagnose.discover.plugin.files import plugin_side
from webhook.diagnose.discover.site import DiscoverOptions, SourcedObservation
from webhook.diagnose.discover.svg import picture

Node = Callable[[int], list[SourcedObservation]]

#: What the node of a number shows.
SITES: dict[str, Node] = {
    "equal nodes": lambda _: seen(port("mlx5_0", netdevs=("ib0",)), gpus()),
    "a product each": lambda node: seen(port("mlx5_0", netdevs=("ib0",)), gpus(f"GPU X{node}")),
    "a rate each": lambda node: seen(port("mlx5_0", rate_gbps=float(node + 1)), gpus()),
    "a name each": lambda node: seen(port(f"mlx5_{node}", netdevs=(f"ib{node}",)), gpus()),
    "a firmware each": lambda node: seen(port("mlx5_0", firmware=f"20.{node}.1"), gpus()),
    "a port that is another card on the next node": lambda node: seen(
        port(f"mlx5_{node}"), ethernet(f"mlx5_{node + 1}", device_id=0x1015, rate_gbps=10.0), gpus()
    ),
}


def _everything(node: Node, many: int) -> None:
    found = discovered({f"n{number}": node(number) for number in range(many)})
    discover_text(found, width=120, colour=False)
    discover_form(found)
    plugin_side(found.written, DiscoverOptions())
    picture(found.fabrics)
    site_page(found)


@pytest.mark.parametrize("node", SITES.values(), ids=SITES)
def test_twice_the_nodes_are_at_most_twice_the_lines(node: Node) -> None:
    """Fabrics, reports, pictures and files: a fixed number of lines of code for each node."""
    _everything(node, 2)  # what is made once
    small, large = (lines(partial(_everything, node, many)) for many in (30, 60))
    assert large <= DOUBLE * small
