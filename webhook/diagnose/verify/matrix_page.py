"""A run as a self-contained page: the matrix as a heat map, without scripts or other files.

A cell has a sign and a number besides its color, and links to the finding about it; its tooltip has
the reason and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
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
from webhook.model.finding import LEVELS
from webhook.model.names import shortened_list
from webhook.text.findings import tally
from webhook.text.terminal import SIGNS
from webhook.text.web_page import (
    Heading,
    document,
    finding_list,
    html_sign,
    html_text,
    html_words,
    remedy,
    scrolling,
)

_STYLE = Path(__file__).with_name("matrix_page.css")
_SIGN_LEGEND = (
    f"{', '.join(f'{SIGNS[level].text} {level}' for level in LEVELS if level != 'info')}, "
    "· not measured; ✘ 2 means two results without a number; a cell that is not ok links to its "
    "finding"
)
_MATRIX_CAPTION = "Gb/s; rows are clients, which send, and columns are servers"
#: The most nodes whose names fit side by side above their columns.
_SIDE_BY_SIDE = 8
#: The most statements of a code, and the most pairs of a sentence, that are written out.
_MAX_STATEMENTS = 30
_MAX_PAIRS = 12


def matrix_page(report: RunReport, written_at: datetime, namespace: str) -> str:
    """Return the page, with the time and the namespace of the run in its header, if it has one."""
    return "".join(_Page(report).parts(written_at, namespace))


class _Page:
    """The parts of a page; a cell links to the finding group of its worst result."""

    def __init__(self, report: RunReport) -> None:
        self._report = report
        self._matrix = pair_matrix(report)
        self._groups = group_findings(self._matrix)
        self._anchors = {
            group_key(group.finding): f"c{number}" for number, group in enumerate(self._groups, 1)
        }

    def parts(self, written_at: datetime, namespace: str) -> Iterator[str]:
        """Yield the page in order."""
        report, worst = self._report, self._report.evaluation.worst
        subject = report.fabric or report.name
        origin = {"namespace": namespace, "image": report.image}
        heading = Heading(
            f"rdma-webhook verify {'run' if report.image else 'judge'}",
            f"{subject}: {report.name}",
            f'<span class="{worst.level}">{html_sign(worst.level)} {html_words(subject)}: '
            f"{worst.level} ({html_text(worst.code)})</span>",
            written_at,
            self._lead,
            tuple((name, value) for name, value in origin.items() if value),
        )
        return document(heading, _STYLE, self._main())

    @property
    def _lead(self) -> str:
        """What the page shows: latencies only where a result has one."""
        results = self._report.evaluation.results
        latencies = any(result.latency_us is not None for result in results)
        measured = "bandwidths and latencies" if latencies else "bandwidths"
        return f"Measured {measured} between nodes, compared with what the fabric can carry."

    def _main(self) -> Iterator[str]:
        if self._report.findings:
            yield from finding_list(self._report.findings, "banner")
        yield from self._facts()
        if suspects := localize_faults(self._matrix):
            yield f"<h2>{SUSPECTS}</h2>\n"
            yield from finding_list(suspects)
        yield from self._tables()
        if self._groups:
            yield "<h2>Findings</h2>\n"
        for group in self._groups:
            yield from _finding_group(group, self._anchors[group_key(group.finding)])

    def _facts(self) -> Iterator[str]:
        report, evaluation = self._report, self._report.evaluation
        yield '<dl class="facts">\n'
        facts = {
            "Run": report.name,
            "Nodes": str(len(self._matrix.nodes)),
            "Pairs": str(len(self._matrix.cells)),
            "Results": tally(result.finding.level for result in evaluation.results),
            "Expected": "; ".join(expectations(evaluation)),
            "Signs": _SIGN_LEGEND if self._matrix.cells else "",
        }
        for name, value in facts.items():
            if value:
                yield f"<dt>{name}</dt><dd>{html_text(value)}</dd>\n"
        yield "</dl>\n"

    def _tables(self) -> Iterator[str]:
        matrix = self._matrix
        if not matrix.cells:
            return
        if not is_dense(matrix):
            yield from self._list()
            return
        yield f'<h2>Matrix</h2>\n<p class="caption">{_MATRIX_CAPTION}</p>\n'
        cells_by_series = matrix.cells_by_series
        if len(cells_by_series) > 1:
            yield from self._table("All devices: the worst of each pair", matrix.cells)
        yield '<div class="devices">\n'
        for series, cells in cells_by_series.items():
            yield from self._table(series.title, cells)
        yield "</div>\n"

    def _table(self, title: str, cells: Cells) -> Iterator[str]:
        """Yield a heat map: a row for each client, a column for each server."""
        many = len(self._matrix.nodes) > _SIDE_BY_SIDE
        yield f"<div><h3>{html_words(title)}</h3>\n"
        heat_map = "".join(self._heat_map(cells, ' class="many"' if many else ""))
        yield scrolling(title, heat_map, "wide" if many else "")
        yield "</div>\n"

    def _heat_map(self, cells: Cells, css_class: str) -> Iterator[str]:
        nodes = self._matrix.nodes
        yield f"<table{css_class}>\n"
        yield "<thead><tr><td></td>"
        for number, node in enumerate(nodes, 1):
            name = html_text(node)
            yield f'<th scope="col" title="{name}"><span>{number} {name}</span></th>'
        yield "</tr></thead>\n<tbody>\n"
        for number, client in enumerate(nodes, 1):
            name = html_text(client)
            yield f'<tr><th scope="row" title="{name}">{number} {name}</th>'
            for server in nodes:
                yield self._cell(cells.get(NodePair(client, server)), diagonal=client == server)
            yield "</tr>\n"
        yield "</tbody></table>"

    def _list(self) -> Iterator[str]:
        """Yield a table with a row for each pair, and a column for each device."""
        yield '<h2>Pairs</h2>\n<p class="caption">Gb/s</p>\n'
        yield scrolling("Pairs", "".join(self._rows_of_pairs()))

    def _rows_of_pairs(self) -> Iterator[str]:
        cells_by_series = self._matrix.cells_by_series
        yield "<table>\n"
        yield '<thead><tr><th scope="col">client</th><th scope="col">server</th>'
        yield "".join(
            f'<th scope="col">{html_text(series.title)}</th>' for series in cells_by_series
        )
        yield "</tr></thead>\n<tbody>\n"
        for pair in self._matrix.cells:
            client, server = html_text(pair.client), html_text(pair.server)
            yield f'<tr><th scope="row" title="{client}">{client}</th>'
            yield f'<th scope="row" title="{server}">{server}</th>'
            yield "".join(self._cell(cells.get(pair)) for cells in cells_by_series.values())
            yield "</tr>\n"
        yield "</tbody></table>"

    def _cell(self, cell: MatrixCell | None, *, diagonal: bool = False) -> str:
        if cell is None:
            return '<td class="same"></td>' if diagonal else '<td class="none">·</td>'
        result = cell.worst
        finding = result.finding
        title = f"{pair_title(cell.pair)}: {finding.text} {finding.remedy}".rstrip()
        label = f"{html_sign(finding.level)} {cell.number_text}".rstrip()
        anchor = self._anchors.get(group_key(finding))
        linked = f'<a href="#{anchor}">{label}</a>' if anchor else label
        shade = f"{finding.level} t{_tenths(result)}"
        return f'<td class="{shade}" title="{html_text(title)}">{linked}</td>'


def _tenths(result: BenchmarkResult) -> int:
    """Return the share of the expectation that was reached, in tenths: 0 to 10."""
    if result.finding.level == "ok":
        return 10
    if result.gbps is None or not result.expected:
        return 0
    return max(0, min(10, int(10 * result.gbps / result.expected)))


def _finding_group(group: FindingGroup, anchor: str) -> Iterator[str]:
    finding = group.finding
    yield f'<section id="{anchor}" class="{finding.level}">\n'
    yield f"<h3>{html_sign(finding.level)} {html_text(finding.code)}</h3>\n<ul>\n"
    yield from map(_statement, group.statements[:_MAX_STATEMENTS])
    omitted = sum(len(statement.pairs) for statement in group.statements[_MAX_STATEMENTS:])
    if omitted:
        yield f"<li>and {omitted} more, in the tables above</li>\n"
    yield "</ul>\n"
    yield remedy(finding)
    yield "</section>\n"


def _statement(statement: PairStatement) -> str:
    """Return a sentence with its subject in bold: the test, or the pairs if it is unknown."""
    pairs = html_words(shortened_list(statement.names, _MAX_PAIRS))
    title = statement.test_title
    subject = f"<b>{html_words(title)}</b>, {pairs}" if title else f"<b>{pairs}</b>"
    return f"<li>{subject}: {html_words(statement.text)}</li>\n"
