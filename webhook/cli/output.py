"""Where a command's words go: results to standard output, all else to standard error."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from shutil import get_terminal_size

from webhook.errors import DocumentError
from webhook.visible import visible, visible_json, visible_lines

#: Columns where standard output is no terminal and $COLUMNS is not set.
_WIDTH = 100


def write(text: str) -> None:
    """Write a result: as UTF-8, which YAML and JSON are whatever the locale says."""
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))


def write_lines(text: str) -> None:
    """Write a result for people, whatever somebody may have hidden in it."""
    write(visible_lines(text))


def write_json(what: object, *, indent: int | None = 2) -> None:
    """Write a result for programs; what is not visible in it is escaped, and means the same."""
    write(visible_json(json.dumps(what, indent=indent, ensure_ascii=False)) + "\n")


def say(label: str, sentence: str) -> None:
    """Tell the person in front of the screen something that is no result, on one line."""
    line = visible(f"rdma-webhook: {label}: {sentence}")
    print(line, file=sys.stderr)


def fail(message: str) -> int:
    """Say why a command cannot go on, line by line, and return the exit code of that."""
    for line in message.split("\n"):
        say("error", line)
    return 2


def terminal() -> bool:
    """Whether standard output is one."""
    return sys.stdout.isatty()


def colour() -> bool:
    """Whether standard output takes colours: a terminal, and nobody minds (no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return terminal() and not plain


def width() -> int:
    """Return how many columns a line may have."""
    return get_terminal_size((_WIDTH, 24)).columns


def discard() -> None:
    """Send what is still buffered nowhere; else the interpreter tries again at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def unreadable(name: str, error: OSError | ValueError) -> DocumentError:
    """Make the error of a file that cannot be opened or read."""
    return DocumentError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}")
