"""The streams of a command: results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from shutil import get_terminal_size

from webhook.text.escape import visible, visible_json, visible_lines

# Write to standard output and standard error.

#: Columns if standard output is not a terminal and $COLUMNS is not set.
_WIDTH = 100


def program_name() -> str:
    """Return the name that users type: kubectl runs `kubectl-rdma` as its command `rdma`."""
    return "kubectl rdma" if Path(sys.argv[0]).name == "kubectl-rdma" else "rdma-webhook"


def write(text: str) -> None:
    """Write a result as UTF-8, whatever the locale, since YAML and JSON are UTF-8."""
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))


def write_lines(text: str) -> None:
    """Write a result for people, with escapes for characters that could hide something."""
    write(visible_lines(text))


def write_json(document: object, *, indent: int | None = 2) -> None:
    """Write a result for programs as JSON, with equivalent escapes for invisible characters."""
    write(visible_json(json.dumps(document, indent=indent, ensure_ascii=False)) + "\n")


def print_message(label: str, sentence: str) -> None:
    """Print a message to the user that is not part of the result, on one line."""
    line = visible(f"rdma-webhook: {label}: {sentence}")
    print(line, file=sys.stderr)


def fail(message: str) -> int:
    """Print why a command cannot continue, and return the exit code for that."""
    for line in message.split("\n"):
        print_message("error", line)
    return 2


def terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout.isatty()


def color() -> bool:
    """Return whether to use colors: on a terminal, unless turned off (no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return terminal() and not plain


def width() -> int:
    """Return the number of columns of a line."""
    return get_terminal_size((_WIDTH, 24)).columns


def discard() -> None:
    """Discard buffered output; otherwise the interpreter would try to write it at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
