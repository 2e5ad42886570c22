"""Connect to the replicas of a webhook as the API server does, and see what they serve."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

from cryptography import x509

from certs.errors import ApiError
from certs.installation import Api, Installation, Object

#: Seconds. The API server waits 10 s for a webhook by default, handshake included.
TIMEOUT = 5.0
#: The default port of a Service in a webhook's clientConfig.
PORT = 443


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The result of one TLS handshake."""

    #: HOST:PORT.
    address: str
    #: Why an API server would not send its reviews there; "" if it would.
    problem: str
    #: The served certificate, even if it is not trusted; None if nothing answers.
    leaf: x509.Certificate | None = None


def probe(address: str, name: str, roots: bytes) -> ProbeResult:
    """Do a TLS handshake: `name` is the server name, `roots` (PEM) the only trusted CAs."""
    try:
        leaf = _handshake_with(address, name, _trusting(roots))
    except ssl.SSLCertVerificationError as error:
        problem = error.verify_message or str(error)
        return ProbeResult(address=address, problem=problem, leaf=_untrusted(address, name))
    except ssl.SSLError as error:
        return ProbeResult(
            address=address, problem=f"the TLS handshake failed: {error.reason or error}"
        )
    except OSError as error:
        why = error.strerror or str(error) or type(error).__name__
        return ProbeResult(address=address, problem=f"cannot connect: {why}")
    return ProbeResult(address=address, problem="", leaf=leaf)


def _trusting(roots: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if roots:  # otherwise nothing is trusted, although Go would trust the system's CAs
        context.load_verify_locations(cadata=roots.decode("ascii"))
    return context


def _untrusted(address: str, name: str) -> x509.Certificate | None:
    """Return the served certificate without verifying it, to report it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        return _handshake_with(address, name, context)
    except OSError:  # a base of ssl.SSLError
        return None


def _handshake_with(address: str, name: str, context: ssl.SSLContext) -> x509.Certificate:
    host, _, port = address.rpartition(":")
    with (
        socket.create_connection((host.strip("[]"), int(port)), TIMEOUT) as raw,
        context.wrap_socket(raw, server_hostname=name) as tls,
    ):
        shown = tls.getpeercert(binary_form=True)
    assert shown is not None  # a server always has one
    return x509.load_der_x509_certificate(shown)


def endpoints(api: Api, installation: Installation, port: int = PORT) -> list[str]:
    """Return HOST:PORT of each ready endpoint, or of the Service if reading those is forbidden.

    The ServiceAccount of a replica may not read them, but in its pod the Service's name resolves.
    """
    try:
        return _ready_endpoints(api, installation, port)
    except ApiError:
        return [f"{installation.server_name}:{port}"]


def _ready_endpoints(api: Api, installation: Installation, port: int) -> list[str]:
    namespace, name = installation.namespace, installation.service
    service = api.read(f"/api/v1/namespaces/{namespace}/services/{name}")
    port_names = [
        one.get("name", "")
        for one in ((service or {}).get("spec") or {}).get("ports") or ()
        if one.get("port") == port
    ]
    slices = api.read(
        f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        f"?labelSelector=kubernetes.io/service-name={name}"
    )
    found = (slices or {}).get("items") or ()
    return sorted({address for one in found for address in _ready(one, port_names)})


def _ready(endpoint_slice: Object, port_names: list[str]) -> list[str]:
    ports = [
        port["port"]
        for port in endpoint_slice.get("ports") or ()
        if (port.get("name") or "") in port_names
    ]
    hosts = [
        f"[{host}]" if ":" in host else str(host)
        for endpoint in endpoint_slice.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready") is not False
        for host in endpoint.get("addresses") or ()
    ]
    return [f"{host}:{port}" for host in hosts for port in ports]
