"""Laws of how a run is shown: whatever was measured, each form shows each pair once."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from xml.etree.ElementTree import fromstring

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.unit.diagnose.verify.measured_runs import NO_MEMORY, measured_run
from tests.unit.diagnose.verify.page_tables import tables_of
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
from webhook.diagnose.verify.results import (
    WORTHS,
    BenchmarkResult,
    NodePair,
    PairResult,
    Remark,
    RunReport,
)

_VALIDATOR = Draft202012Validator(json.loads(matrix_schema()))
#: Words that mean something to HTML, to XML or to a terminal.
_HOSTILE = st.sampled_from(
    ["<script>alert(1)</script>", '" onmouseover="x', "'><b>", "&amp;", "]]>", "\x1b[31m", "\u202e",
     "\n", "</td>", "-->", "<!--", "a" * 60, "node", "ü", "节点", "\ud800"]
)  # fmt: skip
_WORDS = st.text(max_size=8) | _HOSTILE
_DEVICES = st.none() | st.sampled_from(["mlx5_0", "mlx5_1", "mlx5_10"]) | _WORDS
_KINDS: st.SearchStrategy[Kind] = st.sampled_from(("bandwidth", "latency"))
_NUMBERS = st.none() | st.floats(0.001, 900)


@st.composite
def judgements(draw: st.DrawFn) -> BenchmarkResult:
    """Return a judgement with any words and any numbers."""
    device = draw(_DEVICES)
    tested = draw(st.booleans())
    return BenchmarkResult(
        (1, 2),
        draw(st.sampled_from(WORTHS)),
        draw(st.sampled_from(["AtRate", "FarBelowRate", "PortDown", "<x>"])),
        draw(_WORDS),
        draw(_WORDS),
        measurement=Measurement("perftest", "ib_write_bw", draw(_KINDS), (1, 2), device=device)
        if tested
        else None,
        gbps=draw(_NUMBERS) if tested else None,
        latency_us=draw(_NUMBERS) if tested else None,
        expected=draw(st.none() | st.floats(1, 900)) if tested else None,
        source=draw(_WORDS),
    )


@st.composite
def reports(draw: st.DrawFn) -> RunReport:
    """Return a run over nodes with any names, of which any pairs were measured."""
    nodes = draw(st.lists(_WORDS, min_size=2, max_size=6, unique=True))
    pairs = [NodePair(one, other) for one in nodes for other in nodes if one != other]
    measured = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    results = tuple(
        PairResult(pair, tuple(draw(st.lists(judgements(), min_size=1, max_size=3))))
        for pair in measured
    )
    remarks = draw(st.lists(st.builds(Remark, st.sampled_from(WORTHS), _WORDS, _WORDS, _WORDS)))
    return RunReport(
        draw(_WORDS), draw(_WORDS), draw(_WORDS), tuple(nodes), results, tuple(remarks)
    )


@given(reports())
def test_json_has_each_pair_once(report: RunReport) -> None:
    """And the verdict of the whole is the worst of all."""
    form = json.loads(json.dumps(matrix_form(report)))
    _VALIDATOR.validate(form)
    pairs = [(one["client"], one["server"]) for one in form["pairs"]]
    assert sorted(pairs) == sorted(tuple(one.pair) for one in report.results)
    judged = [one["verdict"] for pair in form["pairs"] for one in pair["measurements"]]
    assert len(judged) == sum(len(one.judgements) for one in report.results)
    worst = max((*judged, *(one.verdict for one in report.remarks)), key=WORTHS.index)
    assert form["verdict"] == worst
    for pair in form["pairs"]:
        own = [one["verdict"] for one in pair["measurements"]]
        assert pair["verdict"] == max(own, key=WORTHS.index)


@given(reports())
def test_junit_has_each_judgement_once(report: RunReport) -> None:
    """The document can be read, and has as many cases as there are judgements and remarks."""
    (suite,) = fromstring(matrix_junit(report))
    judged = sum(len(one.judgements) for one in report.results)
    assert len(suite) == int(suite.get("tests", "")) == judged + len(report.remarks)
    assert len(suite.findall("*/failure")) == int(suite.get("failures", ""))


@given(reports(), st.integers(20, 200), st.booleans())
def test_the_text_has_each_pair_once(report: RunReport, width: int, colour: bool) -> None:
    """Each measured pair has one cell in the matrix, or one line in the list."""
    tame = _with_tame_names(report)
    text = re.sub("\x1b\\[[0-9;]*m", "", matrix_text(tame, width=width, colour=colour))
    overview = re.split("\nexpected: |\n\n", text.split("\n\n", 1)[1])[0]
    shown = len(re.findall(r"[✔!?✘](?= |$)", overview, re.MULTILINE))
    if overview.splitlines()[1].startswith("from"):
        assert shown == len(report.results)
    else:
        lines = overview.splitlines()
        assert sum(" → n" in line for line in lines) == len(report.results)
        assert shown == sum(len(one) for one in pair_matrix(tame).columns.values())


def _with_tame_names(report: RunReport) -> RunReport:
    """Return the same run over n0, n1 and so on, with devices that a terminal wraps as one word."""
    names = {node: f"n{at}" for at, node in enumerate(report.nodes)}
    return report._replace(
        name="run",
        image="image",
        nodes=tuple(names.values()),
        results=tuple(
            PairResult(
                NodePair(names[one.pair.client], names[one.pair.server]),
                tuple(map(_with_a_tame_device, one.judgements)),
            )
            for one in report.results
        ),
    )


def _with_a_tame_device(one: BenchmarkResult) -> BenchmarkResult:
    if one.measurement is None or one.measurement.device is None:
        return one
    device = "d" + one.measurement.device.encode("utf-8", "surrogatepass").hex()[:6]
    return one._replace(measurement=one.measurement._replace(device=device))


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
    *("caption", "thead", "tbody", "tr", "th", "td", "span", "i", "a", "ul", "li", "br", "p"),
    *("section", "b"),
}
_ATTRIBUTES = {
    *("lang", "charset", "name", "content", "http-equiv", "class", "id", "href", "title", "scope"),
    "aria-hidden",
}


@given(reports())
def test_no_text_escapes_html(report: RunReport) -> None:
    """Whatever names and sentences hold, a page has our tags and attributes and no others."""
    page = matrix_page(report)
    page.encode()
    found = _Tags()
    found.feed(page)
    found.close()
    assert found.tags <= _TAGS
    assert found.attributes <= _ATTRIBUTES
    assert page.count("<h1") == page.count("<dl>") == 1


@given(reports())
def test_the_page_has_each_pair_once(report: RunReport) -> None:
    """The first table has a cell, or a row, for each measured pair."""
    first, *devices = tables_of(matrix_page(report))
    if first.columns[:2] == ["client", "server"]:
        assert devices == []
        assert len(first.rows) == len(report.results)
        return
    signs = [cell for row in first.rows.values() for cell in row if cell not in ("", "·")]
    assert len(signs) == len(report.results)
    of_devices = [
        cell
        for one in devices
        for row in one.rows.values()
        for cell in row
        if cell not in ("", "·")
    ]
    wanted = sum(map(len, pair_matrix(report).columns.values()))
    assert len(of_devices) in (0, wanted)


@given(reports())
def test_suspects_are_of_this_run(report: RunReport) -> None:
    """A suspect is a node that took part, and no worse than the worst; what passes has none."""
    found = localize_faults(pair_matrix(report))
    judged = [one.verdict for result in report.results for one in result.judgements]
    assert not found or {"fail", "warn"} & set(judged)
    for one in found:
        assert set(one.nodes) <= set(report.nodes)
        assert one.verdict in judged
        assert one.because
        assert one.remedy


_FABRIC = tuple("abcdef")


@settings(max_examples=30)
@given(
    st.sets(st.sampled_from(_FABRIC), min_size=1, max_size=3), st.sampled_from([12.0, NO_MEMORY])
)
def test_bad_nodes_are_found(bad: set[str], outcome: float | str) -> None:
    """Of six nodes, up to three bad ones are named, and nobody else."""
    report = measured_run(_FABRIC, lambda pair, _: outcome if bad & {*pair} else 96)
    found = localize_faults(pair_matrix(report))
    assert {(one.code, one.nodes) for one in found} == {("SuspectNode", (one,)) for one in bad}


@settings(max_examples=30)
@given(st.sampled_from(_FABRIC), st.sampled_from(["mlx5_0", "mlx5_1", "mlx5_2"]))
def test_a_bad_hca_is_found(node: str, device: str) -> None:
    """The one bad HCA is named, whichever it is."""
    report = measured_run(
        _FABRIC,
        lambda pair, on: 12 if node in pair and on == device else 96,
        devices=("mlx5_0", "mlx5_1", "mlx5_2"),
    )
    (one,) = localize_faults(pair_matrix(report))
    assert (one.code, one.nodes, one.device) == ("SuspectHca", (node,), device)
