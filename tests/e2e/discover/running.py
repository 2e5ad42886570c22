"""Run `rdma-webhook discover` in this process."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, NamedTuple
from unittest.mock import patch

from webhook.cli import main


class Discovered(NamedTuple):
    """What the command answered."""

    code: int
    out: str
    err: str

    @property
    def form(self) -> dict[str, Any]:
        """The output of -o json."""
        found: dict[str, Any] = json.loads(self.out)
        return found


def discover(*arguments: object, stdin: str = "") -> Discovered:
    """Run the command with these arguments and this standard input."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()))
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", given):
        code = main(["discover", *map(str, arguments)])
    return Discovered(code, out.buffer.getvalue().decode(), err.getvalue())
