"""An assessment for programs: stable, and described by `verify.schema.json`.

Keys may be added, but are never renamed; so is every code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from webhook.diagnose.tools.benchmarks.measurements import MeasuredRow, Measurement
from webhook.diagnose.verify.results import Assessment, Judgement

_SCHEMA = Path(__file__).with_name("verify.schema.json")


def verify_form(assessment: Assessment) -> dict[str, Any]:
    """Return an assessment as plain JSON values."""
    worst = assessment.worst
    return {
        "verdict": worst.verdict,
        "code": worst.code,
        "because": worst.because,
        "remedy": worst.remedy,
        "measurements": [judgement_form(one) for one in assessment.judgements],
        "findings": [one._asdict() for one in assessment.remarks],
    }


def judgement_form(one: Judgement) -> dict[str, Any]:
    """Return a judgement as plain JSON values."""
    return {
        "verdict": one.verdict,
        "code": one.code,
        "gbps": one.gbps,
        "latencyUs": one.latency_us,
        "expected": one.expected,
        "because": one.because,
        "remedy": one.remedy,
        "source": one.source,
        "layer": one.layer,
        "also": list(one.also),
        "file": one.file,
        "node": one.node,
        "lines": list(one.lines),
        "run": _run(one.measurement) if one.measurement else None,
    }


def _run(run: Measurement) -> dict[str, Any]:
    return {
        "program": run.program,
        "test": run.test,
        "device": run.device,
        "port": run.port,
        "linkLayer": run.link_layer,
        "mtu": run.mtu,
        "qps": run.qps,
        "bidirectional": run.bidirectional,
        "cuda": run.cuda,
        "duration": run.duration,
        "loopback": run.loopback if run.loopback is None else bool(run.loopback),
        "ranks": run.ranks,
        "machines": run.machines,
        "averageGbps": run.average_gbps,
        "wrong": run.wrong,
        "rows": [_row(row) for row in run.rows],
    }


def _row(row: MeasuredRow) -> dict[str, Any]:
    latency = row.latency
    return {
        "line": row.line,
        "size": row.size,
        "iterations": row.iterations,
        "gbps": row.gbps,
        "peakGbps": row.peak_gbps,
        "latencyUs": latency._asdict() if latency else None,
        "inPlace": row.in_place,
        "wrong": row.wrong,
    }


def verify_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of the form."""
    return _SCHEMA.read_text(encoding="utf-8")
