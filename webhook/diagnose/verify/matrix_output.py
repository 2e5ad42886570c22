"""A run for programs: stable, and described by `verify-run.schema.json`.

Keys may be added, but are never renamed; so is every code.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from webhook.diagnose.verify.fault_localization import Suspect, suspects
from webhook.diagnose.verify.matrix import MatrixCell, pair_matrix
from webhook.diagnose.verify.results import Remark
from webhook.diagnose.verify.run_report import RunReport
from webhook.diagnose.verify.verify_json import judgement_form, verify_schema

_SCHEMA = Path(__file__).with_name("verify-run.schema.json")


def matrix_form(report: RunReport) -> dict[str, Any]:
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
            *(_finding(one) for one in suspects(matrix)),
            *(_remark(one) for one in report.remarks),
        ],
    }


def _pair(cell: MatrixCell) -> dict[str, Any]:
    return {
        "client": cell.pair.client,
        "server": cell.pair.server,
        "verdict": cell.verdict,
        "measurements": [judgement_form(one) for one in cell.judgements],
    }


def _finding(one: Suspect) -> dict[str, Any]:
    return {**one._asdict(), "nodes": list(one.nodes)}


def _remark(one: Remark) -> dict[str, Any]:
    return {**one._asdict(), "nodes": [], "device": None}


def matrix_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of the form, with that of a judgement in it."""
    schema = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    schema["$defs"] = json.loads(verify_schema())["$defs"]
    return json.dumps(schema, indent=2) + "\n"
