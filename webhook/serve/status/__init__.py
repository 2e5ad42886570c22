"""The status of the FabricConfiguration, as printed by `kubectl get fabrics`, and its writer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from webhook.serve.events import POD_VARIABLES
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.sources.configuration_object import ObjectConfiguration
from webhook.serve.state import State
from webhook.serve.status.content import NodeSummary, status_update
from webhook.serve.status.writer import StatusApi, StatusLease, StatusWriter

#: The Lease of the manifests.
LEASE = "rdma-webhook"
#: Seconds for giving the Lease back when the process ends.
_RELEASE = 3.0


class FabricStatus:
    """A source that keeps the object's status in step with the state of this replica."""

    def __init__(self, writer: StatusWriter) -> None:
        self._writer = writer

    def start(self) -> None:
        """Start the thread."""
        self._writer.start()

    def stop(self) -> None:
        """Give the Lease back, and end the thread."""
        self._writer.stop()
        self._writer.join(_RELEASE)

    def poll(self) -> bool:
        """Return False: there is nothing to apply."""
        return False

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Do nothing."""


def status_writer(
    options: ServeOptions,
    configuration: object,
    state: State,
    log: Log,
    environment: Mapping[str, str],
) -> tuple[FabricStatus, ...]:
    """Return the writer of the status, if the configuration is an object and this is a pod."""
    replica = environment.get(POD_VARIABLES["name"], "")
    namespace = environment.get(POD_VARIABLES["namespace"], "")
    if not isinstance(configuration, ObjectConfiguration) or not replica or not namespace:
        return ()

    def log_failure(problem: str) -> None:
        log.write("warning", "could not write the status", problem=problem)

    node_summary = NodeSummary()
    writer = StatusWriter(
        lambda: _connect(options.kubeconfig, namespace, replica),
        lambda: status_update(configuration.observed, state.snapshot.current, node_summary),
        log_failure,
    )
    return (FabricStatus(writer),)


def _connect(
    kubeconfig: Path | None, namespace: str, replica: str
) -> tuple[StatusLease, StatusApi]:
    from webhook.kube.client import Client  # noqa: PLC0415 -- slow to import
    from webhook.kube.lease import Lease  # noqa: PLC0415

    client = Client(kubeconfig)
    return Lease(client, namespace, LEASE, replica), client
