"""perftest's JSON (`--out_json`); older versions omit quotes and write superfluous commas.

Keys: linux-rdma/perftest, src/perftest_parameters.c (issue 216 on its faults). The reader goes key
by key, so that it reads both forms. The figures carry no unit; `proven_throughput` infers it from
the message rate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from webhook.diagnose.tools.benchmarks.measurements import (
    Kind,
    Latency,
    MeasuredRow,
    Measurement,
    proven_throughput,
)
from webhook.diagnose.tools.observations import Line, LinkLayer

_BEGIN = "test_info"
_PAIR = re.compile(r"\"?\b([A-Za-z]\w{0,40}(?:\.\d)?)\"? {0,8}: {0,8}\"?([\w.+-]{1,80})")
_NUMBER = re.compile(r"\d{1,20}(?:\.\d{1,12})?")
_LINKS: dict[str, LinkLayer] = {"IB": "InfiniBand", "Ethernet": "Ethernet"}
_TEST = re.compile(r"(RDMA_Write|RDMA_Read|Send|Atomic)_(\w{0,40}?)_?(BW|Latency)_")
_KINDS: dict[str, tuple[str, Kind]] = {"BW": ("bw", "bandwidth"), "Latency": ("lat", "latency")}
_LATENCY = ("t_min", "t_typical", "t_avg", "t_max", "percentile_99")
_GPU = re.compile(r"Use_\w{1,20}_memory")


class _Report:
    """A report that is being read."""

    def __init__(self, number: int) -> None:
        self.first = self.last = number
        self.fields: dict[str, tuple[str, int]] = {}
        self.in_results = self.is_complete = False

    def word(self, key: str) -> str:
        return self.fields[key][0] if key in self.fields else ""

    def integer(self, key: str) -> int | None:
        return int(self.word(key)) if self.word(key).isdecimal() else None

    def number(self, key: str) -> float | None:
        return float(self.word(key)) if _NUMBER.fullmatch(self.word(key)) else None


def read_perftest_json(lines: Iterable[Line]) -> list[Measurement]:
    """Read all reports in a text."""
    reports: list[_Report] = []
    for line in lines:
        if _BEGIN in line.text:
            reports.append(_Report(line.number))
        if reports and not reports[-1].is_complete:
            _take(reports[-1], line)
    return [_measurement(report) for report in reports if report.fields]


def _take(report: _Report, line: Line) -> None:
    for key, value in _PAIR.findall(line.text):
        report.fields.setdefault(key, (value, line.number))
        report.last = line.number
    before, results, after = line.text.rpartition("results")
    report.in_results = report.in_results or bool(results)
    report.is_complete = report.in_results and "}" in (after if results else before + after)


def _measurement(report: _Report) -> Measurement:
    test = _TEST.match(report.word("test"))
    name, kind = _KINDS[test[3]] if test else ("", None)
    verb = test[1].removeprefix("RDMA_").lower() if test else ""
    row = _row_of(report) if report.is_complete else None
    return Measurement(
        program="perftest",
        test=f"ib_{verb}_{name}" if test else None,
        kind=kind,
        line_range=(report.first, report.last),
        rows=(row,) if row else (),
        cut_line=None if report.is_complete else report.last,
        device=report.word("Device") or None,
        link_layer=_link_layer(report),
        mtu=report.integer("Mtu"),
        qps=report.integer("Number_of_qps"),
        bidirectional="Bidirectional" in test[2] if test else None,
        dual_port=report.word("Dual_port") == "ON" or None,
        cuda=any(_GPU.fullmatch(key) and value == "ON" for key, (value, _) in report.fields.items())
        or None,
    )


def _link_layer(report: _Report) -> LinkLayer | None:
    """Return the link layer; None for SRD of AWS EFA, whose link perftest calls IB."""
    if report.word("Connection_type") == "SRD":
        return None
    return _LINKS.get(report.word("Link_type"))


def _row_of(report: _Report) -> MeasuredRow | None:
    size = report.integer("MsgSize")
    if size is None:
        return None
    latency = Latency(*(report.number(key) for key in _LATENCY))
    row = MeasuredRow(
        line=report.fields["MsgSize"][1],
        size=size,
        iterations=report.integer("n_iterations"),
        latency=latency if latency != Latency() else None,
    )
    words = [report.word(key) for key in ("BW_average", "BW_peak", "MsgRate")]
    if not all(_NUMBER.fullmatch(word) for word in words):
        return row
    average, peak, rate = words
    throughput = proven_throughput(size, average, peak, rate)
    return row._replace(gbps=throughput.average, peak_gbps=throughput.peak) if throughput else row
