"""Choose the source of the serving certificate.

It comes from files that another program renews; or, in a cluster, from this process, which
issues certificates and makes the API server trust them; or, with `--dev`, it is issued at start.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Protocol

from certs.installation import Installation, server_name
from certs.self_managed import SelfManaged
from certs.serving import CertificateFiles, ServingContext
from webhook.errors import ConfigError
from webhook.kube.access import IN_CLUSTER, SERVICE_ACCOUNT, own_namespace
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions, configurations
from webhook.serve.sources.certificate_api import connect
from webhook.serve.sources.certificate_sources import FileCertificate, SelfManagedCertificate
from webhook.serve.sources.certificate_watch import certificate_watch
from webhook.serve.state import State


class Certificate(Protocol):
    """Keeps the serving certificate in step with its source."""

    def start(self) -> None:
        """Start the work that runs beside the event loop."""

    def stop(self) -> None:
        """Stop that work."""

    def poll(self) -> bool:
        """Return whether there is something to report; may block, so not in the event loop."""

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Report it, in the event loop."""


def certificate_of(
    options: ServeOptions, serving: ServingContext, state: State, environment: Mapping[str, str]
) -> Certificate:
    """Choose by the options, and add its check to `/readyz`; ConfigError if there is no source."""
    if options.dev or options.tls_cert or options.tls_key:
        return FileCertificate(serving, _files(options, serving, environment), state)
    installation = installation_of(options, environment)
    if options.lifetimes.problem:
        raise ConfigError(f"certificates' lifetimes: {options.lifetimes.problem}")
    reach = partial(connect, options.kubeconfig)
    watch = certificate_watch(options.kubeconfig, installation)
    managed = SelfManaged(installation, serving, reach, options.lifetimes, watch=watch)
    return SelfManagedCertificate(managed, serving, state)


def _files(
    options: ServeOptions, serving: ServingContext, environment: Mapping[str, str]
) -> CertificateFiles | None:
    if options.tls_cert and options.tls_key:
        namespace = _known_namespace(options, environment)
        name = server_name(options.service, namespace) if namespace else None
        return CertificateFiles(options.tls_cert, options.tls_key, serving, name)
    if options.tls_cert or options.tls_key:
        raise ConfigError("--tls-cert and --tls-key belong together: give both, or neither")
    return None


def installation_of(options: ServeOptions, environment: Mapping[str, str]) -> Installation:
    """Return the names of the webhook's objects; ConfigError if its namespace is not known."""
    if options.kubeconfig is None and not environment.get(IN_CLUSTER):
        raise ConfigError(
            "no certificate: give --tls-cert and --tls-key, or --dev to try it on this machine; "
            "in a cluster, or with --kubeconfig, it manages its own"
        )
    if options.kubeconfig is not None and not options.kubeconfig.is_file():
        raise ConfigError(f"cannot read --kubeconfig {options.kubeconfig}: no such file")
    namespace = _known_namespace(options, environment)
    if not namespace:
        where = f"{SERVICE_ACCOUNT}/namespace does not exist"
        raise ConfigError(f"the webhook's namespace is not known: give --namespace ({where})")
    return Installation(
        namespace=namespace,
        service=options.service,
        ca_secret=options.ca_secret,
        configurations=configurations(
            options.webhook_configuration, options.validating_webhook_configuration
        ),
    )


def _known_namespace(options: ServeOptions, environment: Mapping[str, str]) -> str:
    """Return the namespace of the options, or that of the pod; "" if neither is known."""
    return options.namespace or own_namespace(environment)
