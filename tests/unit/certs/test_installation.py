from __future__ import annotations

from dataclasses import replace

from tests.unit.certs.objects import INSTALLATION


def test_names_of_a_service() -> None:
    """The API server verifies the first (ServerName <svc>.<ns>.svc); the others help people."""
    web = replace(INSTALLATION, service="web", namespace="lab")

    assert web.server_name == "web.lab.svc"
    assert web.dns_names == ("web.lab.svc", "web.lab.svc.cluster.local", "web.lab", "web")
