"""The page of a run: self-contained, and readable without color."""

from __future__ import annotations

import re
from html import escape

import pytest

from tests.unit.diagnose.verify.measured_runs import NO_MEMORY, Outcome, measured_run
from tests.unit.diagnose.verify.page_tables import PageTable, tables_of
from webhook.diagnose.verify.matrix_page import matrix_page
from webhook.diagnose.verify.results import NodePair, RunReport
from webhook.model.finding import Finding

DEVICES = ("mlx5_0", "mlx5_1")
LATE = Finding("unsure", "Interrupted", "The run was interrupted.", "Run it again.")


def outcome(pair: NodePair, device: str) -> Outcome:
    """Return the outcome if a single HCA is slow, and a single pair fails."""
    if pair == ("a", "b"):
        return NO_MEMORY
    return 12.5 if "c" in pair and device == "mlx5_1" else 97


@pytest.fixture
def report() -> RunReport:
    """Return a run of four nodes."""
    return measured_run(tuple("abcd"), outcome, devices=DEVICES, findings=(LATE,))


def test_a_table_of_all_devices_and_of_each_device(report: RunReport) -> None:
    """Rows are clients and columns servers; a cell has its sign, its level and its number."""
    all_devices, first, second, unknown = tables_of(matrix_page(report))
    assert all_devices.caption == "Gb/s; rows are clients, which send, and columns are servers"
    assert all_devices.columns == ["1 a", "2 b", "3 c", "4 d"]
    assert all_devices.rows == {
        "1 a": ["", "✘error", "✘error 12.5", "✔ok 97.0"],
        "2 b": ["✔ok 97.0", "", "✘error 12.5", "✔ok 97.0"],
        "3 c": ["✘error 12.5", "✘error 12.5", "", "✘error 12.5"],
        "4 d": ["✔ok 97.0", "✔ok 97.0", "✘error 12.5", ""],
    }
    assert first.rows["1 a"] == ["", "·", "✔ok 97.0", "✔ok 97.0"]
    assert second.rows["3 c"] == ["✘error 12.5", "✘error 12.5", "", "✘error 12.5"]
    assert unknown.rows["1 a"] == ["", "✘error", "·", "·"]


def test_headings(report: RunReport) -> None:
    """Each table has a heading; a single device has no table besides the matrix."""
    headings = re.findall("<h2>(.*)</h2>", matrix_page(report))
    assert headings == [
        "Check first",
        "All devices: the worst of each pair",
        *DEVICES,
        "no device",
        "Findings",
    ]
    page = matrix_page(measured_run(tuple("abc"), lambda _pair, _device: 97))
    assert re.findall("<h2>(.*)</h2>", page) == ["mlx5_0"]


def test_a_list_where_a_matrix_would_be_empty() -> None:
    """A ring is a list of pairs, with a column for each device."""
    ring = [NodePair("a", "b"), NodePair("b", "c"), NodePair("c", "d"), NodePair("d", "a")]
    page = matrix_page(measured_run(tuple("abcd"), outcome, devices=DEVICES, pairs=ring))
    (table,) = tables_of(page)
    assert table == PageTable(
        "Gb/s",
        ["client", "server", "mlx5_0", "mlx5_1", "no device"],
        {
            "a b": ["·", "·", "✘error"],
            "b c": ["✔ok 97.0", "✘error 12.5", "·"],
            "c d": ["✔ok 97.0", "✘error 12.5", "·"],
            "d a": ["✔ok 97.0", "✔ok 97.0", "·"],
        },
    )


def test_cells_link_to_their_findings(report: RunReport) -> None:
    """A cell that does not pass links to its finding, which exists; other cells have no link."""
    page = matrix_page(report)
    links = set(re.findall('href="#(.*?)"', page))
    assert links == set(re.findall('<section id="(.*?)"', page)) == {"c1", "c2"}
    cells = re.findall("<td class=.*?</td>", page)
    assert cells
    for cell in cells:
        assert ("href" in cell) == ('class="error' in cell)
    sign = '<span class="sign" aria-hidden="true">✘</span><i>error</i>'
    assert f'<a href="#c1">{sign}</a>' in page


def test_the_pointer_brings_up_reason_and_remedy(report: RunReport) -> None:
    """The title of a cell has its pair, the reason and the remedy."""
    failed = report.pairs[0].results[0]
    tooltip = escape(f"a → b: {failed.finding.text} {failed.finding.remedy}")
    assert f'title="{tooltip}"' in matrix_page(report)
    assert 'title="a → d: 97.0 Gb/s, 98% of the expected 99.37 Gb/s."' in matrix_page(report)


@pytest.mark.parametrize(
    ("gbps", "shade"),
    [(0.4, "error t0"), (12.5, "error t1"), (74, "error t7"), (80, "warning t8"), (97, "ok t10")],
    ids=str,
)
def test_the_farther_from_the_rate_the_darker(gbps: float, shade: str) -> None:
    """A cell is shaded by the tenths of the rate that it reached."""
    page = matrix_page(measured_run(tuple("abc"), lambda _pair, _device: gbps))
    assert set(re.findall('<td class="(\\w+ t\\d+)"', page)) == {shade}


def test_each_shade_has_its_rule(report: RunReport) -> None:
    """The style defines all levels and all shades."""
    page = matrix_page(report)
    for shade in range(11):
        assert f".t{shade} {{ --t: {shade}; }}" in page
    for level in ("ok", "warning", "unsure", "error"):
        assert f"td.{level} {{ background:" in page
        assert page.count(f" --{level}: #") == 2  # light and dark


def test_what_concerns_the_whole_run(report: RunReport) -> None:
    """Suspects come first, then findings; facts of the run are at the top."""
    page = matrix_page(report)
    match = re.search('<ul class="findings">(.*?)</ul>', page, re.DOTALL)
    assert match
    findings = re.findall("<li class=.(\\w+).>.*</i> (.*?) <code", match[1])
    assert [level for level, _ in findings] == ["error", "error", "unsure"]
    assert findings[0][1].startswith("All 6 measurements with mlx5_1 of c are bad (6 errors).")
    assert findings[1][1].startswith("Bad measurements of a → b (1 error).")
    assert findings[2][1] == "The run was interrupted."
    for fact in ("verify-k7", "registry.example/perftest", "16 ok, 1 unsure, 8 errors"):
        assert f"<dd>{fact}</dd>" in page


def test_nothing_was_measured() -> None:
    """A run without results has no table."""
    page = matrix_page(measured_run(("a", "b"), outcome, pairs=(), findings=(LATE,)))
    assert tables_of(page) == []
    assert "unsure (Interrupted)" in page


def test_many_nodes_have_upright_names() -> None:
    """Above eight nodes, names are upright above narrow columns."""
    for nodes, upright in ((8, False), (9, True)):
        page = matrix_page(
            measured_run([f"n{number}" for number in range(nodes)], lambda _p, _d: 97)
        )
        assert ('<table class="many">' in page) == upright


def test_long_lists_are_cut() -> None:
    """Of many sentences and many pairs, the first are listed; the others are counted."""
    nodes = [f"n{number}" for number in range(5)]
    alike = matrix_page(measured_run(nodes, lambda _pair, _device: 12))
    assert "n2 → n3 and 9 more:" in alike
    speeds = iter(range(1, 100))
    nodes = [f"n{number}" for number in range(7)]
    different = matrix_page(measured_run(nodes, lambda _pair, _device: next(speeds) / 2))
    assert "<li>and 12 more, in the tables above</li>" in different


def test_the_page_needs_nothing_else(report: RunReport) -> None:
    """No script and no address of another file; a policy forbids both."""
    page = matrix_page(report)
    assert "default-src 'none'" in page
    assert not re.findall("<script|<link|<img|src=|url\\(|@import|https?:", page)
