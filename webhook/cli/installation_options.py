"""The names of the objects installed in a cluster, as options of `serve` and `certs`."""

from __future__ import annotations

import argparse

from webhook.cli.options import object_name
from webhook.serve.options import DEFAULTS

_INSTALLED = (
    (
        "-n --namespace",
        None,
        "namespace of the Service and the Secret (default: the pod's, else rdma-webhook)",
    ),
    ("--service", DEFAULTS.service, "Service that the API server calls"),
    ("--ca-secret", DEFAULTS.ca_secret, "Secret with the CA, created if it does not exist"),
    (
        "--webhook-configuration",
        DEFAULTS.webhook_configuration,
        "MutatingWebhookConfiguration whose caBundle the webhook maintains",
    ),
    (
        "--validating-webhook-configuration",
        DEFAULTS.validating_webhook_configuration,
        "ValidatingWebhookConfiguration whose caBundle the webhook maintains",
    ),
)


def add_name_options(options: argparse._ActionsContainer) -> None:
    """Add the options for the names of the installed objects."""
    for flags, name, summary in _INSTALLED:
        help_text = f"{summary} (default: {name})" if name else summary
        options.add_argument(
            *flags.split(), type=object_name, default=name, metavar="NAME", help=help_text
        )
