"""What is to be said of the cells that do not pass: equal things once."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from webhook.diagnose.verify.matrix import PairMatrix, pair_words
from webhook.diagnose.verify.output import title_of
from webhook.diagnose.verify.results import WORTHS, Judgement, Worth
from webhook.diagnose.verify.run_report import NodePair


class SaidOfPairs(NamedTuple):
    """A sentence, what was tested, and the pairs of which it is said."""

    because: str
    #: The test and its device; "" if nothing is known of a test.
    tested: str
    #: As often as it was said of each.
    pairs: tuple[NodePair, ...]

    @property
    def names(self) -> list[str]:
        """The pairs in words, each once."""
        return [pair_words(pair) for pair in dict.fromkeys(self.pairs)]


class Complaint(NamedTuple):
    """All judgements with one verdict, code and remedy."""

    verdict: Worth
    code: str
    remedy: str
    #: The lowest number first.
    said: tuple[SaidOfPairs, ...]


def complaints(matrix: PairMatrix) -> tuple[Complaint, ...]:
    """Return what does not pass, the worst first."""
    found: dict[tuple[Worth, str, str], list[tuple[NodePair, Judgement]]] = defaultdict(list)
    for pair, cell in matrix.cells.items():
        for one in cell.judgements:
            if one.verdict != "pass":
                found[one.verdict, one.code, one.remedy].append((pair, one))
    ordered = sorted(found.items(), key=lambda item: -WORTHS.index(item[0][0]))
    return tuple(Complaint(*key, _said(judged)) for key, judged in ordered)


def _said(judged: list[tuple[NodePair, Judgement]]) -> tuple[SaidOfPairs, ...]:
    pairs: dict[tuple[str, str], list[NodePair]] = defaultdict(list)
    for pair, one in sorted(judged, key=lambda item: _lowest(item[1])):
        tested = title_of(one.measurement) if one.measurement else ""
        pairs[one.because, tested].append(pair)
    return tuple(SaidOfPairs(*key, tuple(several)) for key, several in pairs.items())


def _lowest(one: Judgement) -> tuple[bool, float]:
    return one.gbps is None, one.gbps or 0.0
