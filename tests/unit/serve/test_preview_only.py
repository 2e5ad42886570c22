"""`serve --preview only`: a server of previews, for a pod with no right but to read the fabrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from webhook.errors import ConfigError
from webhook.kube.access import IN_CLUSTER
from webhook.serve import server
from webhook.serve.options import ServeOptions
from webhook.serve.server import WebhookServer
from webhook.serve.sources.certificates import UntrustedCertificate
from webhook.serve.sources.configuration_object import ObjectConfiguration

_FREE = {"host": "127.0.0.1", "port": 0, "preview_port": 0, "health_port": 0}


def _close(prepared: WebhookServer) -> None:
    for listening in prepared._sockets.values():
        listening.close()


def test_nothing_else_is_served_or_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pod with all variables of a replica: no port of /mutate, no watch but of the fabrics.

    In particular nothing writes the status or an Event, takes the Lease, or reads the CA.
    """
    monkeypatch.setenv(IN_CLUSTER, "10.0.0.1")
    for name in ("POD_NAME", "POD_NAMESPACE"):
        monkeypatch.setenv(name, "rdma-webhook")
    prepared = WebhookServer(ServeOptions(preview="only", **_FREE))  # type: ignore[arg-type]
    _close(prepared)
    assert prepared.ports.keys() == {"preview", "health"}
    configuration, certificate = prepared._sources
    assert isinstance(configuration, ObjectConfiguration)
    assert isinstance(certificate, UntrustedCertificate)
    names = [check.name for check in prepared.state.checks()]
    assert names == ["configuration", "certificate", "serving"]


def test_a_replica_reads_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same pod with the usual options has all ports, and more sources."""
    monkeypatch.setenv(IN_CLUSTER, "10.0.0.1")
    monkeypatch.setenv("POD_NAMESPACE", "rdma-webhook")
    prepared = WebhookServer(ServeOptions(namespace="rdma-webhook", **_FREE))  # type: ignore[arg-type]
    _close(prepared)
    assert prepared.ports.keys() == {"mutate", "preview", "health"}
    assert {"facts", "guard"} <= {check.name for check in prepared.state.checks()}


def test_it_is_not_for_development() -> None:
    """`--dev` announces addresses of /mutate, and `preview --page` serves the page alone."""
    with pytest.raises(ConfigError, match=r"^--preview only is for a cluster, and --dev is not; "):
        WebhookServer(ServeOptions(preview="only", dev=True, config=Path("missing.yaml")))
    assert server.serve(ServeOptions(preview="only", dev=True)) == 2
