"""Print judgements without a matrix."""

from __future__ import annotations

from webhook.cli.output import colour, width, write, write_json
from webhook.diagnose.verify.output import verify_text
from webhook.diagnose.verify.results import Assessment
from webhook.diagnose.verify.verify_json import verify_form
from webhook.diagnose.verify.verify_junit import verify_junit


def print_assessment(assessment: Assessment, form: str) -> None:
    """Print an assessment in a form: text, json or junit."""
    if form == "json":
        write_json(verify_form(assessment))
    elif form == "junit":
        write(verify_junit(assessment))
    else:
        write(verify_text(assessment, width=width(), colour=colour()))
