"""Print an evaluation without a matrix, and choose the exit code by its level."""

from __future__ import annotations

from webhook.cli.output import color, width, write, write_json
from webhook.diagnose.verify.output import verify_form, verify_junit, verify_text
from webhook.diagnose.verify.results import Evaluation
from webhook.model.finding import Level


def print_evaluation(evaluation: Evaluation, output: str) -> None:
    """Print an evaluation; `output` is text, json or junit."""
    if output == "json":
        write_json(verify_form(evaluation))
    elif output == "junit":
        write(verify_junit(evaluation))
    else:
        write(verify_text(evaluation, width=width(), color=color()))


# The exit codes of the commands below `verify`: by the worst level.

#: Wrong usage, something that cannot be read, or a run that was not completed or left objects.
NOT_COMPLETED = 2
EXIT_CODES = """exit codes: 0 ok or warning, 1 error or, with --strict, warning, 2 wrong usage or
unreadable input, 3 unsure"""
#: Those of commands that run pods.
RUN_EXIT_CODES = """exit codes: 0 ok or warning, 1 error or, with --strict, warning, 2 wrong usage,
unreadable input, or a run that was not completed or left objects, 3 unsure, 130 after Ctrl-C, 143
after SIGTERM"""
_CODES: dict[Level, int] = {"ok": 0, "info": 0, "warning": 0, "error": 1, "unsure": 3}


def exit_code(level: Level, *, strict: bool) -> int:
    """Return the exit code for a level."""
    return 1 if strict and level == "warning" else _CODES[level]
