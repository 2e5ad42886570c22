"""The nodes of a run: a note lists the nodes that cannot measure."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.diagnose.verify.runs.plans import FABRIC
from webhook.cli.verify.selection import chosen_nodes, require_verbs
from webhook.errors import DocumentError
from webhook.kube.api import Query
from webhook.model.fabric import Transport, build_configuration

CONFIGURATION = build_configuration((FABRIC,))


class Nodes:
    """An API server with this number of nodes, which are not ready."""

    def __init__(self, count: int) -> None:
        self._items = [
            {"metadata": {"name": f"n{at:02}"}, "status": {"allocatable": {"nvidia.com/v100": "8"}}}
            for at in range(count)
        ]

    def get(self, path: str, query: Query) -> dict[str, Any]:
        """Return the list of nodes."""
        assert (path, "watch" in query) == ("/api/v1/nodes", False)
        return {"metadata": {"resourceVersion": "1"}, "items": self._items}


@pytest.mark.parametrize(
    ("count", "end"), [(8, ""), (9, "; and 1 more node"), (10, "; and 2 more nodes")]
)
def test_many_unfit_nodes_are_counted(
    capsys: pytest.CaptureFixture[str], count: int, end: str
) -> None:
    """Eight are listed with their obstacle."""
    with pytest.raises(
        DocumentError, match="fabric v100-ib has no node that can run the benchmark"
    ):
        chosen_nodes((), FABRIC, CONFIGURATION, Nodes(count))
    note = capsys.readouterr().err
    assert note.endswith(f"n07 is not ready{end}\n")


def test_a_mistyped_node_is_compared_with_all(capsys: pytest.CaptureFixture[str]) -> None:
    """In a large cluster, only the ends of the names differ."""
    with pytest.raises(DocumentError, match=r"'n0299' does not exist \(did you mean n299\?\)"):
        chosen_nodes(["n0299"], FABRIC, CONFIGURATION, Nodes(300))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("transport", ["verbs", "gib"])
def test_perftest_needs_verbs(transport: Transport) -> None:
    """Behind the plugin for libfabric, as on EFA, perftest has no device; other tools have."""
    require_verbs(replace(FABRIC, transport=transport))
    message = (
        f"fabric {FABRIC.name} is reached through libfabric, and perftest needs verbs; run "
        f"fi_pingpong between two pods, or `rdma-webhook verify nccl --fabric {FABRIC.name}` with "
        "an image that contains NCCL's plugin aws-ofi-nccl"
    )
    with pytest.raises(DocumentError, match=re.escape(message)):
        require_verbs(replace(FABRIC, transport="libfabric"))
