"""Findings about a file as lines: of check-config, and of error messages."""

from __future__ import annotations

import re

import pytest

from webhook.config.findings import UNKNOWN_FIELD, compiler_line, located_text
from webhook.config.rules import RULES, Rule
from webhook.model.finding import Finding, Location

_PATH = Location("fabrics.yaml", 3, 7, "spec.fabrics[0].hcas")


def _finding(location: Location, remedy: str = "") -> Finding:
    return Finding("error", "NoHcas", "is empty", remedy, location)


@pytest.mark.parametrize(
    ("location", "line"),
    [
        (Location(), "error: is empty [NoHcas]"),
        (Location("f.yaml"), "f.yaml: error: is empty [NoHcas]"),
        (Location("f.yaml", 3), "f.yaml:3: error: is empty [NoHcas]"),
        (_PATH, "fabrics.yaml:3:7: error: spec.fabrics[0].hcas: is empty [NoHcas]"),
        (Location("a\nb"), "a\\nb: error: is empty [NoHcas]"),
    ],
)
def test_a_line_for_editors(location: Location, line: str) -> None:
    """`FILE:LINE:COLUMN: level: path: text [Code]`, as far as they are known, on one line."""
    assert compiler_line(_finding(location)) == line


def test_the_remedy_follows_the_text() -> None:
    """As a clause after a colon, without the period of the sentence."""
    finding = _finding(_PATH, "List names, such as mlx5_0.")
    message = "spec.fabrics[0].hcas: is empty; list names, such as mlx5_0"
    assert compiler_line(finding) == f"fabrics.yaml:3:7: error: {message} [NoHcas]"
    assert located_text(finding) == f"fabrics.yaml:3:7: {message}"


def test_a_general_remedy_does_not_follow_an_exact_text() -> None:
    """The text of a finding that no rule makes already says what to do."""
    finding = UNKNOWN_FIELD.finding("error", "unknown field (did you mean hcas?)")
    assert finding.remedy
    assert located_text(finding) == "unknown field (did you mean hcas?)"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.check.__name__)
def test_every_rule_has_a_remedy(rule: Rule) -> None:
    """It is one sentence, so that it can follow the text of a finding as a clause."""
    remedy = rule.code.remedy
    assert re.fullmatch(r"[A-Z][a-z]+ .+\.", remedy)
    assert not re.search(r"\w\. ", remedy)
