"""The check of an installation as text and as JSON."""

from __future__ import annotations

from typing_extensions import TypedDict

from webhook.diagnose.install.answer import InstallCheck
from webhook.model.finding import Level
from webhook.model.names import capitalized
from webhook.text.findings import FindingForm, finding_form, tally
from webhook.text.terminal import SIGNS, Sheet, Span, write_finding


def install_text(check: InstallCheck, *, width: int, color: bool = False) -> str:
    """Return a line for each finding, below the part that it is about, and a count."""
    sheet = Sheet(width, color=color)
    for part in check.parts:
        sheet.paragraph(Span(capitalized(part.title), "bold"))
        for finding in part.findings:
            write_finding(sheet, finding)
    sheet.blank()
    counts = tally(finding.level for finding in check.findings)
    sheet.paragraph(Span(counts), sign=SIGNS[check.level])
    return sheet.text


class CheckedPartForm(TypedDict):
    """The findings on a part of an installation."""

    part: str
    """objects, certificates, policies, replicas, fabrics, clocks, monitoring or dry run."""
    findings: list[FindingForm]


class CheckInstallForm(TypedDict):
    """The output of rdma-webhook check-install with -o json."""

    level: Level
    """The worst level of all findings."""
    passed: bool
    """Whether the exit code is 0."""
    parts: list[CheckedPartForm]


def install_form(check: InstallCheck, *, strict: bool) -> CheckInstallForm:
    """Return the check as plain JSON values."""
    return CheckInstallForm(
        level=check.level,
        passed=check.passes(strict=strict),
        parts=[
            CheckedPartForm(
                part=part.title, findings=[finding_form(finding) for finding in part.findings]
            )
            for part in check.parts
        ],
    )


def install_schema() -> str:
    """Return the JSON Schema of the JSON."""
    from webhook.text.schema import form_schema  # noqa: PLC0415 -- slow to import

    return form_schema(CheckInstallForm, "The output of rdma-webhook check-install -o json")
