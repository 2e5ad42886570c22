"""The JSON form of a run."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator

from tests.unit.diagnose.verify.measured_runs import NO_MEMORY, measured_run
from webhook.diagnose.verify.matrix_output import matrix_form, matrix_schema
from webhook.diagnose.verify.output import result_form
from webhook.diagnose.verify.results import NodePair
from webhook.model.finding import Finding

SCHEMA = json.loads(matrix_schema())
FINDING = Finding("warning", "NodeGone", "The node went away.", "Run it again.")


def test_the_form() -> None:
    """It is JSON and fits the schema, which allows no other key."""
    report = measured_run(
        ("a", "b", "c"),
        lambda pair, _: NO_MEMORY if "c" in pair else 96,
        devices=("mlx5_0", "mlx5_1"),
        findings=(FINDING,),
    )
    form = matrix_form(report)
    Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(form)))
    assert list(form) == [
        *("level", "code", "text", "remedy", "run", "fabric", "image", "nodes", "pairs"),
        "findings",
    ]
    assert (form["level"], form["code"]) == ("error", "PerftestNoMemory")
    assert form["text"].startswith(
        "perftest could not register memory, most often because the limit on locked memory is too "
        "low."
    )
    assert form["remedy"].startswith("Run the process as root")
    assert (form["run"], form["fabric"]) == ("verify-k7", "v100-ib")
    assert (form["image"], form["nodes"]) == ("registry.example/perftest", ["a", "b", "c"])
    assert form["pairs"][0] == {
        "client": "a",
        "server": "b",
        "level": "ok",
        "results": [result_form(result) for result in report.pairs[0].results],
    }
    assert [len(pair["results"]) for pair in form["pairs"]] == [2] * 6
    assert form["pairs"][1]["level"] == "error"
    node, finding = form["findings"]
    assert (node["level"], node["code"], node["location"]) == (
        "error",
        "SuspectNode",
        {"nodes": ["c"]},
    )
    assert finding == {
        "level": "warning",
        "code": "NodeGone",
        "text": "The node went away.",
        "remedy": "Run it again.",
        "location": {},
    }


def test_a_finding_on_a_device() -> None:
    """A finding names its device."""
    report = measured_run(
        ("a", "b", "c"),
        lambda pair, device: 12 if "c" in pair and device == "mlx5_1" else 96,
        devices=("mlx5_0", "mlx5_1"),
        pairs=[NodePair("a", "b"), NodePair("b", "c"), NodePair("c", "a")],
    )
    (finding,) = matrix_form(report)["findings"]
    assert finding["code"] == "SuspectHca"
    assert finding["location"] == {"nodes": ["c"], "device": "mlx5_1"}


def test_the_schema() -> None:
    """It is a JSON Schema, which allows no unknown key, not even in a result."""
    Draft202012Validator.check_schema(SCHEMA)
    form = json.loads(json.dumps(matrix_form(measured_run(("a", "b"), lambda _pair, _device: 96))))
    form["pairs"][0]["results"][0]["other"] = 1
    assert not Draft202012Validator(SCHEMA).is_valid(form)
