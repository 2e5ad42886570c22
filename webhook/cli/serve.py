"""`rdma-webhook serve`: run the webhook until a signal ends it."""

from __future__ import annotations

import argparse
import sys

from certs.lifetimes import Lifetimes
from webhook.cli.fabrics import configured
from webhook.server import ServeOptions, serve
from webhook.visible import visible_lines


def run(arguments: argparse.Namespace) -> int:
    """Serve, and return the exit code."""
    return serve(
        ServeOptions(
            config=configured(arguments.config),
            facts=arguments.facts,
            watch=arguments.watch == "on",
            host=arguments.host,
            port=arguments.port,
            preview_port=arguments.preview_port,
            health_port=arguments.health_port,
            tls_cert=arguments.tls_cert,
            tls_key=arguments.tls_key,
            client_ca=arguments.client_ca,
            namespace=arguments.namespace,
            service=arguments.service,
            ca_secret=arguments.ca_secret,
            webhook_configuration=arguments.webhook_configuration,
            lifetimes=Lifetimes(
                ca=arguments.ca_lifetime,
                leaf=arguments.leaf_lifetime,
                propagation=arguments.ca_propagation,
                round=arguments.ca_round,
            ),
            kubeconfig=arguments.kubeconfig,
            preview=arguments.preview == "on",
            log_level=arguments.log_level,
            drain_seconds=arguments.drain_seconds,
            dev=arguments.dev,
            announce=_announce,
        )
    )


def _announce(message: str) -> None:
    sys.stdout.write(visible_lines(message))
    sys.stdout.flush()
