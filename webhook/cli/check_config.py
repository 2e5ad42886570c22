"""`rdma-webhook check-config`: what is wrong with a fabrics file, or odd."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from webhook.cli.output import unreadable, write
from webhook.config.findings import Finding, InvalidConfiguration
from webhook.config.load import load_fabrics

_DONE, _NEGATIVE = 0, 1


def run(arguments: argparse.Namespace) -> int:
    """Print what is wrong with a fabrics file and return the exit code."""
    _readable(arguments.file)
    try:
        loaded = load_fabrics(Path(arguments.file))
        findings, fabrics = loaded.findings, len(loaded.fabrics.fabrics)
    except InvalidConfiguration as error:
        findings, fabrics = error.findings, None
    errors = [found for found in findings if found.severity == "error"]
    warnings = [found for found in findings if found.severity == "warning"]
    if arguments.output == "json":
        _write_findings([*errors, *warnings])
    else:
        for found in (*errors, *warnings):
            write(f"{found.text(arguments.file)}\n")
        write(f"{_tally(fabrics, len(errors), len(warnings))}\n")
    return _NEGATIVE if errors or (arguments.strict and warnings) else _DONE


def _readable(name: str) -> None:
    try:
        with Path(name).open("rb"):
            return
    except (OSError, ValueError) as error:
        raise unreadable(name, error) from None


def _write_findings(findings: Sequence[Finding]) -> None:
    listed = [found._asdict() for found in findings]
    valid = not any(found.severity == "error" for found in findings)
    write(json.dumps({"valid": valid, "findings": listed}, indent=2, ensure_ascii=False) + "\n")


def _tally(fabrics: int | None, errors: int, warnings: int) -> str:
    counted = [(errors, "error"), (warnings, "warning")]
    if fabrics is not None:
        counted.insert(0, (fabrics, "fabric"))
    return ", ".join(f"{number} {noun}{'s' * (number != 1)}" for number, noun in counted)
