"""Run `rdma-webhook` in this process, which saves the time of its imports."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, NamedTuple
from unittest.mock import patch

from webhook.cli import main


class Answer(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def form(self) -> dict[str, Any]:
        """The output of -o json."""
        parsed: dict[str, Any] = json.loads(self.out)
        return parsed


def run_command(*arguments: object, stdin: str = "") -> Answer:
    """Run a command with these arguments and this standard input."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()))
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", given):
        code = main([*map(str, arguments)])
    return Answer(code, out.buffer.getvalue().decode(), err.getvalue())
