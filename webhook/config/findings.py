"""What is wrong, or odd, in a file: up to a hundred things at once, each with its line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeVar

from webhook.errors import ConfigError
from webhook.visible import visible

Severity = Literal["error", "warning"]
#: So many findings of a file are shown; nobody reads more, and a log line must stay one.
MOST = 100


class Finding(NamedTuple):
    """One thing that a person should know about a file."""

    severity: Severity
    path: str  #: `fabrics[1].hcas[0]`; "" for the file as a whole
    line: int | None  #: from 1
    message: str

    def text(self, name: str) -> str:
        """Write it as compilers do, so that editors can jump: `FILE:LINE: path: message`.

        All of it is visible, and one line.
        """
        where = f"{name}:{self.line}" if self.line else name
        return visible(": ".join(part for part in (where, self.path, self.message) if part))


class More(NamedTuple):
    """How many findings there are besides those that are shown."""

    errors: int = 0
    warnings: int = 0

    def text(self) -> str:
        """Say so, as "and 3 more errors, 1 more warning"; "" where all are shown."""
        counted = ((self.errors, "error"), (self.warnings, "warning"))
        said = [
            f"{number:,} more {noun}{'s' * (number != 1)}" for number, noun in counted if number
        ]
        return f"and {', '.join(said)}" if said else ""


_NO_MORE = More()


class InvalidConfiguration(ConfigError):  # noqa: N818 - it names a state of the file
    """A file cannot be used; `str()` lists the errors, `findings` the warnings besides."""

    def __init__(self, name: str, findings: Iterable[Finding], more: More = _NO_MORE) -> None:
        self.name = name
        self.findings = tuple(findings)
        self.more = more
        errors = [found.text(name) for found in self.findings if found.severity == "error"]
        left_out = more._replace(warnings=0).text()
        super().__init__(
            "\n".join([*errors, f"{visible(name)}: {left_out}"] if left_out else errors)
        )


def refused(name: str, message: str, line: int | None = None) -> InvalidConfiguration:
    """Make the error of a file that cannot be read any further."""
    return InvalidConfiguration(name, [Finding("error", "", line, message)])


_Told = TypeVar("_Told", bound=tuple[Severity, *tuple[object, ...]])


def foremost(told: Sequence[_Told]) -> tuple[list[_Told], More]:
    """Choose what is shown, in the order that it is told in: errors go before warnings.

    What is told is any tuple that begins with its severity.
    """
    errors = sum(one[0] == "error" for one in told)
    room = {"error": MOST, "warning": MOST - min(errors, MOST)}
    chosen: list[_Told] = []
    for one in told:
        if room[one[0]] > 0:
            room[one[0]] -= 1
            chosen.append(one)
    shown = sum(one[0] == "error" for one in chosen)
    more = More(errors - shown, len(told) - errors - (len(chosen) - shown))
    return chosen, more
