"""Print what a run measured."""

from __future__ import annotations

from webhook.cli.output import colour, width, write, write_json
from webhook.verify.run_report import RunReport
from webhook.verify.verify_json import verify_form
from webhook.verify.verify_junit import verify_junit
from webhook.verify.verify_text import verify_text


def print_report(report: RunReport, form: str) -> None:
    """Print a report in a form: text, json or junit."""
    if form == "json":
        write_json(verify_form(report.assessment))
    elif form == "junit":
        write(verify_junit(report.assessment))
    else:
        write(verify_text(report.assessment, width=width(), colour=colour()))
