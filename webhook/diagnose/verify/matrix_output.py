"""A run as JSON, as JUnit XML and as text.

The JSON is stable and described by `verify-run.schema.json`: keys may be added, but neither keys
nor codes are ever renamed.
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
    write_judgement,
    write_summary,
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
            *(_finding(suspect) for suspect in localize_faults(matrix)),
            *(_remark(remark) for remark in report.remarks),
        ],
    }


def _pair(cell: MatrixCell) -> JsonObject:
    return {
        "client": cell.pair.client,
        "server": cell.pair.server,
        "verdict": cell.verdict,
        "measurements": [judgement_form(judgement) for judgement in cell.judgements],
    }


def _finding(suspect: Suspect) -> JsonObject:
    return {**suspect._asdict(), "nodes": list(suspect.nodes)}


def _remark(remark: Remark) -> JsonObject:
    return {**remark._asdict(), "nodes": [], "device": None}


def matrix_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of the form, including the schema of a judgement."""
    schema = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    schema["$defs"] = json.loads(verify_schema())["$defs"]
    return json.dumps(schema, indent=2) + "\n"


# A run as JUnit XML: a test case for each pair and device, in a class for each pair.


def matrix_junit(report: RunReport) -> str:
    """Return a run as an XML document."""
    pairs = (
        JunitCase(pair_words(pair), title_of(judgement.measurement), judgement)
        for pair, cell in pair_matrix(report).cells.items()
        for judgement in cell.judgements
    )
    remarks = (JunitCase("The whole run", remark.code, remark) for remark in report.remarks)
    return junit_document([*pairs, *remarks])


# A run as text: the matrix, the suspects, and statements on its cells.

_ARROW = Span("→", "bold")
_NARROWEST = 40
_INDENT = 2
_CORNER = "from ↓ to →"
_NOT_MEASURED = Span("·", "dim")
#: The most sentences of a code, and the most pairs of a sentence, that are written out.
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
    _suspects(sheet, localize_faults(matrix))
    for group in group_findings(matrix):
        sheet.blank()
        _finding_group(sheet, group)
    for remark in report.remarks:
        sheet.blank()
        sheet.paragraph(Span("The whole run", "bold"))
        write_judgement(sheet, remark)
    sheet.blank()
    write_summary(sheet, report.assessment)
    return sheet.text


def run_title(report: RunReport, matrix: PairMatrix) -> str:
    """Name a run, with the counts of its nodes and pairs."""
    nodes, pairs = len(matrix.nodes), len(matrix.cells)
    counts = f"{nodes} node{'s' * (nodes != 1)}, {pairs} pair{'s' * (pairs != 1)}"
    return f"{report.name}: {counts} of {report.fabric}"


def _overview(sheet: Sheet, matrix: PairMatrix) -> None:
    """Write the widest matrix that fits, or a list if none fits or few pairs were measured."""
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
    """Return a heading and a row for each client; columns are named, or numbered like the rows."""
    nodes = matrix.nodes
    marks = [str(number) for number in range(1, len(nodes) + 1)]
    heading = [Span(title, "dim") for title in (_CORNER, *(nodes if named else marks))]
    width = len(marks[-1])
    rows = [heading]
    for mark, client in zip(marks, nodes, strict=True):
        name = client if named else f"{mark:>{width}} {client}"
        cells = [matrix.cells.get(NodePair(client, server)) for server in nodes]
        diagonal = nodes.index(client)
        rows.append(
            [
                Span(name),
                *(
                    Span("")
                    if column == diagonal and cell is None
                    else _cell_span(cell, numbers=numbers)
                    for column, cell in enumerate(cells)
                ),
            ]
        )
    return rows


def _cell_span(cell: MatrixCell | None, *, numbers: bool = True) -> Span:
    """Return the sign and the number of a cell."""
    if cell is None:
        return _NOT_MEASURED
    sign = SIGNS[cell.verdict]
    return Span(f"{sign.words} {cell.number}".rstrip() if numbers else sign.words, sign.style)


def _pairs_grid(matrix: PairMatrix) -> list[list[Span]]:
    """Return a row for each pair, and a column for each device."""
    columns = matrix.columns
    titles = (column.title for column in columns)
    heading = [Span(title, "dim") for title in ("client → server", *titles)]
    rows = [
        [Span(pair_words(pair)), *(_cell_span(cells.get(pair)) for cells in columns.values())]
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
                line += [Span("  "), _cell_span(cells[pair]), Span(f" {column.title}")]
        yield line


def _expected(sheet: Sheet, assessment: Evaluation) -> None:
    """Write each expectation once, with its source."""
    expectations = dict.fromkeys(
        (judgement.expected, judgement.source)
        for judgement in assessment.judgements
        if judgement.expected is not None
    )
    for expected, source in expectations:
        sheet.paragraph(Span(f"expected: {expected:g} Gb/s: {source}", "dim"))


def _suspects(sheet: Sheet, suspects: Sequence[Suspect]) -> None:
    if not suspects:
        return
    sheet.blank()
    sheet.paragraph(Span("What to look at first", "bold"))
    for suspect in suspects:
        write_judgement(sheet, suspect)


def _finding_group(sheet: Sheet, group: FindingGroup) -> None:
    """Write the statements of a group, and its remedy once."""
    sheet.paragraph(Span(group.code, "bold"), sign=SIGNS[group.verdict])
    for statement in group.statements[:_MOST_SENTENCES]:
        pairs = shortened_list(statement.names, _MOST_PAIRS)
        place = f"{statement.tested}, {pairs}" if statement.tested else pairs
        sheet.paragraph(Span(f"{place}: ", "dim"), Span(statement.because), indent=_INDENT)
    omitted = sum(len(statement.pairs) for statement in group.statements[_MOST_SENTENCES:])
    if omitted:
        sheet.paragraph(Span(f"and {omitted} more, which -o json shows", "dim"), indent=_INDENT)
    if group.remedy:
        sheet.paragraph(Span(group.remedy), sign=_ARROW, indent=_INDENT)
