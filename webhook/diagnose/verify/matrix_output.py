"""A run as JSON, as JUnit XML and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from typing_extensions import TypedDict

from webhook.diagnose.verify.fault_localization import localize_faults
from webhook.diagnose.verify.matrix import (
    FindingGroup,
    MatrixCell,
    PairMatrix,
    group_findings,
    is_dense,
    pair_matrix,
    pair_title,
)
from webhook.diagnose.verify.output import (
    SUITE,
    ResultForm,
    expectation,
    result_form,
    title_of,
    write_passed,
    write_summary,
)
from webhook.diagnose.verify.results import Evaluation, NodePair, RunReport
from webhook.model.finding import Finding, Level
from webhook.model.names import counted, shortened_list
from webhook.text.findings import FindingForm, finding_form
from webhook.text.junit import JunitCase, junit_document
from webhook.text.terminal import SIGNS, Sheet, Span, write_finding, write_remedy


class PairForm(TypedDict):
    """A pair of nodes that was measured."""

    client: str
    """The node that the data comes from."""
    server: str
    level: Level
    """The worst level of its results."""
    results: list[ResultForm]
    """A result for each device and test; without a measurement, a single one with the reason."""


class MatrixForm(TypedDict):
    """The output of rdma-webhook verify run, and of verify judge --matrix, with -o json."""

    level: Level
    """The worst level: it decides the exit code."""
    code: str
    """The code, text and remedy are those of the worst finding."""
    text: str
    remedy: str
    run: str
    """The name of the run; "files" for verify judge."""
    fabric: str
    """Its name; for verify judge "" without --fabric."""
    image: str
    """The image with the benchmark; "" for verify judge."""
    nodes: list[str]
    """The nodes in the run."""
    pairs: list[PairForm]
    """Each pair that was measured, in one direction; the opposite direction is a separate pair."""
    findings: list[FindingForm]
    """What to check first, and findings on the run as a whole."""


def matrix_form(report: RunReport) -> MatrixForm:
    """Return a run as plain JSON values."""
    worst = report.evaluation.worst
    matrix = pair_matrix(report)
    findings = (*localize_faults(matrix), *report.findings)
    return MatrixForm(
        level=worst.level,
        code=worst.code,
        text=worst.text,
        remedy=worst.remedy,
        run=report.name,
        fabric=report.fabric,
        image=report.image,
        nodes=list(matrix.nodes),
        pairs=[_pair_form(cell) for cell in matrix.cells.values()],
        findings=[finding_form(finding) for finding in findings],
    )


def _pair_form(cell: MatrixCell) -> PairForm:
    return PairForm(
        client=cell.pair.client,
        server=cell.pair.server,
        level=cell.level,
        results=[result_form(result) for result in cell.results],
    )


def matrix_schema() -> str:
    """Return the JSON Schema of the JSON."""
    from webhook.text.schema import form_schema  # noqa: PLC0415 -- slow to import

    return form_schema(MatrixForm, "The output of rdma-webhook verify run -o json")


# A run as JUnit XML: a test case for each pair and device, in a class for each pair.


def matrix_junit(report: RunReport) -> str:
    """Return a run as an XML document."""
    cases = [
        JunitCase(pair_title(pair), title_of(result.measurement), result.finding)
        for pair, cell in pair_matrix(report).cells.items()
        for result in cell.results
    ]
    cases += [JunitCase(WHOLE_RUN, finding.code, finding) for finding in report.findings]
    return junit_document(SUITE, cases)


# A run as text: the matrix, the suspects, and the findings on its cells.

WHOLE_RUN = "Whole run"
SUSPECTS = "Check first"
_MIN_WIDTH = 40
_INDENT = 2
_CORNER = "from ↓ to →"
_NOT_MEASURED = Span("·", "dim")
#: The most statements of a code, and the most pairs of a sentence, that are written out.
_MAX_STATEMENTS = 6
_MAX_PAIRS = 4


def matrix_text(report: RunReport, *, width: int = 100, color: bool = False) -> str:
    """Return a run as lines of at most `width` columns."""
    matrix = pair_matrix(report)
    sheet = Sheet(max(width, _MIN_WIDTH), color=color)
    image = f"  image {report.image}" if report.image else ""
    sheet.paragraph(Span(run_title(report, matrix), "bold"), Span(image, "dim"))
    if matrix.cells:
        sheet.blank()
        _write_overview(sheet, matrix)
    _write_expectations(sheet, report.evaluation)
    _write_suspects(sheet, localize_faults(matrix))
    for group in group_findings(matrix):
        sheet.blank()
        _write_finding_group(sheet, group)
    for finding in report.findings:
        sheet.blank()
        sheet.paragraph(Span(WHOLE_RUN, "bold"))
        write_finding(sheet, finding)
    sheet.blank()
    _write_passed_pairs(sheet, matrix)
    write_summary(sheet, report.evaluation)
    return sheet.text


def _write_passed_pairs(sheet: Sheet, matrix: PairMatrix) -> None:
    """Write a line on the pairs whose results all passed, if there are any."""
    passed = [cell for cell in matrix.cells.values() if cell.level == "ok"]
    if passed:
        results = [result for cell in passed for result in cell.results]
        write_passed(sheet, results, len(passed), len(matrix.cells), "pair")


def run_title(report: RunReport, matrix: PairMatrix) -> str:
    """Name a run, with the counts of its nodes and pairs."""
    counts = f"{counted(len(matrix.nodes), 'node')}, {counted(len(matrix.cells), 'pair')}"
    return f"{report.name}: {counts}" + (f" of fabric {report.fabric}" if report.fabric else "")


def _write_overview(sheet: Sheet, matrix: PairMatrix) -> None:
    """Write the widest matrix that fits, or a list if none fits or few pairs were measured."""
    if is_dense(matrix):
        of_all = ", the worst device of each pair" if len(matrix.cells_by_series) > 1 else ""
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
    sign = SIGNS[cell.level]
    return Span(f"{sign.text} {cell.number_text}".rstrip() if numbers else sign.text, sign.style)


def _pairs_grid(matrix: PairMatrix) -> list[list[Span]]:
    """Return a row for each pair, and a column for each device."""
    cells_by_series = matrix.cells_by_series
    titles = (series.title for series in cells_by_series)
    heading = [Span(title, "dim") for title in ("client → server", *titles)]
    rows = [
        [
            Span(pair_title(pair)),
            *(_cell_span(cells.get(pair)) for cells in cells_by_series.values()),
        ]
        for pair in matrix.cells
    ]
    return [heading, *rows]


def _pair_lines(matrix: PairMatrix) -> Iterator[list[Span]]:
    """Yield a line for each pair."""
    cells_by_series = matrix.cells_by_series
    for pair in matrix.cells:
        line = [Span(pair_title(pair), "bold")]
        for series, cells in cells_by_series.items():
            if pair in cells:
                line += [Span("  "), _cell_span(cells[pair]), Span(f" {series.title}")]
        yield line


def _write_expectations(sheet: Sheet, evaluation: Evaluation) -> None:
    """Write each expectation once, with its computation."""
    for expected in expectations(evaluation):
        sheet.paragraph(Span(f"expected: {expected}", "dim"))


def expectations(evaluation: Evaluation) -> list[str]:
    """Return the expectations of the results, each once."""
    results = (result for result in evaluation.results if result.expected is not None)
    return list(dict.fromkeys(map(expectation, results)))


def _write_suspects(sheet: Sheet, suspects: Sequence[Finding]) -> None:
    if not suspects:
        return
    sheet.blank()
    sheet.paragraph(Span(SUSPECTS, "bold"))
    for suspect in suspects:
        write_finding(sheet, suspect)


def _write_finding_group(sheet: Sheet, group: FindingGroup) -> None:
    """Write the statements of a group, and its remedy once."""
    finding = group.finding
    sheet.paragraph(Span(finding.code, "bold"), sign=SIGNS[finding.level])
    for statement in group.statements[:_MAX_STATEMENTS]:
        pairs = shortened_list(statement.names, _MAX_PAIRS)
        subject = f"{statement.test_title}, {pairs}" if statement.test_title else pairs
        sheet.paragraph(Span(f"{subject}: ", "dim"), Span(statement.text), indent=_INDENT)
    omitted = sum(len(statement.pairs) for statement in group.statements[_MAX_STATEMENTS:])
    if omitted:
        sheet.paragraph(Span(f"and {omitted} more (see -o json)", "dim"), indent=_INDENT)
    write_remedy(sheet, finding.remedy)
