"""The folder in which a run keeps what its pods print."""

from __future__ import annotations

from pathlib import Path

from webhook.cli.output import say
from webhook.errors import DocumentError


def make_folder(path: Path) -> None:
    """Make the folder, if it is not there; DocumentError if that is impossible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DocumentError(f"{path}: cannot be made: {error.strerror}") from None


def write_log(path: Path, text: str) -> None:
    """Write a file; say so if that is impossible, since the run goes on."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        say("error", f"{path}: cannot be written: {error.strerror}")
