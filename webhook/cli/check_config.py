"""`rdma-webhook check-config`: report errors and warnings in fabrics files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

from typing_extensions import TypedDict

from webhook.cli.config_files import read_text
from webhook.cli.inputs import shown_name
from webhook.cli.options import add_files, add_output_format, given_files
from webhook.cli.output import print_message, write_json, write_lines
from webhook.config.findings import InvalidConfiguration, Truncation, compiler_line
from webhook.config.load import LIMITS, LoadedConfiguration, parse_fabrics
from webhook.errors import WebhookError
from webhook.model.finding import Finding, Level
from webhook.model.names import counted
from webhook.text.escape import visible
from webhook.text.findings import FindingForm, finding_form

_VALID, _INVALID, _UNREADABLE = 0, 1, 2
_EXAMPLES = """examples:
  rdma-webhook check-config fabrics.yaml
  kubectl get fabrics default -o yaml | rdma-webhook check-config -

exit codes: 0 every file is valid, 1 a file is invalid or, with --strict, has warnings, 2 wrong
usage or unreadable input
"""


class _CheckedFile(NamedTuple):
    """A file that could be read."""

    name: str
    fabrics: int | None  #: the number of its fabrics; None if the file cannot be used
    findings: tuple[Finding, ...]  #: sorted by line
    truncation: Truncation  #: the numbers of findings that are not shown

    def count(self, level: Level) -> int:
        """Count the errors, or the warnings."""
        listed = sum(finding.level == level for finding in self.findings)
        return listed + (self.truncation.errors if level == "error" else self.truncation.warnings)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `check-config`."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    add_files(command, "fabrics file, or - for standard input")
    add("--strict", action="store_true", help="treat warnings as errors")
    add_output_format(command)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings in fabrics files, and return the exit code."""
    files = given_files(arguments)
    checked = [file for name in files if (file := _check(name))]
    readable = len(checked) == len(files)
    if checked and arguments.output == "json":
        write_json(_form(checked, readable=readable))
    for file in checked if arguments.output == "text" else ():
        _write_lines(file, strict=arguments.strict)
    if not readable:
        return _UNREADABLE
    invalid = any(file.count("error") or (arguments.strict and file.findings) for file in checked)
    return _INVALID if invalid else _VALID


def _check(given: str) -> _CheckedFile | None:
    """Check a file; if it cannot be read, print why and return None."""
    name = shown_name(given)
    try:
        text = read_text(given, LIMITS.size)
    except WebhookError as error:
        print_message("error", str(error))
        return None
    try:
        reading: LoadedConfiguration | InvalidConfiguration = parse_fabrics(
            text, name, for_kubectl_apply=True
        )
    except InvalidConfiguration as error:
        reading = error
    fabrics = len(reading.compiled.fabrics) if isinstance(reading, LoadedConfiguration) else None
    by_line = tuple(sorted(reading.findings, key=lambda finding: finding.location.line or 0))
    return _CheckedFile(name, fabrics, by_line, reading.truncation)


def _write_lines(file: _CheckedFile, *, strict: bool) -> None:
    """Write findings in the format of compilers, so that editors can jump to their lines."""
    for finding in file.findings:
        write_lines(f"{compiler_line(finding)}\n")
    if omission := file.truncation.text():
        write_lines(f"{visible(file.name)}: {omission}\n")
    write_lines(f"{_tally(file, strict=strict)}\n")


def _tally(file: _CheckedFile, *, strict: bool) -> str:
    """Return the last line on a file: ✔ without findings, ✘ if it is invalid, else `!`."""
    errors, warnings = file.count("error"), file.count("warning")
    sign = "✘" if errors or (strict and warnings) else "!" if warnings else "✔"
    counts = [] if file.fabrics is None else [counted(file.fabrics, "fabric")]
    counts += [counted(errors, "error"), counted(warnings, "warning")]
    return f"{sign} {visible(file.name)}: {', '.join(counts)}"


# The findings as JSON. Keys and codes may be added, but are never renamed.


class TruncationForm(TypedDict):
    """The numbers of findings that the output leaves out, for all files together."""

    errors: int
    warnings: int


class CheckConfigForm(TypedDict):
    """The findings in fabrics files."""

    valid: bool
    """Whether every file can be read and has no errors."""
    findings: list[FindingForm]
    """At most a hundred for each file, in the order of files and lines."""
    more: TruncationForm


def _form(checked: Sequence[_CheckedFile], *, readable: bool) -> CheckConfigForm:
    return CheckConfigForm(
        valid=readable and not any(file.count("error") for file in checked),
        findings=[finding_form(finding) for file in checked for finding in file.findings],
        more=TruncationForm(
            errors=sum(file.truncation.errors for file in checked),
            warnings=sum(file.truncation.warnings for file in checked),
        ),
    )


def check_config_schema() -> str:
    """Return the JSON Schema of the output of `check-config -o json`."""
    from webhook.text.schema import form_schema  # noqa: PLC0415 -- only for this output

    return form_schema(CheckConfigForm, "The output of rdma-webhook check-config -o json")
