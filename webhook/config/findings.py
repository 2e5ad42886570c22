"""Errors and warnings about a file: up to a hundred findings at once, each with its line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from webhook.errors import ConfigError
from webhook.model.finding import Code, Finding, Level, Location
from webhook.model.names import counted
from webhook.text.escape import visible
from webhook.text.findings import file_position

#: The maximum number of findings shown for a file: nobody reads more, and log lines must be short.
MAX_FINDINGS = 100

# The codes of findings that no rule makes; a rule's code is its name.

FILE_UNREADABLE = Code(
    "FileUnreadable",
    "A file cannot be read, is larger than the command accepts, or is not UTF-8.",
    "Check the name, the permissions, the size and the encoding of the file.",
)
NOT_YAML = Code("NotYAML", "The file is not YAML.", "Correct the line that the message names.")
YAML_UNSUPPORTED = Code(
    "YAMLUnsupported",
    "The file repeats a key, or uses a tag, a merge key or another feature of YAML that is not "
    "supported.",
    "Write each key once, replace each merge key (<<) with the fields that it would add, and do "
    "without any other feature that the message names, such as a tag.",
)
NOT_A_CONFIGURATION = Code(
    "NotAConfiguration",
    "The file is not a single FabricConfiguration: it is empty, has a document of a different "
    "kind, or has several documents.",
    "Write a single document that begins with apiVersion: rdma.lab/v1alpha1 and kind: "
    "FabricConfiguration.",
)
CONFIGURATION_TOO_LARGE = Code(
    "ConfigurationTooLarge",
    "The file exceeds one of the webhook's limits: on its size, its depth of nesting, or its "
    "number of values or fabrics.",
    "Remove the fabrics and values that the cluster does not need; docs/configuration.md gives the "
    "limits.",
)
UNKNOWN_FIELD = Code(
    "UnknownField",
    "The file has a field with an unknown name, or a field in the wrong place.",
    "Correct the name or the indentation of the field, or remove the field.",
)
MISSING_FIELD = Code(
    "MissingField", "The file lacks a required field.", "Add the field that the message names."
)
INVALID_VALUE = Code(
    "InvalidValue",
    "A value in the file has the wrong type, or its field does not accept it.",
    "Write a value that docs/configuration.md lists for the field.",
)
REJECTED_BY_API_SERVER = Code(
    "RejectedByAPIServer",
    "The webhook accepts a value in the file, but the API server would reject it.",
    "Write the value with the type that the message names.",
)
INVALID_FACTS = Code(
    "InvalidFacts",
    "The file that was passed to --facts, or to `fabrics -f`, contains no Kubernetes objects, or "
    "contains objects that cannot be read.",
    "For --facts, use the output of `kubectl get ns,limitrange,quota,node -A -o yaml`; for "
    "`fabrics -f`, use the output of `kubectl get nodes -o yaml`.",
)
FILE_CODES = (
    FILE_UNREADABLE,
    NOT_YAML,
    YAML_UNSUPPORTED,
    NOT_A_CONFIGURATION,
    CONFIGURATION_TOO_LARGE,
    UNKNOWN_FIELD,
    MISSING_FIELD,
    INVALID_VALUE,
    REJECTED_BY_API_SERVER,
    INVALID_FACTS,
)


#: Codes whose texts contain the exact remedy; their own is general.
_WITH_REMEDY_IN_TEXT = frozenset(code.code for code in FILE_CODES)


def text_after_path(finding: Finding) -> str:
    """Return the text without its subject, if that is the field at the end of the path."""
    return finding.text.removeprefix(f"{finding.location.path.rpartition('.')[2]} ")


def compiler_line(finding: Finding) -> str:
    """Format a finding for editors, as compilers do.

    It is one line without invisible characters: `FILE:LINE: level: path: text; remedy [Code]`.
    """
    return f"{_line(finding, finding.level)} [{finding.code}]"


def located_text(finding: Finding) -> str:
    """Format a finding as a line of an error message: `FILE:LINE: path: text; remedy`."""
    return _line(finding)


def _line(finding: Finding, level: str = "") -> str:
    location, remedy = finding.location, finding.remedy.removesuffix(".")
    if finding.code in _WITH_REMEDY_IN_TEXT:
        remedy = ""
    clause = f"; {remedy[:1].lower()}{remedy[1:]}" if remedy else ""
    sentence = f"{text_after_path(finding)}{clause}"
    parts = (file_position(location), level, location.path, sentence)
    return visible(": ".join(part for part in parts if part))


class Truncation(NamedTuple):
    """The number of findings that are not shown."""

    errors: int = 0
    warnings: int = 0

    def text(self) -> str:
        """Return a text like "and 3 more errors, 1 more warning"; "" if all findings are shown."""
        numbers = ((self.errors, "error"), (self.warnings, "warning"))
        parts = [counted(number, f"more {noun}") for number, noun in numbers if number]
        return f"and {', '.join(parts)}" if parts else ""


_NO_MORE = Truncation()


class InvalidConfiguration(ConfigError):  # noqa: N818 - it names a state of the file
    """A file cannot be used; `str()` lists the errors, `findings` also the warnings."""

    def __init__(
        self, name: str, findings: Iterable[Finding], truncation: Truncation = _NO_MORE
    ) -> None:
        self.findings = tuple(findings)
        self.truncation = truncation
        errors = [located_text(finding) for finding in self.findings if finding.level == "error"]
        left_out = truncation._replace(warnings=0).text()
        super().__init__(
            "\n".join([*errors, f"{visible(name)}: {left_out}"] if left_out else errors)
        )


def invalid_configuration(
    code: Code, name: str, message: str, line: int | None = None, column: int | None = None
) -> InvalidConfiguration:
    """Return the error for a file that cannot be read any further."""
    location = Location(file=name, line=line, column=column)
    return InvalidConfiguration(name, [code.finding("error", message, location=location)])


_AnyFinding = TypeVar("_AnyFinding", bound=tuple[Level, *tuple[object, ...]])


def limit_findings(findings: Sequence[_AnyFinding]) -> tuple[list[_AnyFinding], Truncation]:
    """Choose the findings to show, errors in preference to warnings; keep their order.

    A finding may be any tuple that begins with its level, "error" or "warning".
    """
    errors = sum(finding[0] == "error" for finding in findings)
    room: dict[Level, int] = {
        "error": MAX_FINDINGS,
        "warning": MAX_FINDINGS - min(errors, MAX_FINDINGS),
    }
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
