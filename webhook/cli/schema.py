"""`rdma-webhook schema`: print the schema of the fabrics file, or of a JSON output."""

from __future__ import annotations

import argparse

from webhook.cli.check_config import check_config_schema
from webhook.cli.output import write
from webhook.config.crd import definition_text
from webhook.config.schema import schema_text
from webhook.diagnose.discover.output import discover_schema
from webhook.diagnose.install.output import install_schema
from webhook.diagnose.verify.matrix_output import matrix_schema
from webhook.diagnose.verify.output import verify_schema
from webhook.diagnose.why.output import why_schema
from webhook.preview.comparison import changes_schema
from webhook.preview.fabrics.record import fabrics_schema
from webhook.preview.report.json import preview_schema

_SCHEMAS = {
    "fabrics": schema_text,
    "crd": definition_text,
    "check-config": check_config_schema,
    "preview": preview_schema,
    "fabrics-output": fabrics_schema,
    "why": why_schema,
    "discover": discover_schema,
    "verify": verify_schema,
    "verify-run": matrix_schema,
    "diff-config": changes_schema,
    "check-install": install_schema,
}

#: Schemas with the name of the command.
_OF_COMMANDS = "check-config, preview, why, discover, diff-config, check-install"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `schema`."""
    command.add_argument(
        "schema",
        nargs="?",
        choices=tuple(_SCHEMAS),
        default="fabrics",
        metavar="SCHEMA",
        help="fabrics: the fabrics file, as a JSON Schema; crd: the same as a "
        "CustomResourceDefinition; fabrics-output, verify, verify-run: the JSON output of fabrics, "
        f"verify judge, verify run; {_OF_COMMANDS}: the JSON output of that command (default: "
        "fabrics)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print one of the schemas."""
    write(_SCHEMAS[arguments.schema]())
    return 0
