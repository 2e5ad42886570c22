"""The programs of Debian that integration tests run."""

from __future__ import annotations

import os
import shutil

import pytest


def require_program(program: str, package: str) -> str:
    """Return the program's path; if it is missing, fail with CI=true, else skip the test."""
    path = shutil.which(program)
    if path is None:
        lacking(f"no {program} here (on Debian: apt-get install {package})")
    return str(path)


def lacking(line: str) -> None:
    """Fail with CI=true, else skip the test; the line names what is missing, and the remedy."""
    if os.environ.get("CI"):
        pytest.fail(line)
    pytest.skip(line)
