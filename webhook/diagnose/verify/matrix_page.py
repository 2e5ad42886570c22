"""A run as a self-contained page: the matrix as a heat map, without scripts or other files.

A cell has a sign and a number besides its color, and links to the finding about it; its tooltip has
the reason and the remedy.
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
    PairStatement,
    group_findings,
    is_dense,
    pair_matrix,
    pair_words,
    shortened_list,
)
from webhook.diagnose.verify.output import SIGNS, Reportable
from webhook.diagnose.verify.results import WORTHS, BenchmarkResult, NodePair, RunReport, Worth
from webhook.text.escape import visible

_STYLE = Path(__file__).with_name("matrix_page.css")
_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
"""
#: The most nodes whose names fit side by side above their columns.
_SIDE_BY_SIDE = 8
#: The most sentences of a code, and the most pairs of a sentence, that are written out.
_MOST_SENTENCES = 30
_MOST_PAIRS = 12


def matrix_page(report: RunReport) -> str:
    """Return the page."""
    return "".join(_Page(report).parts())


class _Page:
    """The parts of a page; a cell links to the finding group of its judgement."""

    def __init__(self, report: RunReport) -> None:
        self._report = report
        self._matrix = pair_matrix(report)
        self._groups = group_findings(self._matrix)
        self._marks = {
            (group.verdict, group.code, group.remedy): f"c{number}"
            for number, group in enumerate(self._groups, 1)
        }

    def parts(self) -> Iterator[str]:
        """Yield the page in order."""
        yield f"{_HEAD}<title>{_html(self._report.name)}: {_html(self._report.fabric)}</title>\n"
        yield f"<style>\n{_STYLE.read_text(encoding='utf-8')}</style>\n"
        yield from self._summary()
        yield from _suspects([*localize_faults(self._matrix), *self._report.remarks])
        yield from self._tables()
        if self._groups:
            yield "<h2>What does not pass</h2>\n"
        for group in self._groups:
            yield from _finding_group(group, self._marks[group.verdict, group.code, group.remedy])

    def _summary(self) -> Iterator[str]:
        report, matrix, assessment = self._report, self._matrix, self._report.assessment
        worst = assessment.worst
        counts = Counter(judgement.verdict for judgement in assessment.everything)
        tally = ", ".join(f"{counts[verdict]} {verdict}" for verdict in WORTHS if counts[verdict])
        yield f'<h1 class="{worst.verdict}">{_sign(worst.verdict)} {_html(report.fabric)}: '
        yield f"{worst.verdict} ({_html(worst.code)})</h1>\n<dl>\n"
        expected = dict.fromkeys(
            f"{judgement.expected:g} Gb/s: {judgement.source}"
            for judgement in assessment.judgements
            if judgement.expected is not None
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
                yield f"<dt>{name}</dt><dd>{_html(value)}</dd>\n"
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
        css_class = ' class="many"' if len(nodes) > _SIDE_BY_SIDE else ""
        yield f'<h2>{_html(title)}</h2>\n<div class="scroll"><table{css_class}>\n'
        yield "<caption>Gb/s; a row sends to the columns</caption>\n"
        yield "<thead><tr><td></td>"
        for number, node in enumerate(nodes, 1):
            yield f'<th scope="col" title="{_html(node)}"><span>{number} {_html(node)}</span></th>'
        yield "</tr></thead>\n<tbody>\n"
        for number, client in enumerate(nodes, 1):
            yield f'<tr><th scope="row" title="{_html(client)}">{number} {_html(client)}</th>'
            for server in nodes:
                yield self._cell(cells.get(NodePair(client, server)), diagonal=client == server)
            yield "</tr>\n"
        yield "</tbody></table></div>\n"

    def _list(self) -> Iterator[str]:
        """Yield a table with a row for each pair, and a column for each device."""
        columns = self._matrix.columns
        yield '<h2>Pairs</h2>\n<div class="scroll"><table>\n'
        yield "<caption>Gb/s</caption>\n"
        yield '<thead><tr><th scope="col">client</th><th scope="col">server</th>'
        yield "".join(f'<th scope="col">{_html(column.title)}</th>' for column in columns)
        yield "</tr></thead>\n<tbody>\n"
        for pair in self._matrix.cells:
            yield f'<tr><th scope="row">{_html(pair.client)}</th>'
            yield f'<th scope="row">{_html(pair.server)}</th>'
            yield "".join(self._cell(cells.get(pair)) for cells in columns.values())
            yield "</tr>\n"
        yield "</tbody></table></div>\n"

    def _cell(self, cell: MatrixCell | None, *, diagonal: bool = False) -> str:
        if cell is None:
            return '<td class="same"></td>' if diagonal else '<td class="none">·</td>'
        worst = cell.worst
        title = f"{pair_words(cell.pair)}: {worst.because} {worst.remedy}".rstrip()
        label = f"{_sign(worst.verdict)} {cell.number}".rstrip()
        mark = self._marks.get((worst.verdict, worst.code, worst.remedy))
        linked = f'<a href="#{mark}">{label}</a>' if mark else label
        return f'<td class="{worst.verdict} t{_tenths(worst)}" title="{_html(title)}">{linked}</td>'


def _html(words: str) -> str:
    return escape(visible(words))


def _sign(verdict: Worth) -> str:
    """Return the sign of a verdict, and the verdict itself for screen readers."""
    return f'<span aria-hidden="true">{SIGNS[verdict].words}</span><i>{verdict}</i>'


def _tenths(judgement: BenchmarkResult) -> int:
    """Return the share of the expectation that was reached, in tenths: 0 to 10."""
    if judgement.verdict == "pass":
        return 10
    if judgement.gbps is None or not judgement.expected:
        return 0
    return max(0, min(10, int(10 * judgement.gbps / judgement.expected)))


def _suspects(suspects: Sequence[Reportable]) -> Iterator[str]:
    if not suspects:
        return
    yield '<h2>What to look at first</h2>\n<ul class="findings">\n'
    for suspect in suspects:
        remedy = (
            f'<br><span class="remedy">{_html(suspect.remedy)}</span>' if suspect.remedy else ""
        )
        yield (
            f'<li class="{suspect.verdict}">{_sign(suspect.verdict)} '
            f"{_html(suspect.because)}{remedy}</li>\n"
        )
    yield "</ul>\n"


def _finding_group(group: FindingGroup, mark: str) -> Iterator[str]:
    yield f'<section id="{mark}" class="{group.verdict}">\n'
    yield f"<h3>{_sign(group.verdict)} {_html(group.code)}</h3>\n<ul>\n"
    yield from map(_sentence, group.statements[:_MOST_SENTENCES])
    omitted = sum(len(statement.pairs) for statement in group.statements[_MOST_SENTENCES:])
    if omitted:
        yield f"<li>and {omitted} more, in the tables above</li>\n"
    yield "</ul>\n"
    if group.remedy:
        yield f'<p class="remedy">{_html(group.remedy)}</p>\n'
    yield "</section>\n"


def _sentence(statement: PairStatement) -> str:
    tested = f"{statement.tested}, " if statement.tested else ""
    subject = f"{tested}{shortened_list(statement.names, _MOST_PAIRS)}"
    return f"<li><b>{_html(subject)}:</b> {_html(statement.because)}</li>\n"
