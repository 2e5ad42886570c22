"""Every reason code has an explanation, and a remedy if action is needed."""

from __future__ import annotations

import pytest

from webhook.decide.fabric_variables import CHECK_ENV_FROM
from webhook.decide.mutations import MUTATIONS
from webhook.decide.reasons import DECISION_REASONS, PIPELINE_REASONS, VERDICT_REASONS
from webhook.diagnose.codes import CODE_ROWS, CODES, MEANINGS, UnknownCodeError, explained, is_code
from webhook.diagnose.tools.causes import CAUSES, Cause
from webhook.preview.report.record import NOT_CALLED


@pytest.mark.parametrize("code", CODES)
def test_a_code_has_one_remedy(code: str) -> None:
    """Reasons with the same code have the same remedy: `why` knows only the code."""
    assert {row.remedy for row in CODE_ROWS if row.code == code} == {explained(code).remedy}


@pytest.mark.parametrize("code", CODES)
def test_what_goes_wrong_says_what_to_do(code: str) -> None:
    """A code for "no" or "unsure" has a remedy; each remedy is a sentence."""
    remedy = explained(code).remedy
    verdicts = {row.rdma for row in CODE_ROWS if row.code == code}
    assert remedy or not verdicts & {"no", "unsure"}
    assert not remedy or (remedy.endswith(".") and remedy[0].isupper())


def test_a_code_explains_a_single_verdict() -> None:
    """All rows of a code that explain a verdict explain the same verdict."""
    for code in CODES:
        assert len({row.rdma for row in CODE_ROWS if row.code == code and row.rdma}) <= 1, code


def test_all_rows_are_there() -> None:
    """They match docs/reasons.md, which is generated from the same tables."""
    reasons = [*VERDICT_REASONS, *DECISION_REASONS, *PIPELINE_REASONS, NOT_CALLED]
    reasons += [reason for mutation in MUTATIONS for reason in mutation.reasons]
    assert [(row.code, row.when, row.remedy, row.rdma, row.quiet) for row in CODE_ROWS] == [
        (reason.code, reason.when, reason.remedy, reason.rdma, reason.quiet) for reason in reasons
    ]


def test_a_code_with_several_rows() -> None:
    """It is explained for each mutation that has it, regardless of case."""
    explanation = explained("envfrom")
    assert explanation.code == "EnvFrom"
    assert [row.part for row in explanation.rows] == ["env", "hcoll", "nvlink"]
    assert explanation.rdma is None
    assert explanation.meaning == MEANINGS[None]
    assert explanation.remedy == CHECK_ENV_FROM


def test_a_code_that_decides() -> None:
    """It has a meaning for RDMA."""
    explanation = explained("FabricAmbiguous")
    assert explanation.rdma == "no"
    assert explanation.meaning == MEANINGS["no"]
    assert [row.part for row in explanation.rows] == ["verdict", "decision", "request"]


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: str(cause.code))
def test_causes_of_logs_are_codes_too(cause: Cause) -> None:
    """Lines of a library's log are explained from the table of causes."""
    explanation = explained(cause.code)
    assert is_code(cause.code)
    assert [(row.part, row.when) for row in explanation.rows] == [("log", cause.means)]
    assert explanation.meaning == ""


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (
            "FabricAmbigous",
            "'FabricAmbigous' is not a reason code: did you mean FabricAmbiguous?",
        ),
        (
            "Xyzzy",
            "'Xyzzy' is not a reason code: docs/reasons.md and docs/troubleshooting.md list them",
        ),
    ],
)
def test_unknown_codes(word: str, message: str) -> None:
    """The nearest codes are suggested."""
    with pytest.raises(UnknownCodeError) as caught:
        explained(word)
    assert str(caught.value).startswith(message.removesuffix("?"))
