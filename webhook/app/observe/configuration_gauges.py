"""The metrics about the configuration."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge


class ConfigurationGauges:
    """Which configuration is in use, since when, and whether it is the present one."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.configured = Gauge(
            "rdma_webhook_configured",
            "1 if there are fabrics to decide by, 0 if each pod that opted in is left to "
            "failurePolicy.",
            registry=registry,
        )
        self.generation = Gauge(
            "rdma_webhook_config_generation",
            "Number of configurations that have been loaded since the start.",
            registry=registry,
        )
        self._info = Gauge(
            "rdma_webhook_config_info",
            "Always 1; the label has the hash of the configuration in use.",
            ["config"],
            registry=registry,
        )
        self.reloaded = Gauge(
            "rdma_webhook_config_last_reload_success_timestamp_seconds",
            "Time at which the configuration in use was loaded; its age is time() minus this.",
            registry=registry,
        )
        self.successful = Gauge(
            "rdma_webhook_config_last_reload_successful",
            "1 if the present configuration is in use, 0 if it cannot be used; an earlier one, if "
            "there was one, is then still in use.",
            registry=registry,
        )

    def used(self, config_hash: str) -> None:
        """Show the hash of the configuration in use; "" if there is none."""
        self._info.clear()
        if config_hash:
            self._info.labels(config_hash).set(1)
