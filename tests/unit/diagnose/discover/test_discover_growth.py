"""Twice the nodes take about twice the work, even if all of them differ."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import pytest

from tests.growth import MAX_LINES_RATIO, executed_lines
from tests.unit.diagnose.discover.observed_nodes import discovered, ethernet, gpus, observed, port
from webhook.diagnose.discover.output import discover_form, discover_text
from webhook.diagnose.discover.page import site_page
from webhook.diagnose.discover.plugin.files import plugin_files
from webhook.diagnose.discover.site import DiscoverOptions, SourcedObservation
from webhook.diagnose.discover.svg import picture

Node = Callable[[int], list[SourcedObservation]]

#: Kind of site → the observations of the node with a number.
SITES: dict[str, Node] = {
    "equal nodes": lambda _: observed(port("mlx5_0", netdevs=("ib0",)), gpus()),
    "a product each": lambda node: observed(port("mlx5_0", netdevs=("ib0",)), gpus(f"GPU X{node}")),
    "a rate each": lambda node: observed(port("mlx5_0", rate_gbps=float(node + 1)), gpus()),
    "a name each": lambda node: observed(port(f"mlx5_{node}", netdevs=(f"ib{node}",)), gpus()),
    "a firmware each": lambda node: observed(port("mlx5_0", firmware=f"20.{node}.1"), gpus()),
    "a port that is another card on the next node": lambda node: observed(
        port(f"mlx5_{node}"), ethernet(f"mlx5_{node + 1}", device_id=0x1015, rate_gbps=10.0), gpus()
    ),
}


def _everything(node: Node, count: int) -> None:
    discovery = discovered({f"n{number}": node(number) for number in range(count)})
    discover_text(discovery, width=120, color=False)
    discover_form(discovery)
    plugin_files(discovery.accepted_fabrics, DiscoverOptions())
    picture(discovery)
    site_page(discovery, datetime(2026, 11, 29, tzinfo=UTC))


@pytest.mark.parametrize("node", SITES.values(), ids=SITES)
def test_twice_the_nodes_are_at_most_twice_the_lines(node: Node) -> None:
    """Fabrics, reports, pictures and files: a fixed number of lines of code for each node."""
    _everything(node, 2)  # the first call fills caches
    small, large = (executed_lines(partial(_everything, node, count)) for count in (30, 60))
    assert large <= MAX_LINES_RATIO * small
