"""Tests of the answer about the object that configures a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.admission.configuration_review import (
    MAX_ERRORS,
    ConfigurationErrors,
    configuration_answer,
)
from webhook.admission.response import MAX_WARNINGS_LENGTH
from webhook.decide.admission_warnings import MAX_WARNING_LENGTH

ABOUT = {"group": "rdma.lab", "kind": "FabricConfiguration", "name": "default"}
ALL = "`rdma-webhook check-config FILE` lists all of them"


def response(**faults: Any) -> dict[str, Any]:
    """Return the response for these faults."""
    answer = configuration_answer("u", ABOUT, ConfigurationErrors(**faults))
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert answer["response"]["uid"] == "u"
    return answer["response"]  # type: ignore[no-any-return]


def test_without_faults_it_is_allowed() -> None:
    """The answer has no status and no warnings."""
    assert response() == {"uid": "u", "allowed": True}


def test_errors_reject_it_with_paths_and_remedies() -> None:
    """A Status with reason Invalid: kubectl shows its causes, other clients its message."""
    rejection = response(errors=[("spec.a", "is wrong"), ("spec.b", "is worse: write c")])
    assert rejection == {
        "uid": "u",
        "allowed": False,
        "status": {
            "status": "Failure",
            "code": 422,
            "reason": "Invalid",
            "message": "spec.a: is wrong\nspec.b: is worse: write c",
            "details": {
                **ABOUT,
                "causes": [
                    {"reason": "FieldValueInvalid", "field": "spec.a", "message": "is wrong"},
                    {
                        "reason": "FieldValueInvalid",
                        "field": "spec.b",
                        "message": "is worse: write c",
                    },
                ],
            },
        },
    }


@pytest.mark.parametrize(
    ("errors", "more_errors", "last_line"),
    [
        (MAX_ERRORS, 0, ""),
        (MAX_ERRORS, 1, "and 1 more error"),
        (MAX_ERRORS + 1, 0, "and 1 more error"),
        (MAX_ERRORS, 2, "and 2 more errors"),
        (MAX_ERRORS + 2, 1000, "and 1,002 more errors"),
    ],
    ids=["all", "one not here", "one without room", "two not here", "both"],
)
def test_many_errors_are_counted(errors: int, more_errors: int, last_line: str) -> None:
    """A screen has room for the first ones; the last line shows how to see the others."""
    listed = [(f"spec.a[{number}]", "is wrong") for number in range(errors)]
    status = response(errors=listed, more_errors=more_errors)["status"]
    lines = status["message"].splitlines()
    assert lines[0] == "spec.a[0]: is wrong"
    assert lines[MAX_ERRORS:] == ([f"{last_line}: {ALL}"] if last_line else [])
    assert len(status["details"]["causes"]) == len(lines)


def test_warnings_come_with_and_without_errors() -> None:
    """They do not reject the object."""
    warnings = [("spec.a", "b ~c")]
    assert response(warnings=warnings)["allowed"] is True
    assert response(warnings=warnings)["warnings"] == ["spec.a: b ~c"]
    assert response(errors=[("a", "b")], warnings=warnings)["warnings"] == ["spec.a: b ~c"]


@pytest.mark.parametrize(
    ("path", "prefix"),
    [
        ("spec.fabrics[0].hcas", "spec.fabrics[0].hcas: ... "),
        (f"spec.{'a' * 55}", f"spec.{'a' * 55}: ... "),
        (f"spec.{'a' * 56}", f"spec.{'a' * 52}...: ... "),
    ],
    ids=["short", "just short", "long"],
)
def test_a_long_warning_is_wrapped(path: str, prefix: str) -> None:
    """Each line is ASCII, has at most 120 characters and contains the path; no word is lost."""
    sentence = " ".join([*(f"mlx5_{number}-and-more" for number in range(18)), "e\u0301 \x1b"])
    lines = response(warnings=[(path, sentence), (path.replace("a", "b"), sentence)])["warnings"]
    assert len(set(lines)) == len(lines) >= 6
    assert all(
        len(line) <= MAX_WARNING_LENGTH and line.isascii() and line.isprintable() for line in lines
    )
    first, *rest = lines[: len(lines) // 2]
    assert all(line.startswith(prefix) for line in rest)
    joined = " ".join([first, *(line.removeprefix(prefix) for line in rest)])
    assert joined == f"{path}: {sentence[:-3]}? ?"


def test_the_api_server_truncates_no_warning() -> None:
    """Together they stay below its limit, and the last one mentions the omitted ones."""
    warnings = [(f"spec.a[{number}]", "x" * 90) for number in range(60)]
    lines = response(warnings=warnings)["warnings"]
    assert lines[-1] == f"and more warnings: {ALL}"
    assert lines[0] == f"spec.a[0]: {'x' * 90}"
    assert MAX_WARNINGS_LENGTH - 120 < sum(map(len, lines)) <= MAX_WARNINGS_LENGTH


def test_omitted_warnings_are_mentioned() -> None:
    """The rules report a hundred findings at most."""
    lines = response(warnings=[("spec.a", "b")], more_warnings=3)["warnings"]
    assert lines == ["spec.a: b", f"and more warnings: {ALL}"]
