"""Errors and warnings about a file: up to a hundred findings at once, each with its line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeVar

from webhook.errors import ConfigError
from webhook.text.escape import visible

Severity = Literal["error", "warning"]
#: The maximum number of findings shown for a file: nobody reads more, and log lines must be short.
MOST_FINDINGS = 100


class Finding(NamedTuple):
    """An error or a warning about a file."""

    severity: Severity
    path: str  #: `fabrics[1].hcas[0]`; "" for the file as a whole
    line: int | None  #: from 1
    message: str
    column: int | None = None  #: from 1; only if the text is not YAML

    def text(self, name: str) -> str:
        """Format the finding for editors, like a compiler's: `FILE:LINE: path: message`.

        The result is one line without invisible characters.
        """
        return visible(
            ": ".join(part for part in (self.place(name), self.path, self.message) if part)
        )

    def place(self, name: str) -> str:
        """Return `FILE:LINE`, or `FILE:LINE:COLUMN`, as far as they are known."""
        return ":".join(str(part) for part in (name, self.line, self.column) if part)


class Truncation(NamedTuple):
    """The number of findings that are not shown."""

    errors: int = 0
    warnings: int = 0

    def text(self) -> str:
        """Return a text like "and 3 more errors, 1 more warning"; "" if all findings are shown."""
        counted = ((self.errors, "error"), (self.warnings, "warning"))
        parts = [
            f"{number:,} more {noun}{'s' * (number != 1)}" for number, noun in counted if number
        ]
        return f"and {', '.join(parts)}" if parts else ""


_NO_MORE = Truncation()


class InvalidConfiguration(ConfigError):  # noqa: N818 - it names a state of the file
    """A file cannot be used; `str()` lists the errors, `findings` also the warnings."""

    def __init__(
        self, name: str, findings: Iterable[Finding], truncation: Truncation = _NO_MORE
    ) -> None:
        self.findings = tuple(findings)
        self.more = truncation
        errors = [finding.text(name) for finding in self.findings if finding.severity == "error"]
        left_out = truncation._replace(warnings=0).text()
        super().__init__(
            "\n".join([*errors, f"{visible(name)}: {left_out}"] if left_out else errors)
        )


def invalid_configuration(
    name: str, message: str, line: int | None = None, column: int | None = None
) -> InvalidConfiguration:
    """Return the error for a file that cannot be read any further."""
    return InvalidConfiguration(name, [Finding("error", "", line, message, column)])


_AnyFinding = TypeVar("_AnyFinding", bound=tuple[Severity, *tuple[object, ...]])


def limit_findings(findings: Sequence[_AnyFinding]) -> tuple[list[_AnyFinding], Truncation]:
    """Choose the findings to show, errors in preference to warnings; keep their order.

    A finding may be any tuple that begins with its severity.
    """
    errors = sum(finding[0] == "error" for finding in findings)
    room = {"error": MOST_FINDINGS, "warning": MOST_FINDINGS - min(errors, MOST_FINDINGS)}
    chosen: list[_AnyFinding] = []
    for finding in findings:
        if room[finding[0]] > 0:
            room[finding[0]] -= 1
            chosen.append(finding)
    shown_errors = sum(finding[0] == "error" for finding in chosen)
    truncation = Truncation(
        errors - shown_errors, len(findings) - errors - (len(chosen) - shown_errors)
    )
    return chosen, truncation
