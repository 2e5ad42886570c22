"""Where the replicas of a webhook are reached: each of its endpoints, or its Service."""

from __future__ import annotations

from certs.errors import ApiError
from certs.installation import Api, Installation, Object

#: Of a Service in a webhook's clientConfig that names none.
PORT = 443


def places(api: Api, installation: Installation, port: int = PORT) -> list[str]:
    """Return HOST:PORT of each ready endpoint, or of the Service where we may not ask for those.

    In a pod the ServiceAccount may not, and the Service's name is known there.
    """
    try:
        return _endpoints(api, installation, port)
    except ApiError:
        return [f"{installation.server_name}:{port}"]


def _endpoints(api: Api, installation: Installation, port: int) -> list[str]:
    namespace, name = installation.namespace, installation.service
    service = api.read(f"/api/v1/namespaces/{namespace}/services/{name}")
    names = [
        one.get("name", "")
        for one in ((service or {}).get("spec") or {}).get("ports") or ()
        if one.get("port") == port
    ]
    slices = api.read(
        f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        f"?labelSelector=kubernetes.io/service-name={name}"
    )
    found = (slices or {}).get("items") or ()
    return sorted({place for one in found for place in _ready(one, names)})


def _ready(one: Object, names: list[str]) -> list[str]:
    ports = [port["port"] for port in one.get("ports") or () if (port.get("name") or "") in names]
    hosts = [
        f"[{host}]" if ":" in host else str(host)
        for endpoint in one.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready") is not False
        for host in endpoint.get("addresses") or ()
    ]
    return [f"{host}:{port}" for host in hosts for port in ports]
