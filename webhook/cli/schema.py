"""`rdma-webhook schema`: print the JSON Schema of the fabrics file or of the JSON output."""

from __future__ import annotations

import argparse

from webhook.cli.output import write
from webhook.config.schema import schema_text
from webhook.render.json_form import form_schema


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `schema`."""
    command.add_argument(
        "what",
        nargs="?",
        choices=("fabrics", "form"),
        default="fabrics",
        help="fabrics: the fabrics file (default); form: the answer of preview -o json",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print one of the schemas."""
    write(form_schema() if arguments.what == "form" else schema_text())
    return 0
