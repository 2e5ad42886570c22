"""What `rdma-webhook serve` can be told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from certs.lifetimes import Lifetimes
from webhook.config import EXAMPLE

#: Where the manifests mount the ConfigMap.
CONFIG = Path("/etc/rdma-webhook/fabrics.yaml")
#: The name of the webhook in its MutatingWebhookConfiguration; never changed, because server-side
#: apply finds its entry by it.
WEBHOOK = "pods.rdma.lab"
_LIFETIMES = Lifetimes()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """What `rdma-webhook serve` can be told."""

    #: The fabrics file; None: CONFIG, or with `dev` an example.
    config: Path | None = None
    facts: Path | None = None
    #: In a cluster, or with a kubeconfig, and without `facts`: watch namespaces and their rules.
    watch: bool = True
    #: "": all addresses of the machine, IPv4 and IPv6.
    host: str = ""
    port: int = 8443
    preview_port: int = 8444
    health_port: int = 8080
    tls_cert: Path | None = None
    tls_key: Path | None = None
    client_ca: Path | None = None
    #: For certificates of its own in a cluster. None: the pod's namespace.
    namespace: str | None = None
    service: str = "rdma-webhook"
    ca_secret: str = "rdma-webhook-ca"  # noqa: S105 -- a name
    webhook_configuration: str = "zz-rdma-webhook"
    lifetimes: Lifetimes = _LIFETIMES
    #: None: the pod's service account.
    kubeconfig: Path | None = None
    preview: bool = True
    #: How long a preview may take to compute.
    preview_seconds: float = 10.0
    log_level: str = "info"
    #: How long to go on serving after SIGTERM.
    drain_seconds: float = 15.0
    poll_seconds: float = 1.0
    #: How long a request may take to arrive; the API server waits 30 s for an answer at most.
    request_seconds: float = 30.0
    #: On 127.0.0.1, with certificates of its own, no draining.
    dev: bool = False
    #: Called with what to tell the user once all listeners are up.
    announce: Callable[[str], None] | None = None

    @property
    def fabrics(self) -> Path:
        """The fabrics file that is served."""
        return self.config or (EXAMPLE if self.dev else CONFIG)


#: What `serve` does where nothing else is asked for: its options say the same.
DEFAULTS = ServeOptions()
