"""The alert rules of manifests/monitoring, and their table in docs/operation.md.

tests/integration/test_alerts.py has Prometheus evaluate them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.generated_pages import DOCS, assert_up_to_date
from tests.unit.serve.test_operation_page import PAGE

ROOT = DOCS.parent
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((ROOT / "manifests/monitoring/prometheusrule.yaml").read_text())[
        "spec"
    ]["groups"]
    for rule in group["rules"]
]
PLANTED = "".join(
    file.read_text(encoding="utf-8")
    for file in sorted((ROOT / "tests/integration").glob("test_alerts*.py"))
)
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])


def _table() -> str:
    lines = ["", "| alert | severity | after | meaning, and what to do |", "|---|---|---|---|"]
    for rule in RULES:
        summary, description = _meaning(rule)
        severity, pause = rule["labels"]["severity"], rule["for"]
        after = pause if pause != "0m" else "at once"
        lines.append(f"| `{rule['alert']}` | {severity} | {after} | {summary} {description} |")
    return "\n".join([*lines, "", ""])


def _meaning(rule: dict[str, Any]) -> tuple[str, str]:
    """Return summary and description with words for labels: REPLICA, FABRIC."""
    annotations = rule["annotations"]
    summary = annotations["summary"].replace("{{ $labels.pod }}", "REPLICA")
    summary = re.sub(r"{{ \$(?:labels\.)?(\w+) }}", lambda match: match[1].upper(), summary)
    return summary, annotations["description"]


def test_the_table_is_up_to_date() -> None:
    """The page lists every alert as the rules define it."""
    assert_up_to_date(PAGE, "<!-- alerts -->", "<!-- /alerts -->", _table())


@each_rule
def test_a_rule_has_all_its_fields(rule: dict[str, Any]) -> None:
    """Its name, severity and texts have one form; people who are called at night read them."""
    assert re.fullmatch(r"RdmaWebhook([A-Z][a-z]+|CA)+", rule["alert"])
    assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"].keys() == {"severity"}
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"].keys() == {"summary", "description", "docs"}
    for sentence in _meaning(rule):
        assert sentence.endswith(".")
        assert not {"\n", "|", "{"} & set(sentence)


@each_rule
def test_a_critical_alert_is_about_pods(rule: dict[str, Any]) -> None:
    """Pods are rejected or start without RDMA, now or soon: only then is somebody woken."""
    description = rule["annotations"]["description"]
    is_about_pods = re.search("[Pp]ods that opted in (are|start) ", description) is not None
    assert is_about_pods == (rule["labels"]["severity"] == "critical")


@each_rule
def test_a_rule_reads_metrics_of_the_page(rule: dict[str, Any]) -> None:
    """A misspelled metric would make an alert that never fires."""
    text = PAGE.read_text(encoding="utf-8")
    read = re.findall(r"rdma_webhook_\w+", rule["expr"])
    assert read
    assert all(f"| `{name}` |" in text for name in read)


@each_rule
def test_a_rule_names_a_section_of_the_docs(rule: dict[str, Any]) -> None:
    """The file exists, and has a heading with this anchor."""
    file, _, anchor = rule["annotations"]["docs"].partition("#")
    assert not anchor or anchor in _anchors(ROOT / file)
    assert (ROOT / file).parent == DOCS


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_rule
def test_a_failure_is_planted_for_each_rule(rule: dict[str, Any]) -> None:
    """A test raises each alert with a real server."""
    assert f'"{rule["alert"]}"' in PLANTED
