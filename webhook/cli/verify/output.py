"""Print judgements without a matrix, and choose the exit code by the verdict."""

from __future__ import annotations

from webhook.cli.output import colour, width, write, write_json
from webhook.diagnose.verify.output import verify_form, verify_junit, verify_text
from webhook.diagnose.verify.results import Evaluation, Worth


def print_assessment(assessment: Evaluation, form: str) -> None:
    """Print an assessment in a form: text, json or junit."""
    if form == "json":
        write_json(verify_form(assessment))
    elif form == "junit":
        write(verify_junit(assessment))
    else:
        write(verify_text(assessment, width=width(), colour=colour()))


# The exit codes of the commands below `verify`: by the verdict that decides.

#: Wrong usage, or something that cannot be read.
UNREADABLE = 2
EXIT_CODES = """exit codes: 0 pass or warn (with --strict: pass), 1 fail (with --strict: or warn),
2 usage, or something that cannot be read, 3 inconclusive
"""
_CODES: dict[Worth, int] = {"pass": 0, "warn": 0, "fail": 1, "inconclusive": 3}


def exit_code(verdict: Worth, *, strict: bool) -> int:
    """Return the exit code for a verdict."""
    return 1 if strict and verdict == "warn" else _CODES[verdict]
