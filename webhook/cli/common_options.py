"""Options that several commands have, and what they mean."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from webhook.app.options import DEFAULTS
from webhook.cli import argument_types as types

CONFIG_VARIABLE = "RDMA_WEBHOOK_CONFIG"
FACTS_HELP = "what kubectl get ns,limitrange,quota,node -A -o yaml printed"
_INSTALLED = (
    ("--namespace", None, "the namespace of its Service and its Secret (default: the pod's)"),
    ("--service", DEFAULTS.service, "the Service that the API server calls"),
    ("--ca-secret", DEFAULTS.ca_secret, "the Secret of its CA, made if there is none"),
    (
        "--webhook-configuration",
        DEFAULTS.webhook_configuration,
        "the MutatingWebhookConfiguration whose caBundle it keeps",
    ),
)


def add_form(command: argparse.ArgumentParser) -> None:
    """Add the option."""
    command.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="for people or for programs (default: text)",
    )


def add_names(options: argparse._ActionsContainer) -> None:
    """Add the names of what is installed in the cluster."""
    for flag, name, what in _INSTALLED:
        told = f"{what} (default: {name})" if name else what
        options.add_argument(flag, type=types.name, default=name, metavar="NAME", help=told)


def configured(given: str | None) -> Path | None:
    """Return the file that the options or else the environment name, None where neither does."""
    name = given or os.environ.get(CONFIG_VARIABLE)
    return Path(name) if name else None
