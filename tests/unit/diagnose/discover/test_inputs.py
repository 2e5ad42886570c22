"""The inputs of `discover`, by node."""

from __future__ import annotations

from webhook.diagnose.discover.inputs import NodeText, read_texts
from webhook.diagnose.discover.site import SourcedObservation
from webhook.diagnose.tools.observations import Origin, PortObservation


def test_partly_understood_lines_are_evidence() -> None:
    """A line with an unknown state still shows a port, so the input is not a problem."""
    inputs = read_texts([NodeText("a.txt", "a", "mlx5_0 port 1 ==> ib0 (Weird)\n")])
    port = PortObservation(Origin("ibdev2netdev", 1), device="mlx5_0", port=1, netdevs=("ib0",))
    assert inputs.nodes == {"a": [SourcedObservation("a.txt", port)]}
    assert inputs.problems == ()
