"""Where a command's words go: results to standard output, all else to standard error."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from shutil import get_terminal_size

from webhook.errors import DocumentError

#: Columns where standard output is no terminal and $COLUMNS is not set.
_WIDTH = 100


def write(text: str) -> None:
    """Write a result: as UTF-8, which YAML and JSON are whatever the locale says."""
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))


def say(label: str, sentence: str) -> None:
    """Tell the person in front of the screen something that is no result."""
    print(f"rdma-webhook: {label}: {sentence}", file=sys.stderr)


def colour() -> bool:
    """Whether standard output takes colours: a terminal, and nobody minds (no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain


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
