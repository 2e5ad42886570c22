"""Read the inputs of a command: files, pipes such as <(...), and - for standard input."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import cast

from webhook.errors import DocumentError, read_failure

STDIN = "<stdin>"
#: The URLs that curl reads.
_URL = re.compile(r"(https?|ftp|file)://", re.IGNORECASE)
#: The arguments that add to one list of files.
_FILES = frozenset({"files", "filenames"})


def input_name(word: str) -> str:
    """Parse the name of an input; by this type, `check_inputs` recognizes inputs."""
    if not word:
        raise argparse.ArgumentTypeError("the file name is empty")
    return "-" if word == "/dev/stdin" else word


def check_inputs(command: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Exit if an input is a URL, or if two options name standard input."""
    stdin: dict[str, str] = {}
    for action, name in _inputs(command, arguments):
        option = action.option_strings[0] if action.option_strings else ""
        if _URL.match(name):
            remedy = f"curl -s {shlex.quote(name)} | {command.prog} {option} -".replace("  ", " ")
            command.error(f"{name:.200}: URLs are not supported; use {remedy}")
        if name == "-":
            stdin["files" if action.dest in _FILES else action.dest] = option or str(action.metavar)
    if len(stdin) > 1:
        options = " and ".join(stdin.values())
        command.error(f"{options} both name standard input, which can be read only once")


def _inputs(
    command: argparse.ArgumentParser, arguments: argparse.Namespace
) -> Iterator[tuple[argparse.Action, str]]:
    for action in command._actions:  # noqa: SLF001 -- argparse has no other list
        if action.type is input_name:
            names = getattr(arguments, action.dest) or ()
            yield from ((action, name) for name in ([names] if isinstance(names, str) else names))


def shown_name(name: str) -> str:
    """Return the name of an input for messages."""
    return STDIN if name == "-" else name


def read_input(name: str, limit: int) -> bytes:
    """Read at most one byte more than the limit: that byte reveals a larger input."""
    try:
        if name == "-":
            return _read_stdin(limit + 1)
        with Path(name).open("rb") as file:
            return file.read(limit + 1)
    except (OSError, ValueError) as error:
        raise read_error(shown_name(name), error) from None


def read_error(name: str, error: OSError | ValueError) -> DocumentError:
    """Return the error for a file that cannot be opened or read."""
    return DocumentError(f"{name}: {read_failure(error)}")


def _read_stdin(limit: int) -> bytes:
    """Read to the end, but at most `limit` bytes.

    It reads piece by piece, since a single large read would continue after a Ctrl-C that comes
    between two of its system calls.
    """
    stream = cast("BufferedReader", sys.stdin.buffer)
    pieces: list[bytes] = []
    while limit > 0 and (piece := stream.read1(limit)):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)
