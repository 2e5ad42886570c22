"""Every code has an explanation, and a remedy if action is needed."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

import pytest
from jsonschema import Draft202012Validator

from webhook.config.rules import RULES
from webhook.config.rules.rule import Rule
from webhook.decide import mutations
from webhook.decide.fabric_variables import CHECK_ENV_FROM
from webhook.decide.mutations import MUTATIONS
from webhook.decide.reasons import DECISION_REASONS, REASONS_OUTSIDE_MUTATIONS, VERDICT_REASONS
from webhook.diagnose.codes import (
    CODE_NAMES,
    CODE_ROWS,
    EFFECTS,
    UnknownCodeError,
    explain_code,
    is_code,
)
from webhook.diagnose.tools.known_lines import KNOWN_LINES, KnownLine
from webhook.diagnose.why.code_output import code_form, code_text, codes_text
from webhook.diagnose.why.output import why_form, why_schema
from webhook.diagnose.why.reasons import REASON_ROWS
from webhook.model.decision import Rdma, Reason
from webhook.preview.report.record import NOT_CALLED

VALIDATOR = Draft202012Validator(json.loads(why_schema()))
REASON_CODES = tuple(dict.fromkeys(row.reason.code for row in REASON_ROWS))


def _reasons_of_failures() -> Iterator[Reason]:
    """Yield the reasons of mutations that failed."""
    for module_info in iter_modules(mutations.__path__, f"{mutations.__name__}."):
        module = import_module(module_info.name)
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "failed":
                yield getattr(module, ast.unparse(node.args[1]))


REASONS_OF_FAILURES = tuple(_reasons_of_failures())


def remedies(code: str) -> set[str]:
    """Return the remedies of a reason code."""
    return {row.reason.remedy for row in REASON_ROWS if row.reason.code == code}


@pytest.mark.parametrize("code", REASON_CODES)
def test_a_reason_code_has_one_remedy(code: str) -> None:
    """Reasons with the same code have the same remedy: a status has only the code."""
    assert len(remedies(code)) == 1


@pytest.mark.parametrize("code", REASON_CODES)
def test_what_goes_wrong_says_what_to_do(code: str) -> None:
    """A code for "no" or "unsure" has a remedy."""
    verdicts = {row.reason.rdma for row in REASON_ROWS if row.reason.code == code}
    assert remedies(code) != {""} or not verdicts & {"no", "unsure"}


def test_texts_are_sentences() -> None:
    """Each code is a word in CamelCase, with sentences that fit in the row of a table."""
    for tool, part, code, _ in CODE_ROWS:
        assert code.code.isalnum(), code
        assert code.code[0].isupper(), code
        assert code.meaning.endswith("."), (tool, part, code)
        assert not code.remedy or (code.remedy.endswith(".") and code.remedy[0].isupper()), code
        assert not {"\n", "|"} & set(code.meaning + code.remedy), code


def test_a_code_explains_a_single_verdict() -> None:
    """All rows of a code that explain a verdict explain the same verdict."""
    for code in CODE_NAMES:
        verdicts = {row.rdma for row in CODE_ROWS if row.code.code == code and row.rdma}
        assert len(verdicts) <= 1, code


def test_a_code_has_one_spelling() -> None:
    """`why CODE` accepts any case, so no two codes differ in case alone."""
    assert len({code.lower() for code in CODE_NAMES}) == len(CODE_NAMES)


def test_a_place_has_one_meaning_of_a_code() -> None:
    """No code has two rows with the same label, which would contradict each other."""
    rows = [(row.label, row.code.code) for row in CODE_ROWS]
    assert len(set(rows)) == len(rows)


def test_all_reasons_are_there() -> None:
    """They match docs/reasons.md, which is generated from the same tables."""
    reasons = [*VERDICT_REASONS, *DECISION_REASONS, *REASONS_OUTSIDE_MUTATIONS]
    reasons += [reason for mutation in MUTATIONS for reason in mutation.reasons]
    reasons.append(NOT_CALLED)
    rows = [row for row in CODE_ROWS if row.tool in ("webhook", "preview")]
    assert [(*row.code, row.rdma) for row in rows] == [
        (reason.code, reason.meaning, reason.remedy, reason.rdma) for reason in reasons
    ]


def test_a_code_with_several_rows() -> None:
    """It is explained for each mutation that has it, regardless of case."""
    explanation = explain_code("envfrom")
    assert explanation.code == "EnvFrom"
    assert [row.part for row in explanation.rows] == ["env", "hcoll", "nvlink"]
    assert explanation.rdma is None
    assert explanation.effect == EFFECTS[None]
    assert {row.code.remedy for row in explanation.rows} == {CHECK_ENV_FROM}


def test_a_code_that_decides() -> None:
    """It has an effect on RDMA."""
    explanation = explain_code("FabricAmbiguous")
    assert explanation.rdma == "no"
    assert explanation.effect.startswith(EFFECTS["no"])
    assert [row.part for row in explanation.rows] == ["verdict", "decision", "request"]


def test_a_code_that_denies_a_pod() -> None:
    """Its effect does not mention traffic over sockets: there is no pod."""
    assert explain_code("InvalidAnnotation").effect.startswith("The webhook denies the pod")


@pytest.mark.parametrize("reason", REASONS_OF_FAILURES, ids=lambda reason: reason.code)
def test_a_code_of_a_failed_mutation_denies_the_pod(reason: Reason) -> None:
    """Its effect mentions the denial, with or without a condition."""
    assert "the webhook denies the pod" in explain_code(reason.code).effect.lower()


@pytest.mark.parametrize(
    ("code", "rdma", "field"),
    [
        ("FabricAmbiguous", "no", "defaults.onAmbiguous"),
        ("PodSecurity", "unsure", "defaults.podSecurity"),
    ],
)
def test_a_code_that_denies_a_pod_only_if_configured(code: str, rdma: Rdma, field: str) -> None:
    """Its effect names the verdict, and the field that makes it a denial."""
    assert explain_code(code).effect == (
        f"{EFFECTS[rdma]} If `{field}` is `deny`, the webhook denies the pod instead."
    )


@pytest.mark.parametrize(
    ("code", "by_mutation"), [("NcclIbDisabled", True), ("NoTarget", False), ("PodSecurity", False)]
)
def test_a_code_that_also_warns(code: str, by_mutation: bool) -> None:
    """A mutation may report it for a pod whose verdict is another."""
    assert ("If a mutation reports this code" in explain_code(code).effect) == by_mutation


def test_a_code_of_two_tools() -> None:
    """Each tool has its own meaning and remedy."""
    explanation = explain_code("FabricWithoutNodes")
    assert [(row.tool, row.part) for row in explanation.rows] == [
        ("webhook", "verdict"),
        ("fabrics", ""),
    ]
    assert code_text(explanation, width=300) == (
        "FabricWithoutNodes\n"
        "  Whether the pod has RDMA depends on something that admission cannot see.\n"
        f"  In a verdict: {explanation.rows[0].code.meaning}\n"
        f"    → {explanation.rows[0].code.remedy}\n"
        "  In the output of fabrics: No node belongs to the fabric.\n"
        f"    → {explanation.rows[1].code.remedy}\n"
    )


def test_the_code_of_a_rule() -> None:
    """A rule is an imperative, its meaning a statement about the file; its remedy is its own."""
    (row,) = explain_code("UniqueNames").rows
    assert row.code.meaning == "Two fabrics in the configuration have the same name."
    assert row.code.remedy == "Give one of the two fabrics a different name."


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code.code)
def test_a_rule_has_a_subject(rule: Rule) -> None:
    """Its imperative names what it judges, so its meaning states who breaks it, and how."""
    verb = {"error": "Reject", "warning": "Warn about"}[rule.level]
    subject, that, statement = rule.code.meaning.removeprefix(f"{verb} ").partition(" that ")
    subjects = {
        "a configuration": "The configuration",
        "a fabric": "A fabric in the configuration",
        "two fabrics": "Two fabrics in the configuration",
    }
    assert that
    meaning = explain_code(rule.code.code).rows[0].code.meaning
    assert meaning == f"{subjects[subject]} {statement}"


@pytest.mark.parametrize("known_line", KNOWN_LINES, ids=lambda known_line: str(known_line.code))
def test_known_lines_are_codes_too(known_line: KnownLine) -> None:
    """Lines of a library's log are explained from the table of known lines; they decide nothing."""
    explanation = explain_code(known_line.code)
    assert is_code(known_line.code.upper())
    row = explanation.rows[0]
    assert (row.tool, row.part, row.code.meaning) == ("why", "log", known_line.meaning)
    assert (explanation.effect, explanation.rdma) == ("", None)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("FabricAmbigous", "'FabricAmbigous' is not a code; did you mean FabricAmbiguous?"),
        (
            "annotationdiffer",
            (
                "'annotationdiffer' is not a code; did you mean AnnotationDiffers, Annotations or "
                "AnnotationKeys?"
            ),
        ),
        ("Xyzzy", "'Xyzzy' is not a code (rdma-webhook why --codes lists all codes)"),
    ],
)
def test_unknown_codes(word: str, message: str) -> None:
    """The nearest codes are suggested."""
    assert not is_code(word)
    with pytest.raises(UnknownCodeError) as caught:
        explain_code(word)
    assert str(caught.value).startswith(message.removesuffix("?"))


# The outputs.


def test_the_text_of_a_code() -> None:
    """It has the effect, the places where the code occurs, and the remedy."""
    row = explain_code("GuaranteedLost").rows[0].code
    assert code_text(explain_code("GuaranteedLost"), width=300) == (
        "GuaranteedLost\n"
        "  This code alone does not determine whether the pod has RDMA.\n"
        f"  In the mutation `memory-limit`: {row.meaning}\n"
        f"    → {row.remedy}\n"
    )
    assert code_text(explain_code("Equipped")).endswith("    → No action is needed.\n")
    assert code_text(explain_code("PortDown")).startswith(
        "PortDown\n  In a log: A port of the RDMA device"
    )


def test_places_with_the_same_meaning_share_a_line() -> None:
    """The text does not repeat a sentence."""
    text = code_text(explain_code("FabricAmbiguous"), width=300)
    assert text.count("  In a verdict, a decision or the checks that precede the mutations: ") == 1


@pytest.mark.parametrize("code", CODE_NAMES)
def test_codes_fit_the_schema(code: str) -> None:
    """The form of `-o json` for every code fits."""
    VALIDATOR.validate(why_form([], [code_form(explain_code(code))]))


def test_the_list_of_codes() -> None:
    """It has a line for each code and tool, with the first meaning of several."""
    names = ("EnvFrom", "FabricWithoutNodes", "NoDeviceFound")
    lines = codes_text([explain_code(name) for name in names]).splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["EnvFrom", "webhook"],
        ["FabricWithoutNodes", "webhook"],
        ["FabricWithoutNodes", "fabrics"],
        ["NoDeviceFound", "why"],
    ]
    assert lines[-1].endswith(
        "NCCL found no RDMA device, so it uses TCP sockets or, with NCCL_NET=IB, fails."
    )


def test_the_list_of_codes_on_a_terminal() -> None:
    """Meanings are cut to the width, but to no less than twenty characters."""
    explanations = [explain_code("FabricWithoutNodes")]
    whole = codes_text(explanations).splitlines()
    lines = codes_text(explanations, width=50).splitlines()
    assert [len(line) for line in lines] == [50, 50]
    assert all(line.endswith("…") for line in lines)
    assert lines[0][:-1] == whole[0][:49]
    narrow = codes_text(explanations, width=10).splitlines()
    assert narrow[0] == "FabricWithoutNodes  webhook  No node belongs to…"
    wide = codes_text(explanations, width=len(whole[1]))
    assert wide.splitlines()[1] == whole[1]
