"""`rdma-webhook certs`, run in this process."""

from __future__ import annotations

from typing import Any

from tests.command_line import run_command


def certs(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Run the command; return its exit code and its JSON."""
    answer = run_command("certs", *arguments, "-o", "json")
    return answer.code, answer.form
