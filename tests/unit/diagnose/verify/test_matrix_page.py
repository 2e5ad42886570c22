"""The page of a run: self-contained, and readable without color."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import escape

import pytest

from tests.unit.diagnose.verify.measured_runs import NO_MEMORY, Outcome, measured_run
from tests.unit.diagnose.verify.page_tables import PageTable, tables_of
from webhook import __version__
from webhook.diagnose.verify.matrix_page import matrix_page
from webhook.diagnose.verify.results import NodePair, PairResult, RunReport
from webhook.model.finding import Finding

DEVICES = ("mlx5_0", "mlx5_1")
LATE = Finding("unsure", "Interrupted", "The run was interrupted.", "Run it again.")


def page_of(report: RunReport) -> str:
    """Return the page of a run in the namespace lab."""
    return matrix_page(report, datetime(2026, 11, 29, 12, 5, tzinfo=UTC), "lab")


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
    all_devices, first, second, unknown = tables_of(page_of(report))
    assert all_devices.columns == ["1 a", "2 b", "3 c", "4 d"]
    assert all_devices.rows == {
        "1 a": ["", "✘error 2", "✘error 12.5", "✔ok 97.0"],
        "2 b": ["✔ok 97.0", "", "✘error 12.5", "✔ok 97.0"],
        "3 c": ["✘error 12.5", "✘error 12.5", "", "✘error 12.5"],
        "4 d": ["✔ok 97.0", "✔ok 97.0", "✘error 12.5", ""],
    }
    assert first.rows["1 a"] == ["", "·", "✔ok 97.0", "✔ok 97.0"]
    assert second.rows["3 c"] == ["✘error 12.5", "✘error 12.5", "", "✘error 12.5"]
    assert unknown.rows["1 a"] == ["", "✘error 2", "·", "·"]


def test_headings(report: RunReport) -> None:
    """Each table has a heading; a single device has no table besides the matrix."""
    heading = "<h[23]>([^<]*)</h"
    assert re.findall(heading, page_of(report)) == [
        "Check first",
        "Matrix",
        "All devices: the worst of each pair",
        *DEVICES,
        "no device",
        "Findings",
    ]
    page = page_of(measured_run(tuple("abc"), lambda _pair, _device: 97))
    assert re.findall(heading, page) == ["Matrix", "mlx5_0"]


def test_a_list_where_a_matrix_would_be_empty() -> None:
    """A ring is a list of pairs, with a column for each device."""
    ring = [NodePair("a", "b"), NodePair("b", "c"), NodePair("c", "d"), NodePair("d", "a")]
    page = page_of(measured_run(tuple("abcd"), outcome, devices=DEVICES, pairs=ring))
    (table,) = tables_of(page)
    assert table == PageTable(
        "",
        ["client", "server", "mlx5_0", "mlx5_1", "no device"],
        {
            "a b": ["·", "·", "✘error 2"],
            "b c": ["✔ok 97.0", "✘error 12.5", "·"],
            "c d": ["✔ok 97.0", "✘error 12.5", "·"],
            "d a": ["✔ok 97.0", "✔ok 97.0", "·"],
        },
    )


def test_cells_link_to_their_findings(report: RunReport) -> None:
    """A cell that does not pass links to its finding, which exists; other cells have no link."""
    page = page_of(report)
    links = set(re.findall('href="#(.*?)"', page))
    assert links == set(re.findall('<section id="(.*?)"', page)) == {"c1", "c2"}
    cells = re.findall("<td class=.*?</td>", page)
    assert cells
    for cell in cells:
        assert ("href" in cell) == ('class="error' in cell)
    sign = '<span class="sign" aria-hidden="true">✘</span><i>error</i>'
    assert f'<a href="#c1">{sign} 2</a>' in page


def test_the_pointer_brings_up_reason_and_remedy(report: RunReport) -> None:
    """The title of a cell has its pair, the reason and the remedy."""
    failed = report.pairs[0].results[0]
    tooltip = escape(f"a → b: {failed.finding.text} {failed.finding.remedy}")
    assert f'title="{tooltip}"' in page_of(report)
    assert 'title="a → d: 97.0 Gb/s, 98% of the expected 99.37 Gb/s."' in page_of(report)


@pytest.mark.parametrize(
    ("gbps", "shade"),
    [(0.4, "error t0"), (12.5, "error t1"), (74, "error t7"), (80, "warning t8"), (97, "ok t10")],
    ids=str,
)
def test_the_farther_from_the_rate_the_darker(gbps: float, shade: str) -> None:
    """A cell is shaded by the tenths of the rate that it reached."""
    page = page_of(measured_run(tuple("abc"), lambda _pair, _device: gbps))
    assert set(re.findall('<td class="(\\w+ t\\d+)"', page)) == {shade}


def test_each_shade_has_its_rule(report: RunReport) -> None:
    """The style defines all levels and all shades."""
    page = page_of(report)
    for shade in range(11):
        assert f".t{shade} {{ --t: {shade}; }}" in page
    for level in ("ok", "warning", "unsure", "error"):
        assert f"td.{level} {{ background:" in page
        assert page.count(f" --{level}: #") == 2  # light and dark


def test_what_concerns_the_whole_run(report: RunReport) -> None:
    """Why the run ended comes first, then the facts of the run, then its suspects."""
    page = page_of(report)
    sentence = "<li class=.(\\w+).>.*</i><div>(.*?) <code"
    late, *suspects = re.findall(sentence, page)
    assert late == ("unsure", "The run was interrupted.")
    assert [level for level, _ in suspects] == ["error", "error"]
    assert suspects[0][1].startswith("All 6 measurements with mlx5_1 of c are bad (6 errors).")
    assert suspects[1][1].startswith("Bad measurements of a → b (2 errors).")
    assert '<ul class="findings banner">' in page
    order = [page.index(part) for part in ("banner", '<dl class="facts">', "<h2>Check first")]
    assert order == sorted(order)
    for fact in ("verify-k7", "16 ok, 8 errors"):
        assert f"<dd>{fact}</dd>" in page
    assert "banner" not in page_of(report._replace(findings=())).partition("</style>")[2]


def test_nothing_was_measured() -> None:
    """A run without results has no table."""
    page = page_of(measured_run(("a", "b"), outcome, pairs=(), findings=(LATE,)))
    assert tables_of(page) == []
    assert "unsure (Interrupted)" in page


def test_many_nodes_have_upright_names() -> None:
    """Above eight nodes, names are upright above narrow columns."""
    for nodes, upright in ((8, False), (9, True)):
        page = page_of(measured_run([f"n{number}" for number in range(nodes)], lambda _p, _d: 97))
        assert ('<table class="many">' in page) == upright


def test_long_lists_are_cut() -> None:
    """Of many sentences and many pairs, the first are listed; the others are counted."""
    nodes = [f"n{number}" for number in range(5)]
    alike = page_of(measured_run(nodes, lambda _pair, _device: 12))
    assert "n2 → n3 and 9 more: " in alike
    speeds = iter(range(1, 100))
    nodes = [f"n{number}" for number in range(7)]
    different = page_of(measured_run(nodes, lambda _pair, _device: next(speeds) / 2))
    assert "<li>and 12 more, in the tables above</li>" in different


def test_the_page_needs_nothing_else(report: RunReport) -> None:
    """No script and no address of another file; a policy forbids both."""
    page = page_of(report)
    assert "default-src 'none'" in page
    assert not re.findall("<script|<link|<img|src=|url\\(|@import|https?:", page)


def test_the_header_has_time_version_namespace_and_image(report: RunReport) -> None:
    """The time is in UTC, to the minute, whatever zone it is given in."""
    brand = (
        f'<p class="brand"><span class="whole">rdma-webhook</span> verify run {__version__} · '
        '<span class="whole">2026-11-29</span> 12:05 UTC · namespace lab · '
        "image registry.example/perftest</p>"
    )
    assert brand in page_of(report)


def test_the_lead_promises_what_is_shown(report: RunReport) -> None:
    """It names latencies only if the run measured them."""
    lead = "Measured {} between nodes, compared with what the fabric can carry."
    assert lead.format("bandwidths") in page_of(report)
    pair, (first, *others) = report.pairs[-1]
    slow = PairResult(pair, (first._replace(gbps=None, latency_us=2.0), *others))
    with_latency = report._replace(pairs=(*report.pairs[:-1], slow))
    assert lead.format("bandwidths and latencies") in page_of(with_latency)


def test_all_counts_are_of_results(report: RunReport) -> None:
    """The errors of the header are those of the cells, of the suspects and of the findings."""
    page = page_of(report)
    assert "<dd>16 ok, 8 errors</dd>" in page  # the interruption is no result
    _, *of_devices = tables_of(page)
    cells = [cell for table in of_devices for row in table.rows.values() for cell in row]
    assert cells.count("✘error 12.5") + 2 * cells.count("✘error 2") == 8
    assert sum(map(int, re.findall(r"\((\d+) errors?\)", page))) == 8
    assert "<b>a → b (2 results)</b>: " in page


def test_only_the_subject_is_bold(report: RunReport) -> None:
    """The pairs that a test was slow on are not."""
    assert "<li><b>ib_write_bw mlx5_1</b>, a → c, b → c, " in page_of(report)


def test_a_caption_does_not_scroll_and_is_there_once(report: RunReport) -> None:
    """It is above all tables, outside the parts that scroll."""
    page = page_of(report)
    caption = '<p class="caption">Gb/s; rows are clients, which send, and columns are servers</p>'
    assert page.count(caption) == 1
    assert page.index(caption) < page.index('<div class="scroll')
    assert "<caption" not in page


def test_only_a_matrix_of_many_nodes_may_be_wider_than_the_text() -> None:
    """Its part that scrolls has a class of its own; those of few nodes have not."""
    for nodes, kinds in ((8, {"scroll"}), (9, {"scroll wide"})):
        page = page_of(measured_run([f"n{number}" for number in range(nodes)], lambda _p, _d: 97))
        assert set(re.findall('<div class="(scroll.*?)" tabindex="0"', page)) == kinds
