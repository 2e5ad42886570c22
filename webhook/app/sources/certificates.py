"""Where the serving certificate comes from, and what is told of it.

Files that somebody else renews; or, in a cluster, certificates that this process makes and
has the API server trust; or, with `--dev`, one that was made at start.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from certs.installation import Installation, server_name
from certs.self_managed import SelfManaged
from certs.serving import CertificateFiles, ServingContext
from webhook.app.observe.log import Log
from webhook.app.observe.metrics import Metrics
from webhook.app.options import WEBHOOK, ServeOptions
from webhook.app.sources.certificate_api import connect
from webhook.app.sources.certificate_sources import FileCertificate, SelfManagedCertificate
from webhook.app.state import State
from webhook.errors import ConfigError

#: Where the kubelet mounts what a pod needs to talk to the API server.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: What the kubelet sets in every container.
IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
#: What the manifests set: the pod's own namespace, also where no service account is mounted.
NAMESPACE_VARIABLE = "POD_NAMESPACE"


class Certificate(Protocol):
    """What keeps the serving certificate in step with where it comes from."""

    def start(self) -> None:
        """Begin what goes on beside the event loop."""

    def stop(self) -> None:
        """End that."""

    def poll(self) -> bool:
        """Return whether there is something to tell; may block, so not in the loop."""

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Tell it, in the event loop."""


def certificate_of(
    options: ServeOptions, serving: ServingContext, state: State, environment: Mapping[str, str]
) -> Certificate:
    """Choose by what is given, and have `/readyz` ask it; ConfigError if nothing is."""
    if options.dev or options.tls_cert or options.tls_key:
        return FileCertificate(serving, _files(options, serving, environment), state)
    installation = installation_of(options, environment)
    if options.lifetimes.problem:
        raise ConfigError(f"certificates' lifetimes: {options.lifetimes.problem}")
    reach = partial(connect, options.kubeconfig)
    managed = SelfManaged(installation, serving, reach, options.lifetimes)
    return SelfManagedCertificate(managed, serving, state)


def _files(
    options: ServeOptions, serving: ServingContext, environment: Mapping[str, str]
) -> CertificateFiles | None:
    if options.tls_cert and options.tls_key:
        namespace = _known_namespace(options, environment)
        name = server_name(options.service, namespace) if namespace else None
        return CertificateFiles(options.tls_cert, options.tls_key, serving, name)
    if options.tls_cert or options.tls_key:
        raise ConfigError("--tls-cert and --tls-key: one is of no use without the other")
    return None


def installation_of(options: ServeOptions, environment: Mapping[str, str]) -> Installation:
    """Say where the webhook lives; ConfigError where that cannot be known."""
    if options.kubeconfig is None and not environment.get(IN_CLUSTER):
        raise ConfigError(
            "no certificate: give --tls-cert and --tls-key, or --dev for a try on this machine, "
            "or run it in a cluster, where it looks after its own (elsewhere: --kubeconfig)"
        )
    if options.kubeconfig is not None and not options.kubeconfig.is_file():
        raise ConfigError(f"cannot read --kubeconfig {options.kubeconfig}: no such file")
    namespace = _known_namespace(options, environment)
    if not namespace:
        where = f"{SERVICE_ACCOUNT}/namespace is not there"
        raise ConfigError(f"which namespace is the webhook in? Give --namespace ({where})")
    return Installation(
        namespace=namespace,
        service=options.service,
        ca_secret=options.ca_secret,
        configuration=options.webhook_configuration,
        webhook=WEBHOOK,
    )


def _known_namespace(options: ServeOptions, environment: Mapping[str, str]) -> str:
    """Return the namespace that is given, or that of the pod; "" if neither is known."""
    return options.namespace or own_namespace(environment)


def own_namespace(environment: Mapping[str, str]) -> str:
    """Return the namespace of the pod that this runs in; "" where that is not known."""
    if named := environment.get(NAMESPACE_VARIABLE, ""):
        return named
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError:
        return ""
