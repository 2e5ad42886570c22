"""Options that several commands have, and what they mean."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

CONFIG_VARIABLE = "RDMA_WEBHOOK_CONFIG"
FACTS_HELP = "what kubectl get ns,limitrange,quota,node -A -o yaml printed"


def add_form(command: argparse.ArgumentParser) -> None:
    """Add the option."""
    command.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="for people or for programs (default: text)",
    )


def configured(given: str | None) -> Path | None:
    """Return the file that the options or else the environment name, None where neither does."""
    name = given or os.environ.get(CONFIG_VARIABLE)
    return Path(name) if name else None
