"""`rdma-webhook check-config`: report errors and warnings in fabrics files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from webhook.cli.options import add_files, add_form, given_files
from webhook.cli.output import print_status, read_stdin, write_json, write_lines
from webhook.config.files import decode, read_file
from webhook.config.findings import (
    Finding,
    InvalidConfiguration,
    Severity,
    Truncation,
    invalid_configuration,
)
from webhook.config.load import LIMITS, Loaded, parse_fabrics
from webhook.text.escape import visible

_VALID, _INVALID, _UNREADABLE = 0, 1, 2
_STDIN = "<stdin>"

_EXAMPLES = """examples:
  rdma-webhook check-config fabrics.yaml
  kubectl get fabrics default -o yaml | rdma-webhook check-config -

exit codes: 0 every file is valid, 1 one is invalid (with --strict: or has warnings),
2 wrong usage, or a file that cannot be read
"""


class _Checked(NamedTuple):
    """One file that could be read."""

    name: str
    fabrics: int | None  #: how many it has; None if the file cannot be used
    findings: tuple[Finding, ...]  #: sorted by line
    more: Truncation  #: how many findings are not shown

    def count(self, severity: Severity) -> int:
        """Count the errors, or the warnings."""
        shown = sum(found.severity == severity for found in self.findings)
        return shown + (self.more.errors if severity == "error" else self.more.warnings)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `check-config`."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    add_files(command, "a fabrics file, or - for standard input")
    add("--strict", action="store_true", help="treat warnings as errors")
    add_form(command)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings in fabrics files, and return the exit code."""
    files = given_files(arguments, "rdma-webhook check-config")
    checked = [found for given in files if (found := _checked(given))]
    readable = len(checked) == len(files)
    if checked and arguments.output == "json":
        _write_findings(checked, readable=readable)
    for one in checked if arguments.output == "text" else ():
        _write_lines(one, strict=arguments.strict)
    if not readable:
        return _UNREADABLE
    wrong = any(one.count("error") or (arguments.strict and one.findings) for one in checked)
    return _INVALID if wrong else _VALID


def _checked(given: str) -> _Checked | None:
    """Check one file; if it cannot be read, print why and return None."""
    name = _STDIN if given == "-" else given
    try:
        text = decode(_data(given), name)
    except InvalidConfiguration as error:
        print_status("error", str(error))
        return None
    try:
        found: Loaded | InvalidConfiguration = parse_fabrics(text, name, applied=True)
    except InvalidConfiguration as error:
        found = error
    fabrics = len(found.fabrics.fabrics) if isinstance(found, Loaded) else None
    in_order = tuple(sorted(found.findings, key=lambda one: one.line or 0))
    return _Checked(name, fabrics, in_order, found.more)


def _data(given: str) -> bytes:
    if given != "-":
        return read_file(Path(given), LIMITS)
    content = read_stdin(LIMITS.octets + 1)
    if len(content) > LIMITS.octets:
        raise invalid_configuration(_STDIN, f"is larger than {LIMITS.octets:,} bytes, the maximum")
    return content


def _write_findings(checked: Sequence[_Checked], *, readable: bool) -> None:
    listed = [{**found._asdict(), "file": one.name} for one in checked for found in one.findings]
    valid = readable and not any(one.count("error") for one in checked)
    more = {
        "errors": sum(one.more.errors for one in checked),
        "warnings": sum(one.more.warnings for one in checked),
    }
    write_json({"valid": valid, "findings": listed, "more": more})


def _write_lines(checked: _Checked, *, strict: bool) -> None:
    for found in checked.findings:
        # The format of compilers, so that editors can jump to the line and tell errors apart.
        where = visible(found.place(checked.name))
        said = found._replace(line=None, column=None).text(found.severity)
        write_lines(f"{where}: {said}\n")
    if left_out := checked.more.text():
        write_lines(f"{visible(checked.name)}: {left_out}\n")
    write_lines(f"{_tally(checked, strict=strict)}\n")


def _tally(checked: _Checked, *, strict: bool) -> str:
    """Return the last line on a file: ✔ if nothing is odd, ✘ if it is invalid, else `!`."""
    errors, warnings = checked.count("error"), checked.count("warning")
    sign = "✘" if errors or (strict and warnings) else "!" if warnings else "✔"
    counted = [] if checked.fabrics is None else [_count(checked.fabrics, "fabric")]
    counted += [_count(errors, "error"), _count(warnings, "warning")]
    return f"{sign} {visible(checked.name)}: {', '.join(counted)}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
