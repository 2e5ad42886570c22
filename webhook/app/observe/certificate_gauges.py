"""The metrics about the certificates."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge


class CertificateGauges:
    """When certificates expire, and whether they are in order."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.not_after = Gauge(
            "rdma_webhook_certificate_not_after_timestamp_seconds",
            "Time at which the serving certificate expires; 0 without one.",
            registry=registry,
        )
        self.successful = Gauge(
            "rdma_webhook_certificate_last_update_successful",
            "1 if the certificates are in order, 0 if there is a problem with their files, "
            "the Secret or caBundle.",
            registry=registry,
        )
        self.ca_not_after = Gauge(
            "rdma_webhook_ca_not_after_timestamp_seconds",
            "Time at which the CA in the Secret expires; 0 if the webhook does not manage a CA.",
            registry=registry,
        )
        self.ca_rotating = Gauge(
            "rdma_webhook_ca_rotating",
            "1 during a rotation of the CA, while the old and the new one are trusted; "
            "otherwise 0.",
            registry=registry,
        )
        self.watched = Gauge(
            "rdma_webhook_certificates_watched",
            "1 while the webhook watches the Secret and the configurations that its own "
            "certificates depend on, 0 if it reads them every few seconds instead.",
            registry=registry,
        )
