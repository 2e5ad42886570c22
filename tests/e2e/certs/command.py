"""`rdma-webhook certs`, run in this process."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from webhook.cli import main


def certs(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Run the command; return its exit code and its JSON."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        code = main(["certs", *arguments, "-o", "json"])
    return code, json.loads(out.buffer.getvalue())
