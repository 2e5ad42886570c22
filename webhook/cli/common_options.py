"""Options that several commands share."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from webhook.errors import DocumentError

CONFIG_VARIABLE = "RDMA_WEBHOOK_CONFIG"
FACTS_HELP = "output of kubectl get ns,limitrange,quota,node -A -o yaml"


def add_form(command: argparse.ArgumentParser) -> None:
    """Add the option for the output format."""
    command.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="text for people, or json for programs (default: text)",
    )


def add_files(command: argparse.ArgumentParser, what: str) -> None:
    """Add the files, by position and as `-f`; `given_files` returns them."""
    command.add_argument("files", nargs="*", metavar="FILE", help=what)
    command.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        dest="more",
        metavar="FILE",
        help="the same, as in kubectl; may be repeated",
    )


def given_files(arguments: argparse.Namespace, command: str) -> list[str]:
    """Return the files of the command line, each once; DocumentError if there are none."""
    given = list(dict.fromkeys([*arguments.files, *arguments.more]))
    if not given:
        raise DocumentError(f"no file: name one, or - for standard input (see {command} --help)")
    return given


def configured(given: str | None) -> Path | None:
    """Return the file named by the option, or else by the environment; None if neither is set."""
    name = given or os.environ.get(CONFIG_VARIABLE)
    return Path(name) if name else None
