"""The programs of Debian that integration tests run."""

from __future__ import annotations

import os
import shutil

import pytest


def part(program: str, package: str) -> str:
    """Return the program's path; if it is missing, fail with CI=true, else skip the test."""
    found = shutil.which(program)
    if found is None:
        lacking(f"no {program} here (on Debian: apt-get install {package})")
    return str(found)


def lacking(line: str) -> None:
    """Fail with CI=true, else skip the test; the line says what is missing and what helps."""
    if os.environ.get("CI"):
        pytest.fail(line)
    pytest.skip(line)
