"""The page of a run: self-contained, and readable without color."""

from __future__ import annotations

import re
from html import escape

import pytest

from tests.unit.diagnose.verify.measured_runs import NO_MEMORY, Outcome, measured_run
from tests.unit.diagnose.verify.page_tables import PageTable, tables_of
from webhook.diagnose.verify.matrix_page import matrix_page
from webhook.diagnose.verify.results import NodePair, Remark, RunReport

DEVICES = ("mlx5_0", "mlx5_1")
LATE = Remark("inconclusive", "Interrupted", "The run was interrupted.", "Run it again.")


def outcome(pair: NodePair, device: str) -> Outcome:
    """Return the outcome if a single HCA is slow, and a single pair fails."""
    if pair == ("a", "b"):
        return NO_MEMORY
    return 12.5 if "c" in pair and device == "mlx5_1" else 97


@pytest.fixture
def report() -> RunReport:
    """Return a run of four nodes."""
    return measured_run(tuple("abcd"), outcome, devices=DEVICES, remarks=(LATE,))


def test_a_table_of_all_devices_and_of_each_device(report: RunReport) -> None:
    """Rows are clients and columns servers; a cell has its sign, its verdict and its number."""
    all_devices, first, second, unknown = tables_of(matrix_page(report))
    assert all_devices.caption == "Gb/s; a row sends to the columns"
    assert all_devices.columns == ["1 a", "2 b", "3 c", "4 d"]
    assert all_devices.rows == {
        "1 a": ["", "✘fail", "✘fail 12.5", "✔pass 97.0"],
        "2 b": ["✔pass 97.0", "", "✘fail 12.5", "✔pass 97.0"],
        "3 c": ["✘fail 12.5", "✘fail 12.5", "", "✘fail 12.5"],
        "4 d": ["✔pass 97.0", "✔pass 97.0", "✘fail 12.5", ""],
    }
    assert first.rows["1 a"] == ["", "·", "✔pass 97.0", "✔pass 97.0"]
    assert second.rows["3 c"] == ["✘fail 12.5", "✘fail 12.5", "", "✘fail 12.5"]
    assert unknown.rows["1 a"] == ["", "✘fail", "·", "·"]


def test_headings(report: RunReport) -> None:
    """Each table has a heading; a single device has no table besides the matrix."""
    headings = re.findall("<h2>(.*)</h2>", matrix_page(report))
    assert headings == [
        "What to look at first",
        "All devices, the worst of each pair",
        *DEVICES,
        "no device",
        "What does not pass",
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
            "a b": ["·", "·", "✘fail"],
            "b c": ["✔pass 97.0", "✘fail 12.5", "·"],
            "c d": ["✔pass 97.0", "✘fail 12.5", "·"],
            "d a": ["✔pass 97.0", "✔pass 97.0", "·"],
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
        assert ("href" in cell) == ('class="fail' in cell)
    assert '<a href="#c1"><span aria-hidden="true">✘</span><i>fail</i></a>' in page


def test_the_pointer_brings_up_reason_and_remedy(report: RunReport) -> None:
    """The title of a cell has its pair, the reason and the remedy."""
    failed = report.results[0].judgements[0]
    tooltip = escape(f"a → b: {failed.because} {failed.remedy}")
    assert f'title="{tooltip}"' in matrix_page(report)
    assert 'title="a → d: 97.0 Gb/s of 99.37 Gb/s (0.98)."' in matrix_page(report)


@pytest.mark.parametrize(
    ("gbps", "shade"),
    [(0.4, "fail t0"), (12.5, "fail t1"), (74, "fail t7"), (80, "warn t8"), (97, "pass t10")],
    ids=str,
)
def test_the_farther_from_the_rate_the_darker(gbps: float, shade: str) -> None:
    """A cell is shaded by the tenths of the rate that it reached."""
    page = matrix_page(measured_run(tuple("abc"), lambda _pair, _device: gbps))
    assert set(re.findall('<td class="(\\w+ t\\d+)"', page)) == {shade}


def test_each_shade_has_its_rule(report: RunReport) -> None:
    """The style defines all verdicts and all shades."""
    page = matrix_page(report)
    for shade in range(11):
        assert f".t{shade} {{ --t: {shade}; }}" in page
    for verdict in ("pass", "warn", "inconclusive", "fail"):
        assert f"td.{verdict} {{ background:" in page
        assert page.count(f"--{verdict}: #") == 2  # light and dark


def test_what_concerns_the_whole_run(report: RunReport) -> None:
    """Suspects come first, then remarks; facts of the run are at the top."""
    page = matrix_page(report)
    match = re.search('<ul class="findings">(.*?)</ul>', page, re.DOTALL)
    assert match
    findings = re.findall("<li class=.(\\w+).>.*</i> (.*?)<br>", match[1])
    assert [verdict for verdict, _ in findings] == ["fail", "fail", "inconclusive"]
    assert findings[0][1].startswith("mlx5_1 of c: all 6 measurements with it are bad (6 fail).")
    assert findings[1][1].startswith("a → b: bad (1 fail).")
    assert findings[2][1] == "The run was interrupted."
    for fact in ("verify-k7", "registry.example/perftest", "16 pass, 1 inconclusive, 8 fail"):
        assert f"<dd>{fact}</dd>" in page


def test_nothing_was_measured() -> None:
    """A run without results has no table."""
    page = matrix_page(measured_run(("a", "b"), outcome, pairs=(), remarks=(LATE,)))
    assert tables_of(page) == []
    assert "inconclusive (Interrupted)" in page


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
    assert "n2 → n4 and 8 more:" in alike
    speeds = iter(range(1, 100))
    nodes = [f"n{number}" for number in range(7)]
    different = matrix_page(measured_run(nodes, lambda _pair, _device: next(speeds) / 2))
    assert "<li>and 12 more, in the tables above</li>" in different


def test_the_page_needs_nothing_else(report: RunReport) -> None:
    """No script and no address of another file; a policy forbids both."""
    page = matrix_page(report)
    assert "default-src 'none'" in page
    assert not re.findall("<script|<link|<img|src=|url\\(|@import|https?:", page)
