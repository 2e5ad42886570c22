"""What a run over a fabric's nodes found, pair by pair: records, whatever shows them."""

from __future__ import annotations

from typing import NamedTuple

from webhook.diagnose.verify.results import Assessment, Judgement, Remark


class NodePair(NamedTuple):
    """Two nodes that measure; data goes from the client to the server."""

    client: str
    server: str


class PairResult(NamedTuple):
    """What came of a pair."""

    pair: NodePair
    #: One for each device and test; where nothing was measured, one that says why.
    judgements: tuple[Judgement, ...]


class RunReport(NamedTuple):
    """A run, whole or interrupted."""

    #: The name of the run: the value of the label on all that it created.
    name: str
    fabric: str
    image: str
    #: The nodes that took part, in the order of rows and columns.
    nodes: tuple[str, ...]
    results: tuple[PairResult, ...]
    #: What concerns the whole run.
    remarks: tuple[Remark, ...] = ()

    @property
    def assessment(self) -> Assessment:
        """All that was judged; it has at least one judgement or remark."""
        judged = tuple(one for result in self.results for one in result.judgements)
        return Assessment(judged, self.remarks)
