"""`rdma-webhook check-config`: report errors and warnings in fabrics files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from webhook.cli.common_options import add_form
from webhook.cli.output import say, write_json, write_lines
from webhook.cli.stdin import read_stdin
from webhook.config.findings import Finding, InvalidConfiguration, More, Severity, refused
from webhook.config.load import LIMITS, parse_fabrics
from webhook.config.yaml_file import decode, read_file
from webhook.visible import visible

_VALID, _INVALID, _UNREADABLE = 0, 1, 2
_STDIN = "<stdin>"

_EXAMPLES = """examples:
  rdma-webhook check-config fabrics.yaml
  kubectl get cm fabrics -o jsonpath='{.data.fabrics\\.yaml}' | rdma-webhook check-config -

exit codes: 0 valid, 1 invalid (with --strict also where something is odd),
2 usage or a file that cannot be read
"""


class _Checked(NamedTuple):
    """One file that could be read."""

    name: str
    fabrics: int | None  #: how many it has; None if the file cannot be used
    findings: tuple[Finding, ...]  #: sorted by line
    more: More  #: how many findings are not shown

    def count(self, severity: Severity) -> int:
        """Count the errors, or the warnings."""
        shown = sum(found.severity == severity for found in self.findings)
        return shown + (self.more.errors if severity == "error" else self.more.warnings)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `check-config`."""
    command.epilog = _EXAMPLES
    add = command.add_argument
    add("files", nargs="+", metavar="FILE", help="a fabrics file, or - for standard input")
    add("--strict", action="store_true", help="warnings make the file invalid too")
    add_form(command)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings in fabrics files, and return the exit code."""
    checked = [found for given in arguments.files if (found := _checked(given))]
    readable = len(checked) == len(arguments.files)
    if checked and arguments.output == "json":
        _write_findings(checked, readable=readable)
    elif checked:
        _write_lines(checked)
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
        say("error", str(error))
        return None
    try:
        loaded = parse_fabrics(text, name)
        fabrics, findings, more = len(loaded.fabrics.fabrics), loaded.findings, loaded.more
    except InvalidConfiguration as error:
        fabrics, findings, more = None, error.findings, error.more
    in_order = tuple(sorted(findings, key=lambda found: found.line or 0))
    return _Checked(name, fabrics, in_order, more)


def _data(given: str) -> bytes:
    if given != "-":
        return read_file(Path(given), LIMITS)
    content = read_stdin(LIMITS.octets + 1)
    if len(content) > LIMITS.octets:
        raise refused(_STDIN, f"is larger than {LIMITS.octets:,} bytes")
    return content


def _write_findings(checked: Sequence[_Checked], *, readable: bool) -> None:
    listed = [{**found._asdict(), "file": one.name} for one in checked for found in one.findings]
    valid = readable and not any(one.count("error") for one in checked)
    more = {
        "errors": sum(one.more.errors for one in checked),
        "warnings": sum(one.more.warnings for one in checked),
    }
    write_json({"valid": valid, "findings": listed, "more": more})


def _write_lines(checked: Sequence[_Checked]) -> None:
    for one in checked:
        for found in one.findings:
            # The format of compilers, so that editors can jump to the line and tell errors apart.
            where = f"{one.name}:{found.line}" if found.line else one.name
            write_lines(f"{visible(where)}: {found._replace(line=None).text(found.severity)}\n")
        if left_out := one.more.text():
            write_lines(f"{visible(one.name)}: {left_out}\n")
    write_lines(f"{_tally(checked)}\n")


def _tally(checked: Sequence[_Checked]) -> str:
    nouns: tuple[Severity, ...] = ("error", "warning")
    counted: list[tuple[int, str]] = [
        (sum(one.count(noun) for one in checked), noun) for noun in nouns
    ]
    usable = [one.fabrics for one in checked if one.fabrics is not None]
    if usable:
        counted.insert(0, (sum(usable), "fabric"))
    if len(checked) > 1:
        counted.insert(0, (len(checked), "file"))
    return ", ".join(f"{number} {noun}{'s' * (number != 1)}" for number, noun in counted)
