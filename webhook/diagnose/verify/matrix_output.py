"""A run for programs: stable, and described by `verify-run.schema.json`.

Keys may be added, but are never renamed; so is every code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from webhook.diagnose.verify.fault_localization import Suspect, localize_faults
from webhook.diagnose.verify.matrix import (
    FindingGroup,
    MatrixCell,
    PairMatrix,
    group_findings,
    is_dense,
    pair_matrix,
    pair_words,
    shortened_list,
)
from webhook.diagnose.verify.output import (
    SIGNS,
    JunitCase,
    judgement_form,
    junit_document,
    title_of,
    verify_schema,
    write_said,
    write_whole,
)
from webhook.diagnose.verify.results import Evaluation, NodePair, Remark, RunReport
from webhook.model.json import JsonObject
from webhook.text.terminal import Sheet, Span

_SCHEMA = Path(__file__).with_name("verify-run.schema.json")


def matrix_form(report: RunReport) -> JsonObject:
    """Return a run as plain JSON values."""
    worst = report.assessment.worst
    matrix = pair_matrix(report)
    return {
        "verdict": worst.verdict,
        "code": worst.code,
        "because": worst.because,
        "remedy": worst.remedy,
        "run": report.name,
        "fabric": report.fabric,
        "image": report.image,
        "nodes": list(matrix.nodes),
        "pairs": [_pair(cell) for cell in matrix.cells.values()],
        "findings": [
            *(_finding(one) for one in localize_faults(matrix)),
            *(_remark(one) for one in report.remarks),
        ],
    }


def _pair(cell: MatrixCell) -> JsonObject:
    return {
        "client": cell.pair.client,
        "server": cell.pair.server,
        "verdict": cell.verdict,
        "measurements": [judgement_form(one) for one in cell.judgements],
    }


def _finding(one: Suspect) -> JsonObject:
    return {**one._asdict(), "nodes": list(one.nodes)}


def _remark(one: Remark) -> JsonObject:
    return {**one._asdict(), "nodes": [], "device": None}


def matrix_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of the form, with that of a judgement in it."""
    schema = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    schema["$defs"] = json.loads(verify_schema())["$defs"]
    return json.dumps(schema, indent=2) + "\n"


# A run as JUnit XML: a test case for each pair and device, in a class for each pair.


def matrix_junit(report: RunReport) -> str:
    """Return a run as an XML document."""
    pairs = (
        JunitCase(pair_words(pair), title_of(one.measurement), one)
        for pair, cell in pair_matrix(report).cells.items()
        for one in cell.judgements
    )
    remarks = (JunitCase("The whole run", one.code, one) for one in report.remarks)
    return junit_document([*pairs, *remarks])


# A run for people: the matrix, what to look at first, and what is to be said of its cells.

_ARROW = Span("→", "bold")
_NARROWEST = 40
_INDENT = 2
_CORNER = "from ↓ to →"
_NOT_MEASURED = Span("·", "dim")
#: Sentences of one code, and pairs of one sentence, that are written out.
_MOST_SENTENCES = 6
_MOST_PAIRS = 4


def matrix_text(report: RunReport, *, width: int = 100, colour: bool = False) -> str:
    """Return a run as lines of at most `width` columns."""
    matrix = pair_matrix(report)
    sheet = Sheet(max(width, _NARROWEST), colour=colour)
    sheet.paragraph(Span(run_title(report, matrix), "bold"), Span(f"  image {report.image}", "dim"))
    if matrix.cells:
        sheet.blank()
        _overview(sheet, matrix)
    _expected(sheet, report.assessment)
    _first(sheet, localize_faults(matrix))
    for one in group_findings(matrix):
        sheet.blank()
        _complaint(sheet, one)
    for remark in report.remarks:
        sheet.blank()
        sheet.paragraph(Span("The whole run", "bold"))
        write_said(sheet, remark)
    sheet.blank()
    write_whole(sheet, report.assessment)
    return sheet.text


def run_title(report: RunReport, matrix: PairMatrix) -> str:
    """Name a run, and how much was measured."""
    nodes, pairs = len(matrix.nodes), len(matrix.cells)
    many = f"{nodes} node{'s' * (nodes != 1)}, {pairs} pair{'s' * (pairs != 1)}"
    return f"{report.name}: {many} of {report.fabric}"


def _overview(sheet: Sheet, matrix: PairMatrix) -> None:
    """Write the matrix as wide as it fits; else, or if most of it would be empty, a list."""
    if is_dense(matrix):
        of_all = ", the worst of all devices" if len(matrix.columns) > 1 else ""
        sheet.paragraph(Span(f"Gb/s{of_all}", "dim"))
        if (
            sheet.grid(_matrix(matrix, named=True, numbers=True))
            or sheet.grid(_matrix(matrix, named=False, numbers=True))
            or sheet.grid(_matrix(matrix, named=False, numbers=False), gap=1)
        ):
            return
    else:
        sheet.paragraph(Span("Gb/s", "dim"))
    if not sheet.grid(_pairs_grid(matrix)):
        for line in _pair_lines(matrix):
            sheet.paragraph(*line)


def _matrix(matrix: PairMatrix, *, named: bool, numbers: bool) -> list[list[Span]]:
    """Return a heading and a row for each client; columns are named, or numbered as the rows."""
    nodes = matrix.nodes
    marks = [str(at) for at in range(1, len(nodes) + 1)]
    heading = [Span(one, "dim") for one in (_CORNER, *(nodes if named else marks))]
    wide = len(marks[-1])
    rows = [heading]
    for mark, client in zip(marks, nodes, strict=True):
        name = client if named else f"{mark:>{wide}} {client}"
        cells = [matrix.cells.get(NodePair(client, server)) for server in nodes]
        own = nodes.index(client)
        rows.append(
            [
                Span(name),
                *(
                    Span("") if at == own and cell is None else _shown(cell, numbers=numbers)
                    for at, cell in enumerate(cells)
                ),
            ]
        )
    return rows


def _shown(cell: MatrixCell | None, *, numbers: bool = True) -> Span:
    """Return the sign and the number of a cell."""
    if cell is None:
        return _NOT_MEASURED
    sign = SIGNS[cell.verdict]
    return Span(f"{sign.words} {cell.number}".rstrip() if numbers else sign.words, sign.style)


def _pairs_grid(matrix: PairMatrix) -> list[list[Span]]:
    """Return a row for each pair, and a column for each device."""
    columns = matrix.columns
    titles = (column.title for column in columns)
    heading = [Span(one, "dim") for one in ("client → server", *titles)]
    rows = [
        [Span(pair_words(pair)), *(_shown(cells.get(pair)) for cells in columns.values())]
        for pair in matrix.cells
    ]
    return [heading, *rows]


def _pair_lines(matrix: PairMatrix) -> Iterator[list[Span]]:
    """Yield a line for each pair."""
    columns = matrix.columns
    for pair in matrix.cells:
        line = [Span(pair_words(pair), "bold")]
        for column, cells in columns.items():
            if pair in cells:
                line += [Span("  "), _shown(cells[pair]), Span(f" {column.title}")]
        yield line


def _expected(sheet: Sheet, assessment: Evaluation) -> None:
    """Write each expectation once, with its source."""
    found = dict.fromkeys(
        (one.expected, one.source) for one in assessment.judgements if one.expected is not None
    )
    for expected, source in found:
        sheet.paragraph(Span(f"expected: {expected:g} Gb/s: {source}", "dim"))


def _first(sheet: Sheet, found: Sequence[Suspect]) -> None:
    if not found:
        return
    sheet.blank()
    sheet.paragraph(Span("What to look at first", "bold"))
    for one in found:
        write_said(sheet, one)


def _complaint(sheet: Sheet, one: FindingGroup) -> None:
    """Write what is to be said of many cells, and once what to do about it."""
    sheet.paragraph(Span(one.code, "bold"), sign=SIGNS[one.verdict])
    for said in one.said[:_MOST_SENTENCES]:
        pairs = shortened_list(said.names, _MOST_PAIRS)
        where = f"{said.tested}, {pairs}" if said.tested else pairs
        sheet.paragraph(Span(f"{where}: ", "dim"), Span(said.because), indent=_INDENT)
    more = sum(len(said.pairs) for said in one.said[_MOST_SENTENCES:])
    if more:
        sheet.paragraph(Span(f"and {more} more, which -o json shows", "dim"), indent=_INDENT)
    if one.remedy:
        sheet.paragraph(Span(one.remedy), sign=_ARROW, indent=_INDENT)
