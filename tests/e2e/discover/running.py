"""Run `rdma-webhook discover` in this process."""

from __future__ import annotations

from tests.command_line import Answer, run_command


def discover(*arguments: object, stdin: str = "") -> Answer:
    """Run the command with these arguments and this standard input."""
    return run_command("discover", *arguments, stdin=stdin)
