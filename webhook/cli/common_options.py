"""Options that several commands share."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

CONFIG_VARIABLE = "RDMA_WEBHOOK_CONFIG"
FACTS_HELP = "what kubectl get ns,limitrange,quota,node -A -o yaml printed"


def add_form(command: argparse.ArgumentParser) -> None:
    """Add the option for the output format."""
    command.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="for people or for programs (default: text)",
    )


def configured(given: str | None) -> Path | None:
    """Return the file named by the option, or else by the environment; None if neither is set."""
    name = given or os.environ.get(CONFIG_VARIABLE)
    return Path(name) if name else None
