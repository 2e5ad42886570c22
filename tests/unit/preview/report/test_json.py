import json

import pytest
from jsonschema import Draft202012Validator

from tests.unit.preview.report.reports import (
    EQUIPPED,
    denied,
    not_opted_in,
    outcome,
    patched,
    preview,
)
from webhook.decide.reasons import PATCHED
from webhook.model.decision import Outcome, PatchOp, Reason, Verdict
from webhook.preview.changed_inputs import ChangedInput, ReasonedHunk
from webhook.preview.line_reasons import LineReason
from webhook.preview.report.json import preview_schema, report_form, report_json
from webhook.preview.report.record import NOT_CALLED, Report
from webhook.text.line_rows import Row

OP: PatchOp = {"op": "add", "path": "/metadata/annotations", "value": {"a": "ü"}}
APPLIED = patched(outcome("ipc-lock", "trainer", "applied", "IPC_LOCK added", OP), warnings=("w",))
VALIDATOR = Draft202012Validator(json.loads(preview_schema()))


def test_the_form_of_a_patched_pod() -> None:
    """It has every key that is documented."""
    assert report_form(Report(previews=(preview(APPLIED),), notes=("a note",))) == {
        "decisions": [
            {
                "document": 0,
                "line": 1,
                "path": "spec.template",
                "kind": "Deployment",
                "name": "trainer",
                "namespace": "lab",
                "controller": "",
                "role": "",
                "derived": False,
                "called": True,
                "calledBecause": "namespace lab has the label",
                "hint": "",
                "annotationsLocation": "spec.template.metadata.annotations",
                "optInAssumed": False,
                "namespaceLabeled": None,
                "mistakes": [],
                "headline": "equipped for RDMA",
                "rdma": "yes",
                "because": {"reason": "Equipped", "message": "all is right"},
                "ifCalled": None,
                "libraries": [],
                "allowed": True,
                "reason": "Patched",
                "message": "",
                "fabric": "v100-ib",
                "evidence": "nvidia.com/v100 in container trainer",
                "outcomes": [
                    {
                        "mutation": "ipc-lock",
                        "container": "trainer",
                        "status": "applied",
                        "reason": "Added",
                        "message": "IPC_LOCK added",
                        "ops": [OP],
                    }
                ],
                "warnings": ["w"],
                "patch": [OP],
                "object": {"spec": {"containers": []}},
            }
        ],
        "changes": [],
        "codes": {
            "Patched": {"meanings": {"": PATCHED.meaning}, "remedy": ""},
            "Equipped": {"meanings": {"": "All is right."}, "remedy": ""},
            "Added": {"meanings": {"ipc-lock": ""}, "remedy": ""},
        },
        "notes": ["a note"],
        "example": False,
        "exampleFabrics": "",
    }


def test_what_was_assumed_and_where_the_annotation_belongs() -> None:
    """A preview on assumptions says which, so that nobody takes it for the pod's own."""
    form = preview(
        APPLIED,
        annotations_location="spec.template.metadata.annotations",
        opt_in_assumed=True,
        namespace_labeled=False,
    )
    report = report_form(Report(previews=(form,), example="v100-ib, a100-ib"))
    (decision,) = report["decisions"]
    assert decision["annotationsLocation"] == "spec.template.metadata.annotations"
    assert decision["optInAssumed"] is True
    assert decision["namespaceLabeled"] is False
    assert (report["example"], report["exampleFabrics"]) == (True, "v100-ib, a100-ib")
    given = report_form(Report(given_example="v100-ib"))
    assert (given["example"], given["exampleFabrics"]) == (False, "v100-ib")


def test_the_changes_of_an_input() -> None:
    """Lines count from 1 and have no break; a reason leads to the outcome that wrote the line."""
    rows = (Row("a: 1\r\n", "a: 1\r\n", 6, 7), Row("b: 1\n", "b: 2", 7, 8), Row(None, "c", None, 9))
    reason = LineReason(0, "env", "trainer", "Added")
    changes = [ChangedInput("train.yaml", (ReasonedHunk(6, 7, rows, ((), (reason,), ())),))]
    report = Report(previews=(preview(APPLIED),))
    form = json.loads(report_json(report, changes))
    VALIDATOR.validate(form)
    written_reason = {"decision": 0, "mutation": "env", "container": "trainer", "reason": "Added"}
    assert form["changes"] == [
        {
            "input": "train.yaml",
            "hunks": [
                {
                    "beforeLine": 7,
                    "afterLine": 8,
                    "rows": [
                        {"kind": "same", "before": "a: 1", "after": "a: 1", "reasons": []},
                        {
                            "kind": "changed",
                            "before": "b: 1",
                            "after": "b: 2",
                            "reasons": [written_reason],
                        },
                        {"kind": "added", "before": None, "after": "c", "reasons": []},
                    ],
                }
            ],
        }
    ]


def test_a_code_with_several_meanings() -> None:
    """Mutations share codes such as `Added`; each has its own sentence."""
    outcomes = [
        Outcome(mutation, "trainer", "applied", Reason("Added", meaning, ""), "")
        for mutation, meaning in (("env", "Variables."), ("ipc-lock", "IPC_LOCK."))
    ]
    report = Report(previews=(preview(patched(*outcomes)),))
    meanings = {"env": "Variables.", "ipc-lock": "IPC_LOCK."}
    assert report_form(report)["codes"]["Added"] == {"meanings": meanings, "remedy": ""}


def test_the_codes_of_a_pod_that_is_not_called() -> None:
    """Both verdicts have theirs, since `ifCalled` has the second."""
    report = Report(previews=(preview(APPLIED, called=False),))
    codes = report_form(report)["codes"]
    assert {"NotCalled", "Equipped"} <= {*codes}
    assert codes["NotCalled"]["remedy"] == NOT_CALLED.remedy


def test_the_libraries_of_the_verdict() -> None:
    """They are those that move the data; a pod that did not opt in has none."""
    verdict = Verdict.of(EQUIPPED, "all is right")._replace(libraries=("NIXL", "NCCL"))
    previews = (preview(patched(verdict=verdict)), preview(not_opted_in()))
    both, none = report_form(Report(previews=previews))["decisions"]
    assert (both["libraries"], none["libraries"]) == (["NIXL", "NCCL"], [])


def test_without_a_call_the_form_has_no_rdma() -> None:
    """`rdma` alone has the same result as the text."""
    (decision,) = report_form(
        Report(previews=(preview(APPLIED, called=False, called_because="why"),))
    )["decisions"]
    assert (decision["rdma"], decision["called"]) == ("no", False)
    assert decision["because"] == {
        "reason": "NotCalled",
        "message": "the webhook would not be called, since why",
    }
    assert decision["ifCalled"] == {"rdma": "yes", "reason": "Equipped", "message": "all is right"}
    (none,) = report_form(Report(previews=(preview(not_opted_in(), called=False),)))["decisions"]
    assert (none["rdma"], none["because"], none["ifCalled"]) == (None, None, None)


@pytest.mark.parametrize(
    "report",
    [
        Report(),
        Report(previews=(preview(APPLIED), preview(not_opted_in(), called=None)), notes=("x",)),
        Report(previews=(preview(denied(), called=False, template_path=()),), example="ib"),
    ],
)
def test_every_form_keeps_to_the_schema(report: Report) -> None:
    """It is parsed from its text, as a program would do."""
    VALIDATOR.validate(json.loads(report_json(report)))


def test_the_schema_is_valid_and_describes_every_key() -> None:
    """The schema rejects a key that it does not describe, so it is complete."""
    Draft202012Validator.check_schema(json.loads(preview_schema()))
    broken = json.loads(report_json(Report(previews=(preview(APPLIED),))))
    broken["decisions"][0]["more"] = 1
    assert not VALIDATOR.is_valid(broken)


def test_the_text_is_readable_json_that_ends_a_line() -> None:
    """Letters of other scripts are not escaped, and numbers of any size are written."""
    big = 10**30
    report = Report(previews=(preview(patched(pod={"x": ["ü", big]})),))
    text = report_json(report)
    assert json.loads(text)["decisions"][0]["object"] == {"x": ["ü", big]}
    assert '"ü"' in text
    assert text.endswith("}\n")
