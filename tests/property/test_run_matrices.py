"""Laws of the output of a run: whatever was measured, each form shows each pair once."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from xml.etree.ElementTree import fromstring

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.unit.diagnose.verify.measured_runs import NO_MEMORY, measured_run
from tests.unit.diagnose.verify.page_tables import PageTable, tables_of
from webhook.diagnose.tools.benchmarks.measurements import Kind, Measurement
from webhook.diagnose.verify.fault_localization import localize_faults
from webhook.diagnose.verify.matrix import pair_matrix
from webhook.diagnose.verify.matrix_output import (
    matrix_form,
    matrix_junit,
    matrix_schema,
    matrix_text,
)
from webhook.diagnose.verify.matrix_page import matrix_page
from webhook.diagnose.verify.results import BenchmarkResult, NodePair, PairResult, RunReport
from webhook.model.finding import Finding, Level, Location, severity

_WRITTEN_AT = datetime(2026, 11, 29, tzinfo=UTC)
_VALIDATOR = Draft202012Validator(json.loads(matrix_schema()))
#: Words that mean something to HTML, to XML or to a terminal.
_HOSTILE = st.sampled_from(
    ["<script>alert(1)</script>", '" onmouseover="x', "'><b>", "&amp;", "]]>", "\x1b[31m", "\u202e",
     "\n", "</td>", "-->", "<!--", "a" * 60, "node", "ü", "节点", "\ud800"]
)  # fmt: skip
_WORDS = st.text(max_size=8) | _HOSTILE
_DEVICES = st.none() | st.sampled_from(["mlx5_0", "mlx5_1", "mlx5_10"]) | _WORDS
_KINDS: st.SearchStrategy[Kind] = st.sampled_from(("bandwidth", "latency"))
#: `verify` reports no facts, whose sign is the dot of a pair that was not measured.
_LEVELS: st.SearchStrategy[Level] = st.sampled_from(("ok", "warning", "unsure", "error"))
_NUMBERS = st.none() | st.floats(0.001, 900)


@st.composite
def results(draw: st.DrawFn) -> BenchmarkResult:
    """Return a result with any words and any numbers."""
    device = draw(_DEVICES)
    tested = draw(st.booleans())
    code = draw(st.sampled_from(["AtRate", "FarBelowRate", "PortDown", "<x>"]))
    return BenchmarkResult(
        Finding(draw(_LEVELS), code, draw(_WORDS), draw(_WORDS)),
        measurement=Measurement("perftest", "ib_write_bw", draw(_KINDS), (1, 2), device=device)
        if tested
        else None,
        gbps=draw(_NUMBERS) if tested else None,
        latency_us=draw(_NUMBERS) if tested else None,
        expected=draw(st.none() | st.floats(1, 900)) if tested else None,
        computation=draw(_WORDS),
    )


@st.composite
def reports(draw: st.DrawFn) -> RunReport:
    """Return a run over nodes with any names, where any pairs were measured."""
    nodes = draw(st.lists(_WORDS, min_size=2, max_size=6, unique=True))
    pairs = [NodePair(client, server) for client in nodes for server in nodes if client != server]
    measured = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    pair_results = tuple(
        PairResult(pair, tuple(draw(st.lists(results(), min_size=1, max_size=3))))
        for pair in measured
    )
    findings = draw(st.lists(st.builds(Finding, _LEVELS, _WORDS, _WORDS, _WORDS)))
    return RunReport(
        draw(_WORDS), draw(_WORDS), draw(_WORDS), tuple(nodes), pair_results, tuple(findings)
    )


@given(reports())
def test_json_has_each_pair_once(report: RunReport) -> None:
    """The level of the whole is the worst of all."""
    form = json.loads(json.dumps(matrix_form(report)))
    _VALIDATOR.validate(form)
    pairs = [(pair["client"], pair["server"]) for pair in form["pairs"]]
    assert sorted(pairs) == sorted(tuple(pair_result.pair) for pair_result in report.pairs)
    levels = [result["finding"]["level"] for pair in form["pairs"] for result in pair["results"]]
    assert len(levels) == sum(len(pair_result.results) for pair_result in report.pairs)
    all_levels = (*levels, *(finding.level for finding in report.findings))
    assert form["level"] == max(all_levels, key=severity)
    for pair in form["pairs"]:
        pair_levels = [result["finding"]["level"] for result in pair["results"]]
        assert pair["level"] == max(pair_levels, key=severity)


@given(reports())
def test_junit_has_each_result_once(report: RunReport) -> None:
    """The document can be read, and has as many cases as there are results and findings."""
    (suite,) = fromstring(matrix_junit(report))
    count = sum(len(pair_result.results) for pair_result in report.pairs)
    assert len(suite) == int(suite.get("tests", "")) == count + len(report.findings)
    assert len(suite.findall("*/failure")) == int(suite.get("failures", ""))


@given(reports(), st.integers(20, 200), st.booleans())
def test_the_text_has_each_pair_once(report: RunReport, width: int, color: bool) -> None:
    """Each measured pair has a cell in the matrix, or a line in the list."""
    tame = _with_tame_names(report)
    text = re.sub("\x1b\\[[0-9;]*m", "", matrix_text(tame, width=width, color=color))
    overview = re.split("\nexpected: |\n\n", text.split("\n\n", 1)[1])[0]
    signs = len(re.findall(r"[✔!?✘](?= |$)", overview, re.MULTILINE))
    if overview.splitlines()[1].startswith("from"):
        assert signs == len(report.pairs)
    else:
        lines = overview.splitlines()
        assert sum(" → n" in line for line in lines) == len(report.pairs)
        assert signs == sum(map(len, pair_matrix(tame).cells_by_series.values()))


def _with_tame_names(report: RunReport) -> RunReport:
    """Return the same run over n0, n1 and so on, with devices that a terminal wraps as a word."""
    names = {node: f"n{at}" for at, node in enumerate(report.nodes)}
    return report._replace(
        name="run",
        image="image",
        nodes=tuple(names.values()),
        pairs=tuple(
            PairResult(
                NodePair(names[pair_result.pair.client], names[pair_result.pair.server]),
                tuple(map(_with_a_tame_device, pair_result.results)),
            )
            for pair_result in report.pairs
        ),
    )


def _with_a_tame_device(result: BenchmarkResult) -> BenchmarkResult:
    if result.measurement is None or result.measurement.device is None:
        return result
    device = "d" + result.measurement.device.encode("utf-8", "surrogatepass").hex()[:6]
    return result._replace(measurement=result.measurement._replace(device=device))


class _Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


_TAGS = {
    *("html", "meta", "title", "style", "h1", "h2", "h3", "dl", "dt", "dd", "div", "table"),
    *("thead", "tbody", "tr", "th", "td", "span", "i", "a", "ul", "li", "p"),
    *("section", "b", "header", "main", "code"),
}
_ATTRIBUTES = {
    *("lang", "charset", "name", "content", "http-equiv", "class", "id", "href", "title", "scope"),
    *("aria-hidden", "aria-label", "role", "tabindex"),
}


@given(reports())
def test_no_text_escapes_html(report: RunReport) -> None:
    """Whatever names and sentences contain, a page has our tags and attributes and no others."""
    page = matrix_page(report, _WRITTEN_AT, "lab")
    page.encode()
    reader = _Tags()
    reader.feed(page)
    reader.close()
    assert reader.tags <= _TAGS
    assert reader.attributes <= _ATTRIBUTES
    assert page.count("<h1") == page.count("<dl ") == 1


@given(reports())
def test_the_page_has_each_pair_once(report: RunReport) -> None:
    """The first table has a cell, or a row, for each measured pair."""
    first, *devices = tables_of(matrix_page(report, _WRITTEN_AT, "lab"))
    if first.columns[:2] == ["client", "server"]:
        assert devices == []
        assert len(first.rows) == len(report.pairs)
        return
    assert _count_cells([first]) == len(report.pairs)
    measured = sum(map(len, pair_matrix(report).cells_by_series.values()))
    assert _count_cells(devices) in (0, measured)


def _count_cells(tables: list[PageTable]) -> int:
    return sum(
        cell not in ("", "·") for table in tables for row in table.rows.values() for cell in row
    )


@given(reports())
def test_suspects_are_of_this_run(report: RunReport) -> None:
    """A suspect is a node in the run, and no worse than the worst; a run that is ok has none."""
    suspects = localize_faults(pair_matrix(report))
    levels = [result.finding.level for pair in report.pairs for result in pair.results]
    assert not suspects or {"error", "warning"} & set(levels)
    for suspect in suspects:
        assert set(suspect.location.nodes) <= set(report.nodes)
        assert suspect.level in levels
        assert suspect.text
        assert suspect.remedy


_FABRIC = tuple("abcdef")


@settings(max_examples=30)
@given(
    st.sets(st.sampled_from(_FABRIC), min_size=1, max_size=3), st.sampled_from([12.0, NO_MEMORY])
)
def test_bad_nodes_are_named(bad: set[str], outcome: float | str) -> None:
    """Of six nodes, up to three bad ones are named, and no other."""
    report = measured_run(_FABRIC, lambda pair, _: outcome if bad & {*pair} else 96)
    suspects = localize_faults(pair_matrix(report))
    assert {(suspect.code, suspect.location.nodes) for suspect in suspects} == {
        ("SuspectNode", (node,)) for node in bad
    }


@settings(max_examples=30)
@given(st.sampled_from(_FABRIC), st.sampled_from(["mlx5_0", "mlx5_1", "mlx5_2"]))
def test_a_bad_hca_is_named(node: str, device: str) -> None:
    """The bad HCA is named, whichever it is."""
    report = measured_run(
        _FABRIC,
        lambda pair, on: 12 if node in pair and on == device else 96,
        devices=("mlx5_0", "mlx5_1", "mlx5_2"),
    )
    (suspect,) = localize_faults(pair_matrix(report))
    assert (suspect.code, suspect.location) == (
        "SuspectHca",
        Location(nodes=(node,), device=device),
    )
