"""What is wrong, or odd, in a file: all of it at once, each with its line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from webhook.errors import ConfigError

Severity = Literal["error", "warning"]


class Finding(NamedTuple):
    """One thing that a person should know about a file."""

    severity: Severity
    path: str  #: `fabrics[1].hcas[0]`; "" for the file as a whole
    line: int | None  #: from 1
    message: str

    def text(self, name: str) -> str:
        """Write it as compilers do, so that editors can jump: `FILE:LINE: path: message`."""
        where = f"{name}:{self.line}" if self.line else name
        return ": ".join(part for part in (where, self.path, self.message) if part)


class InvalidConfiguration(ConfigError):  # noqa: N818 - it names a state of the file
    """A file cannot be used; `str()` lists every error, `findings` the warnings besides."""

    def __init__(self, name: str, findings: Iterable[Finding]) -> None:
        self.name = name
        self.findings = tuple(findings)
        errors = (found for found in self.findings if found.severity == "error")
        super().__init__("\n".join(error.text(name) for error in errors))


def refused(name: str, message: str, line: int | None = None) -> InvalidConfiguration:
    """Make the error of a file that cannot be read any further."""
    return InvalidConfiguration(name, [Finding("error", "", line, message)])
