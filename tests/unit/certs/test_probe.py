from __future__ import annotations

from typing import Any

from certs.errors import ApiError
from certs.inspection import endpoints
from tests.unit.certs.objects import INSTALLATION, Objects

SERVICE = "/api/v1/namespaces/rdma-webhook/services/rdma-webhook"
SLICES = (
    "/apis/discovery.k8s.io/v1/namespaces/rdma-webhook/endpointslices"
    "?labelSelector=kubernetes.io/service-name=rdma-webhook"
)


def _slice(addresses: list[str], port: int = 8443, **endpoint: Any) -> dict[str, Any]:
    return {
        "endpoints": [{"addresses": addresses, **endpoint}],
        "ports": [{"name": "https", "port": port}, {"name": "preview", "port": 8444}],
    }


def _api(*slices: dict[str, Any]) -> Objects:
    api = Objects()
    ports = [{"name": "https", "port": 443}, {"name": "preview", "port": 8444}]
    api.stored[SERVICE] = {"spec": {"ports": ports}}
    api.stored[SLICES] = {"items": list(slices)}
    return api


def test_each_ready_endpoint_once() -> None:
    """The Service's port determines the endpoints' port, whatever its number."""
    api = _api(
        _slice(["10.0.0.2"], conditions={"ready": True}),
        _slice(["10.0.0.1", "10.0.0.2"]),
        _slice(["10.0.0.3"], conditions={"ready": False}),
        _slice(["fd00::1"], 9443),
    )
    assert endpoints(api, INSTALLATION) == ["10.0.0.1:8443", "10.0.0.2:8443", "[fd00::1]:9443"]


def test_nobody_is_there() -> None:
    """There may be no endpoints, or no Service."""
    assert endpoints(_api(), INSTALLATION) == []
    assert endpoints(Objects(), INSTALLATION) == []


def test_who_may_not_ask_takes_the_service() -> None:
    """In a pod, the Service's name can be resolved."""
    api = Objects()
    api.broken = ApiError("the API server answered 403: forbidden")

    assert endpoints(api, INSTALLATION) == ["rdma-webhook.rdma-webhook.svc:443"]
