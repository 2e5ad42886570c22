"""Findings as text and JSON look the same in every tool."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator

from webhook.model.finding import Finding, Level, Location
from webhook.text.findings import FindingForm, finding_form, tally
from webhook.text.schema import form_schema

_WHOLE = Location("fabrics.yaml", 3, 7, "fabrics[0].hcas", ("n1", "n2"), "mlx5_0")


def _finding(level: Level = "error", location: Location = Location()) -> Finding:  # noqa: B008
    return Finding(level, "PortDown", "A port is down.", "Check the cable.", location)


def test_json_leaves_out_empty_parts_of_a_location() -> None:
    """A finding without a file, a path and so on has none of their keys."""
    assert finding_form(_finding()) == {
        "level": "error",
        "code": "PortDown",
        "text": "A port is down.",
        "remedy": "Check the cable.",
        "location": {},
    }
    assert finding_form(_finding(location=_WHOLE))["location"] == {
        "file": "fabrics.yaml",
        "line": 3,
        "column": 7,
        "path": "fabrics[0].hcas",
        "nodes": ["n1", "n2"],
        "device": "mlx5_0",
    }


def test_the_schema_describes_the_form() -> None:
    """The generated schema accepts findings, rejects unknown keys, and explains each key."""
    schema = json.loads(form_schema(FindingForm, "A finding"))
    validator = Draft202012Validator(schema)
    form = finding_form(_finding(location=_WHOLE))
    assert validator.is_valid(form)
    assert validator.is_valid(finding_form(_finding()))
    assert not validator.is_valid({**form, "severity": "error"})
    assert not validator.is_valid({**form, "level": "fail"})
    assert schema["title"] == "A finding"
    assert "title" not in schema["properties"]["code"]
    assert schema["properties"]["text"]["description"] == "One or two sentences."


def test_a_tally_counts_levels() -> None:
    """In the order of the scale, without levels that do not occur."""
    assert tally(["error", "ok", "ok"]) == "2 ok, 1 error"
    assert tally(["error", "ok"], ("error", "warning", "ok")) == "1 error, 1 ok"
    assert not tally([])
