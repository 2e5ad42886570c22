"""`-o text|json`, for commands that speak to people and to programs."""

from __future__ import annotations

import argparse


def add_form(command: argparse.ArgumentParser) -> None:
    """Add the option."""
    command.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="for people or for programs (default: text)",
    )
