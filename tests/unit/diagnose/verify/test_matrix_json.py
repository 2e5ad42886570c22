"""The JSON form of a run."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator

from tests.unit.diagnose.verify.measured_runs import NO_MEMORY, measured_run
from webhook.diagnose.verify.matrix_output import matrix_form, matrix_schema
from webhook.diagnose.verify.output import judgement_form
from webhook.diagnose.verify.results import NodePair, Remark

SCHEMA = json.loads(matrix_schema())
REMARK = Remark("warn", "NodeGone", "The node went away.", "Run it again.")


def test_the_form() -> None:
    """It is JSON and fits the schema, which allows no other key."""
    report = measured_run(
        ("a", "b", "c"),
        lambda pair, _: NO_MEMORY if "c" in pair else 96,
        devices=("mlx5_0", "mlx5_1"),
        remarks=(REMARK,),
    )
    form = matrix_form(report)
    Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(form)))
    assert list(form) == [
        *("verdict", "code", "because", "remedy", "run", "fabric", "image", "nodes", "pairs"),
        "findings",
    ]
    assert (form["verdict"], form["code"]) == ("fail", "PerftestNoMemory")
    assert form["because"].startswith("perftest could not register memory.")
    assert form["remedy"].startswith("The process needs")
    assert (form["run"], form["fabric"]) == ("verify-k7", "v100-ib")
    assert (form["image"], form["nodes"]) == ("registry.example/perftest", ["a", "b", "c"])
    assert form["pairs"][0] == {
        "client": "a",
        "server": "b",
        "verdict": "pass",
        "measurements": [judgement_form(judgement) for judgement in report.results[0].judgements],
    }
    assert [len(pair["measurements"]) for pair in form["pairs"]] == [2] * 6
    node, remark = form["findings"]
    assert (node["verdict"], node["code"], node["nodes"]) == ("fail", "SuspectNode", ["c"])
    assert remark == {
        "verdict": "warn",
        "code": "NodeGone",
        "because": "The node went away.",
        "remedy": "Run it again.",
        "nodes": [],
        "device": None,
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
    assert (finding["code"], finding["nodes"], finding["device"]) == ("SuspectHca", ["c"], "mlx5_1")


def test_the_schema() -> None:
    """It is a JSON Schema, and includes the judgement of `verify judge`."""
    Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["$defs"]) == {"verdict", "judgement", "run"}
    form = matrix_form(measured_run(("a", "b"), lambda _pair, _device: 96))
    form["pairs"][0]["measurements"][0]["other"] = 1
    assert not Draft202012Validator(SCHEMA).is_valid(form)
