"""The alert rules of manifests/monitoring, their table in docs/operation.md, and their runbook.

tests/integration/test_alerts.py has Prometheus evaluate them.
"""

from __future__ import annotations

import re
import shlex
from textwrap import fill
from typing import Any

import pytest
import yaml

from tests.generated_pages import DOCS, assert_up_to_date
from tests.unit.serve.test_operation_page import PAGE
from webhook.cli.parser import parser

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


RUNBOOK = DOCS / "alerts.md"
TEXT = RUNBOOK.read_text(encoding="utf-8")


def _table() -> str:
    lines = ["", "| alert | severity | after | meaning |", "|---|---|---|---|"]
    for rule in RULES:
        link = f"[`{rule['alert']}`](alerts.md#{rule['alert'].lower()})"
        lines.append(
            f"| {link} | {rule['labels']['severity']} | {_pause(rule)} | {_meaning(rule)[0]} |"
        )
    return "\n".join([*lines, "", ""])


def _pause(rule: dict[str, Any]) -> str:
    return "at once" if rule["for"] == "0m" else str(rule["for"])


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
def test_the_runbook_begins_with_the_meaning(rule: dict[str, Any]) -> None:
    """A section first repeats the texts of its alert, as the rules have them."""
    severity = rule["labels"]["severity"].capitalize()
    text = f"*{severity}, after {_pause(rule)}.* {' '.join(_meaning(rule))}"
    lines = fill(text.replace("after at", "at"), 140, break_on_hyphens=False)
    begin = f"<!-- meaning of {rule['alert']} -->"
    assert_up_to_date(RUNBOOK, begin, "<!-- end of meaning -->", f"\n{lines}\n\n")


def test_the_runbook_has_a_section_for_each_alert() -> None:
    """Each alert has a section, and each section but the first an alert, in the same order."""
    headings = re.findall(r"(?m)^#+ (.*)$", TEXT)
    assert headings == ["Alerts", "Where to look", *(rule["alert"] for rule in RULES)]


@each_rule
def test_a_section_leads_from_the_alert_to_its_end(rule: dict[str, Any]) -> None:
    """It has commands, numbered causes, and the condition under which the alert ends."""
    section = _section(rule)
    parts = [section.index(f"**{part}") for part in ("Check:**", "Causes:**", "Resolved** ")]
    assert parts == sorted(parts)
    assert "```console\n$ " in section[parts[0] : parts[1]]
    assert re.search(r"(?m)^1\. ", section[parts[1] : parts[2]])


def _section(rule: dict[str, Any]) -> str:
    return TEXT.partition(f"\n## {rule['alert']}\n")[2].partition("\n## ")[0]


def test_commands_of_the_runbook_exist() -> None:
    """The parser ends the process for a command or an option that does not exist."""
    blocks = re.findall(r"(?s)```console\n(.*?)```", TEXT)
    commands = re.findall(r"(?:\$ |\| |`)rdma-webhook ([^\n`#]+)", "\n".join([*blocks, TEXT]))
    assert len({*commands}) > 4
    for command in commands:
        parser().parse_args(shlex.split(command))


def test_links_of_the_runbook_lead_to_sections() -> None:
    """Each anchor is that of a heading, as GitHub makes it."""
    links = re.findall(r"\]\(([\w-]+\.md)?#([\w-]+)\)", TEXT)
    assert links
    for name, anchor in links:
        page = (DOCS / (name or RUNBOOK.name)).read_text(encoding="utf-8")
        headings = re.findall(r"(?m)^#+ (.*)$", page)
        anchors = {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in headings}
        assert anchor in anchors, f"{name}#{anchor}"


def test_log_messages_of_the_runbook_exist() -> None:
    """Each message that the page searches the log for is in the table of messages."""
    messages = re.findall(r'"msg":"([^"\']+)', TEXT)
    assert messages
    page = PAGE.read_text(encoding="utf-8")
    assert [message for message in messages if message not in page] == []


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
def test_a_rule_names_its_section(rule: dict[str, Any]) -> None:
    """The anchor is the heading's, as GitHub and GitLab make it."""
    assert rule["annotations"]["docs"] == f"docs/alerts.md#{rule['alert'].lower()}"


@each_rule
def test_a_failure_is_planted_for_each_rule(rule: dict[str, Any]) -> None:
    """A test raises each alert with a real server."""
    assert f'"{rule["alert"]}"' in PLANTED
