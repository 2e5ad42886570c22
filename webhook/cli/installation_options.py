"""The names of the objects installed in a cluster, as options of `serve` and `certs`."""

from __future__ import annotations

import argparse

from webhook.app.options import DEFAULTS
from webhook.cli import argument_types as types

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


def add_names(options: argparse._ActionsContainer) -> None:
    """Add the options for the names of the installed objects."""
    for flag, name, what in _INSTALLED:
        told = f"{what} (default: {name})" if name else what
        options.add_argument(flag, type=types.name, default=name, metavar="NAME", help=told)
