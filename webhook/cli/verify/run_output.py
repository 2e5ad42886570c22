"""Print what a run measured, and write its page."""

from __future__ import annotations

from pathlib import Path

from webhook.cli.output import colour, width, write, write_json
from webhook.diagnose.verify.matrix_junit import matrix_junit
from webhook.diagnose.verify.matrix_output import matrix_form
from webhook.diagnose.verify.matrix_page import matrix_page
from webhook.diagnose.verify.matrix_text import matrix_text
from webhook.diagnose.verify.run_report import RunReport
from webhook.errors import DocumentError


def print_report(report: RunReport, form: str) -> None:
    """Print a report in a form: text, json or junit."""
    if form == "json":
        write_json(matrix_form(report))
    elif form == "junit":
        write(matrix_junit(report))
    else:
        write(matrix_text(report, width=width(), colour=colour()))


def write_page(report: RunReport, path: Path) -> None:
    """Write the page of a report."""
    try:
        path.write_text(matrix_page(report), encoding="utf-8")
    except OSError as error:
        raise DocumentError(f"{path}: cannot be written: {error.strerror}") from None


def check_page(path: Path) -> None:
    """Raise DocumentError, before anything is measured, if no page can be written there."""
    if path.is_dir():
        raise DocumentError(f"{path} is a directory: name a file")
    if not path.parent.is_dir():
        raise DocumentError(f"{path}: there is no directory {path.parent}")
