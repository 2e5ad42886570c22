"""The options of `rdma-webhook serve`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from certs.durations import Durations
from certs.installation import WebhookConfiguration
from webhook.config import EXAMPLE, INSTALLED_FABRICS

#: The names of the webhooks in their configurations, `/mutate` and `/validate`. They never change,
#: because server-side apply identifies an entry by its name.
POD_WEBHOOK, CONFIGURATION_WEBHOOK = "pods.rdma.lab", "fabrics.rdma.lab"
_DURATIONS = Durations()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """The options of `rdma-webhook serve`."""

    #: The fabrics file; None: an example with `dev`, the object in a cluster, INSTALLED_FABRICS
    #: elsewhere.
    config: Path | None = None
    facts: Path | None = None
    #: Whether to watch namespaces and their rules, given a cluster or kubeconfig and no `facts`.
    watch: bool = True
    #: The address to listen on; "" for all of the machine, IPv4 and IPv6.
    host: str = ""
    port: int = 8443
    preview_port: int = 8444
    health_port: int = 8080
    #: The port of the page as plain HTTP, with `dev`.
    page_port: int = 8081
    #: Whether to serve nothing but that page; requires `dev`.
    page_only: bool = False
    tls_cert: Path | None = None
    tls_key: Path | None = None
    client_ca: Path | None = None
    #: The webhook's namespace, for self-issued certificates; None for the pod's namespace.
    namespace: str | None = None
    service: str = "rdma-webhook"
    ca_secret: str = "rdma-webhook-ca"  # noqa: S105 -- a name
    webhook_configuration: str = "zz-rdma-webhook"
    validating_webhook_configuration: str = "rdma-webhook"
    durations: Durations = _DURATIONS
    #: The kubeconfig; None for the pod's service account.
    kubeconfig: Path | None = None
    #: Whether to serve previews. "only": and nothing else, except health; this needs no right but
    #: to read the fabrics.
    preview: Literal["on", "off", "only"] = "on"
    #: The time limit for computing a preview.
    preview_seconds: float = 10.0
    #: The maximum number of decisions to keep for other pods of the same workloads; 0 for none.
    decision_cache: int = 256
    log_level: str = "info"
    #: The minimum time of serving after SIGTERM.
    drain_seconds: float = 15.0
    #: The time limit for an idle connection. More than the 90 s after which Go's HTTP client drops
    #: one: if the server dropped it first, a request on its way would be lost, since kube-apiserver
    #: does not repeat a POST.
    idle_seconds: float = 120.0
    poll_seconds: float = 1.0
    #: The time limit for a request's arrival; the API server waits at most 30 s for an answer.
    request_seconds: float = 30.0
    #: Whether to serve on 127.0.0.1, with certificates issued at start and without draining.
    dev: bool = False
    #: A function to call with a message for the user once all listeners are up.
    announce: Callable[[str], None] | None = None

    @property
    def example(self) -> bool:
        """Whether to use example fabrics, because none were given."""
        return self.dev and self.config is None

    @property
    def fabrics(self) -> Path:
        """The fabrics file to read; see `configuration_source`."""
        return self.config or (EXAMPLE if self.dev else INSTALLED_FABRICS)


def webhook_configurations(mutating: str, validating: str) -> tuple[WebhookConfiguration, ...]:
    """Return the webhook configurations with these names: API servers call the webhook by them."""
    return (
        WebhookConfiguration(
            kind="MutatingWebhookConfiguration", name=mutating, webhook=POD_WEBHOOK
        ),
        WebhookConfiguration(
            kind="ValidatingWebhookConfiguration", name=validating, webhook=CONFIGURATION_WEBHOOK
        ),
    )


#: The defaults, which the options of the command line use too.
DEFAULTS = ServeOptions()
