"""A run as one page, complete in itself: the matrix as a heat map; no script, no other file.

A cell has a sign and a number beside its color, and links to what is said of it; the text that a
pointer brings up has the reason and the remedy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from webhook.diagnose.verify.fault_localization import localize_faults
from webhook.diagnose.verify.matrix import (
    Cells,
    FindingGroup,
    MatrixCell,
    SaidOfPairs,
    group_findings,
    is_dense,
    pair_matrix,
    pair_words,
    shortened_list,
)
from webhook.diagnose.verify.output import SIGNS, Sayable
from webhook.diagnose.verify.results import WORTHS, BenchmarkResult, NodePair, RunReport, Worth
from webhook.text.escape import visible

_STYLE = Path(__file__).with_name("matrix_page.css")
_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
"""
#: Nodes whose names still stand side by side above their columns.
_SIDE_BY_SIDE = 8
#: Sentences of one code, and pairs of one sentence, that are written out.
_MOST_SENTENCES = 30
_MOST_PAIRS = 12


def matrix_page(report: RunReport) -> str:
    """Return the page."""
    return "".join(_Page(report).parts())


class _Page:
    """The parts of a page; cells link to the complaint that their judgement is part of."""

    def __init__(self, report: RunReport) -> None:
        self._report = report
        self._matrix = pair_matrix(report)
        self._complaints = group_findings(self._matrix)
        self._marks = {
            (one.verdict, one.code, one.remedy): f"c{at}"
            for at, one in enumerate(self._complaints, 1)
        }

    def parts(self) -> Iterator[str]:
        """Yield the page from its head to its end."""
        yield f"{_HEAD}<title>{_said(self._report.name)}: {_said(self._report.fabric)}</title>\n"
        yield f"<style>\n{_STYLE.read_text(encoding='utf-8')}</style>\n"
        yield from self._summary()
        yield from _first([*localize_faults(self._matrix), *self._report.remarks])
        yield from self._tables()
        if self._complaints:
            yield "<h2>What does not pass</h2>\n"
        for one in self._complaints:
            yield from _complaint(one, self._marks[one.verdict, one.code, one.remedy])

    def _summary(self) -> Iterator[str]:
        report, matrix, assessment = self._report, self._matrix, self._report.assessment
        worst = assessment.worst
        counted = Counter(one.verdict for one in assessment.everything)
        tally = ", ".join(f"{counted[one]} {one}" for one in WORTHS if counted[one])
        yield f'<h1 class="{worst.verdict}">{_sign(worst.verdict)} {_said(report.fabric)}: '
        yield f"{worst.verdict} ({_said(worst.code)})</h1>\n<dl>\n"
        expected = dict.fromkeys(
            f"{one.expected:g} Gb/s: {one.source}"
            for one in assessment.judgements
            if one.expected is not None
        )
        facts = {
            "Run": report.name,
            "Nodes": str(len(matrix.nodes)),
            "Pairs": str(len(matrix.cells)),
            "Results": tally,
            "Image": report.image,
            "Expected": "; ".join(expected),
        }
        for name, value in facts.items():
            if value:
                yield f"<dt>{name}</dt><dd>{_said(value)}</dd>\n"
        yield "</dl>\n"

    def _tables(self) -> Iterator[str]:
        matrix = self._matrix
        if not matrix.cells:
            return
        if not is_dense(matrix):
            yield from self._list()
            return
        columns = matrix.columns
        if len(columns) > 1:
            yield from self._table("All devices, the worst of each pair", matrix.cells)
        for column, cells in columns.items():
            yield from self._table(column.title, cells)

    def _table(self, title: str, cells: Cells) -> Iterator[str]:
        """Yield a heat map: a row for each client, a column for each server."""
        nodes = self._matrix.nodes
        many = ' class="many"' if len(nodes) > _SIDE_BY_SIDE else ""
        yield f'<h2>{_said(title)}</h2>\n<div class="scroll"><table{many}>\n'
        yield "<caption>Gb/s; a row sends to the columns</caption>\n"
        yield "<thead><tr><td></td>"
        for at, node in enumerate(nodes, 1):
            yield f'<th scope="col" title="{_said(node)}"><span>{at} {_said(node)}</span></th>'
        yield "</tr></thead>\n<tbody>\n"
        for at, client in enumerate(nodes, 1):
            yield f'<tr><th scope="row" title="{_said(client)}">{at} {_said(client)}</th>'
            for server in nodes:
                yield self._cell(cells.get(NodePair(client, server)), same=client == server)
            yield "</tr>\n"
        yield "</tbody></table></div>\n"

    def _list(self) -> Iterator[str]:
        """Yield a table with a row for each pair, and a column for each device."""
        columns = self._matrix.columns
        yield '<h2>Pairs</h2>\n<div class="scroll"><table>\n'
        yield "<caption>Gb/s</caption>\n"
        yield '<thead><tr><th scope="col">client</th><th scope="col">server</th>'
        yield "".join(f'<th scope="col">{_said(column.title)}</th>' for column in columns)
        yield "</tr></thead>\n<tbody>\n"
        for pair in self._matrix.cells:
            yield f'<tr><th scope="row">{_said(pair.client)}</th>'
            yield f'<th scope="row">{_said(pair.server)}</th>'
            yield "".join(self._cell(cells.get(pair)) for cells in columns.values())
            yield "</tr>\n"
        yield "</tbody></table></div>\n"

    def _cell(self, cell: MatrixCell | None, *, same: bool = False) -> str:
        if cell is None:
            return '<td class="same"></td>' if same else '<td class="none">·</td>'
        worst = cell.worst
        tip = f"{pair_words(cell.pair)}: {worst.because} {worst.remedy}".rstrip()
        shown = f"{_sign(worst.verdict)} {cell.number}".rstrip()
        mark = self._marks.get((worst.verdict, worst.code, worst.remedy))
        linked = f'<a href="#{mark}">{shown}</a>' if mark else shown
        return f'<td class="{worst.verdict} t{_tenths(worst)}" title="{_said(tip)}">{linked}</td>'


def _said(words: str) -> str:
    return escape(visible(words))


def _sign(verdict: Worth) -> str:
    """Return the sign of a verdict, and the verdict itself for those who cannot see it."""
    return f'<span aria-hidden="true">{SIGNS[verdict].words}</span><i>{verdict}</i>'


def _tenths(one: BenchmarkResult) -> int:
    """Return how many tenths of what is expected were reached: 0 to 10."""
    if one.verdict == "pass":
        return 10
    if one.gbps is None or not one.expected:
        return 0
    return max(0, min(10, int(10 * one.gbps / one.expected)))


def _first(found: Sequence[Sayable]) -> Iterator[str]:
    if not found:
        return
    yield '<h2>What to look at first</h2>\n<ul class="findings">\n'
    for one in found:
        remedy = f'<br><span class="remedy">{_said(one.remedy)}</span>' if one.remedy else ""
        yield f'<li class="{one.verdict}">{_sign(one.verdict)} {_said(one.because)}{remedy}</li>\n'
    yield "</ul>\n"


def _complaint(one: FindingGroup, mark: str) -> Iterator[str]:
    yield f'<section id="{mark}" class="{one.verdict}">\n'
    yield f"<h3>{_sign(one.verdict)} {_said(one.code)}</h3>\n<ul>\n"
    yield from map(_sentence, one.said[:_MOST_SENTENCES])
    more = sum(len(said.pairs) for said in one.said[_MOST_SENTENCES:])
    if more:
        yield f"<li>and {more} more, in the tables above</li>\n"
    yield "</ul>\n"
    if one.remedy:
        yield f'<p class="remedy">{_said(one.remedy)}</p>\n'
    yield "</section>\n"


def _sentence(said: SaidOfPairs) -> str:
    tested = f"{said.tested}, " if said.tested else ""
    where = f"{tested}{shortened_list(said.names, _MOST_PAIRS)}"
    return f"<li><b>{_said(where)}:</b> {_said(said.because)}</li>\n"
