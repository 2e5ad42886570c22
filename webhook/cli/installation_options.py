"""The names of the objects installed in a cluster, as options of several commands."""

from __future__ import annotations

import argparse
import os

from certs.installation import Installation
from webhook.cli.options import object_name
from webhook.kube.access import own_namespace
from webhook.serve.options import DEFAULTS, webhook_configurations

#: The namespace that the manifests install the webhook in.
_NAMESPACE = "rdma-webhook"
_ADDRESS_HELP = "address for the handshake, instead of the Service's endpoints; may be repeated"

_INSTALLED = (
    (
        "-n --namespace",
        None,
        "namespace of the Service and the Secret (default: the pod's, else rdma-webhook)",
    ),
    ("--service", DEFAULTS.service, "Service that the API server calls"),
    ("--ca-secret", DEFAULTS.ca_secret, "Secret with the CA"),
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


def installation_of(arguments: argparse.Namespace) -> Installation:
    """Return the installation with the names of the options."""
    return Installation(
        namespace=arguments.namespace or own_namespace(os.environ) or _NAMESPACE,
        service=arguments.service,
        ca_secret=arguments.ca_secret,
        webhook_configurations=webhook_configurations(
            arguments.webhook_configuration, arguments.validating_webhook_configuration
        ),
    )


def add_addresses(command: argparse.ArgumentParser) -> None:
    """Add the option for the addresses of TLS handshakes, which may be repeated."""
    command.add_argument(
        "--address",
        action="append",
        default=[],
        type=_address,
        metavar="HOST:PORT",
        help=_ADDRESS_HELP,
    )


def _address(given: str) -> str:
    host, _, port = given.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 1 << 16:
        raise argparse.ArgumentTypeError(f"{given!r:.80} is not HOST:PORT")
    return given
