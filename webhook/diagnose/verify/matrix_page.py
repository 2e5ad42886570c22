"""A run as a self-contained page: the matrix as a heat map, without scripts or other files.

A cell has a sign and a number besides its color, and links to the finding about it; its tooltip has
the reason and the remedy.
"""

from __future__ import annotations

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
    group_key,
    is_dense,
    pair_matrix,
    pair_title,
)
from webhook.diagnose.verify.matrix_output import SUSPECTS, expectations
from webhook.diagnose.verify.results import BenchmarkResult, NodePair, RunReport
from webhook.model.finding import Finding, Level
from webhook.model.names import shortened_list
from webhook.text.escape import visible
from webhook.text.findings import tally
from webhook.text.terminal import SIGNS

_STYLE = Path(__file__).with_name("matrix_page.css")
_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
"""
#: The most nodes whose names fit side by side above their columns.
_SIDE_BY_SIDE = 8
#: The most statements of a code, and the most pairs of a sentence, that are written out.
_MAX_STATEMENTS = 30
_MAX_PAIRS = 12


def matrix_page(report: RunReport) -> str:
    """Return the page."""
    return "".join(_Page(report).parts())


class _Page:
    """The parts of a page; a cell links to the finding group of its worst result."""

    def __init__(self, report: RunReport) -> None:
        self._report = report
        self._matrix = pair_matrix(report)
        self._groups = group_findings(self._matrix)
        self._anchors = {
            group_key(group.finding): f"c{number}" for number, group in enumerate(self._groups, 1)
        }

    def parts(self) -> Iterator[str]:
        """Yield the page in order."""
        yield f"{_HEAD}<title>{_html(self._report.name)}: {_html(self._report.fabric)}</title>\n"
        yield f"<style>\n{_STYLE.read_text(encoding='utf-8')}</style>\n"
        yield from self._summary()
        yield from _suspects([*localize_faults(self._matrix), *self._report.findings])
        yield from self._tables()
        if self._groups:
            yield "<h2>Findings</h2>\n"
        for group in self._groups:
            yield from _finding_group(group, self._anchors[group_key(group.finding)])

    def _summary(self) -> Iterator[str]:
        report, evaluation = self._report, self._report.evaluation
        worst = evaluation.worst
        yield f'<h1 class="{worst.level}">{_sign(worst.level)} {_html(report.fabric)}: '
        yield f"{worst.level} ({_html(worst.code)})</h1>\n<dl>\n"
        facts = {
            "Run": report.name,
            "Nodes": str(len(self._matrix.nodes)),
            "Pairs": str(len(self._matrix.cells)),
            "Results": tally(evaluation.levels),
            "Image": report.image,
            "Expected": "; ".join(expectations(evaluation)),
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
        cells_by_series = matrix.cells_by_series
        if len(cells_by_series) > 1:
            yield from self._table("All devices: the worst of each pair", matrix.cells)
        for series, cells in cells_by_series.items():
            yield from self._table(series.title, cells)

    def _table(self, title: str, cells: Cells) -> Iterator[str]:
        """Yield a heat map: a row for each client, a column for each server."""
        nodes = self._matrix.nodes
        css_class = ' class="many"' if len(nodes) > _SIDE_BY_SIDE else ""
        yield f'<h2>{_html(title)}</h2>\n<div class="scroll"><table{css_class}>\n'
        yield "<caption>Gb/s; rows are clients, which send, and columns are servers</caption>\n"
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
        cells_by_series = self._matrix.cells_by_series
        yield '<h2>Pairs</h2>\n<div class="scroll"><table>\n'
        yield "<caption>Gb/s</caption>\n"
        yield '<thead><tr><th scope="col">client</th><th scope="col">server</th>'
        yield "".join(f'<th scope="col">{_html(series.title)}</th>' for series in cells_by_series)
        yield "</tr></thead>\n<tbody>\n"
        for pair in self._matrix.cells:
            yield f'<tr><th scope="row">{_html(pair.client)}</th>'
            yield f'<th scope="row">{_html(pair.server)}</th>'
            yield "".join(self._cell(cells.get(pair)) for cells in cells_by_series.values())
            yield "</tr>\n"
        yield "</tbody></table></div>\n"

    def _cell(self, cell: MatrixCell | None, *, diagonal: bool = False) -> str:
        if cell is None:
            return '<td class="same"></td>' if diagonal else '<td class="none">·</td>'
        result = cell.worst
        finding = result.finding
        title = f"{pair_title(cell.pair)}: {finding.text} {finding.remedy}".rstrip()
        label = f"{_sign(finding.level)} {cell.number_text}".rstrip()
        anchor = self._anchors.get(group_key(finding))
        linked = f'<a href="#{anchor}">{label}</a>' if anchor else label
        shade = f"{finding.level} t{_tenths(result)}"
        return f'<td class="{shade}" title="{_html(title)}">{linked}</td>'


def _html(words: str) -> str:
    return escape(visible(words))


def _sign(level: Level) -> str:
    """Return the sign of a level, and the level itself for screen readers."""
    return f'<span aria-hidden="true">{SIGNS[level].text}</span><i>{level}</i>'


def _tenths(result: BenchmarkResult) -> int:
    """Return the share of the expectation that was reached, in tenths: 0 to 10."""
    if result.finding.level == "ok":
        return 10
    if result.gbps is None or not result.expected:
        return 0
    return max(0, min(10, int(10 * result.gbps / result.expected)))


def _suspects(suspects: Sequence[Finding]) -> Iterator[str]:
    if not suspects:
        return
    yield f'<h2>{SUSPECTS}</h2>\n<ul class="findings">\n'
    for suspect in suspects:
        remedy = (
            f'<br><span class="remedy">{_html(suspect.remedy)}</span>' if suspect.remedy else ""
        )
        yield (
            f'<li class="{suspect.level}">{_sign(suspect.level)} '
            f"{_html(suspect.text)}{remedy}</li>\n"
        )
    yield "</ul>\n"


def _finding_group(group: FindingGroup, anchor: str) -> Iterator[str]:
    finding = group.finding
    yield f'<section id="{anchor}" class="{finding.level}">\n'
    yield f"<h3>{_sign(finding.level)} {_html(finding.code)}</h3>\n<ul>\n"
    yield from map(_statement, group.statements[:_MAX_STATEMENTS])
    omitted = sum(len(statement.pairs) for statement in group.statements[_MAX_STATEMENTS:])
    if omitted:
        yield f"<li>and {omitted} more, in the tables above</li>\n"
    yield "</ul>\n"
    if finding.remedy:
        yield f'<p class="remedy">{_html(finding.remedy)}</p>\n'
    yield "</section>\n"


def _statement(statement: PairStatement) -> str:
    test_text = f"{statement.test_title}, " if statement.test_title else ""
    subject = f"{test_text}{shortened_list(statement.names, _MAX_PAIRS)}"
    return f"<li><b>{_html(subject)}:</b> {_html(statement.text)}</li>\n"
