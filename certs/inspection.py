"""Inspect an installation's certificates: the Secret, `caBundle`, and the leaf of each replica.

`inspect` judges the objects and does a TLS handshake with each replica; `verify` does the
handshakes only.
"""

from __future__ import annotations

import socket
import ssl
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509

from certs.authorities import Authorities
from certs.ca_bundle import BundleContent, BundleContents, CaBundles
from certs.clock import Clock
from certs.errors import ApiError
from certs.installation import Api, Installation, Object
from certs.pem import dns_names, fingerprint, is_issued_by, load_certificates
from certs.secret import IMMUTABLE, CaSecret, SecretContent

#: Each known CA with its role: current, next, previous or unknown, as in `InspectedCa`.
_CaRoles = list[tuple[str, x509.Certificate]]


#: The start of the problem if nothing answers at an address.
_CANNOT_CONNECT = "cannot connect: "


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedCa:
    """A CA in the Secret or in `caBundle`."""

    #: current, next or previous; unknown if it is only in `caBundle`.
    role: str
    #: SHA-256, in hex.
    fingerprint: str
    not_before: datetime
    not_after: datetime
    #: Whether `caBundle` of any configuration has it.
    in_bundle: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedBundle:
    """The `caBundle` of one webhook configuration."""

    #: Its kind and name.
    configuration: str
    #: Its defect; "" if it has none.
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """The result of a TLS handshake with one address, as the API server does it."""

    address: str
    #: The reason for a failure; "" after a success.
    problem: str
    #: The role of the CA that issued the served certificate; "" if it is not known.
    issuer: str = ""
    names: tuple[str, ...] = ()
    not_after: datetime | None = None

    @property
    def reached(self) -> bool:
        """Whether something listens at the address."""
        return not self.problem.startswith(_CANNOT_CONNECT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Everything about the certificates at one moment; `certs status -o json` prints its fields."""

    #: settled, publishing or draining; "" if there is no usable CA.
    phase: str
    #: The Secret's defect; "" if it has none.
    secret_problem: str
    bundles: tuple[InspectedBundle, ...]
    #: The earliest removal of the previous CA.
    retire_after: datetime | None
    #: A request that no replica has acted on yet: rotate or revoke; "" if there is none.
    requested: str
    authorities: tuple[InspectedCa, ...]
    handshakes: tuple[Handshake, ...]

    @property
    def served(self) -> bool:
        """Whether an API server can reach every address, and there is at least one."""
        return bool(self.handshakes) and not any(handshake.problem for handshake in self.handshakes)

    @property
    def is_healthy(self) -> bool:
        """Whether nobody needs to do anything."""
        sound = not any(bundle.problem for bundle in self.bundles)
        return self.served and sound and not self.secret_problem


def inspect(api: Api, installation: Installation, addresses: Sequence[str] = ()) -> Inspection:
    """Inspect everything; raise ApiError if the API server does not allow it.

    `addresses`: HOST:PORT of replicas, instead of the endpoints in the cluster.
    """
    clock = Clock()
    bundles = CaBundles(api, installation, clock).read()
    secret = CaSecret(api, installation)
    secret_content = secret.read(clock.now())
    authorities = secret_content.authorities
    roles = _roles(authorities, bundles)
    inspected_cas = tuple(_inspected_ca(role, ca, bundles) for role, ca in roles)
    return Inspection(
        phase=authorities.phase if authorities else "",
        secret_problem=_secret_problem(secret, secret_content),
        bundles=tuple(
            InspectedBundle(
                configuration=str(configuration),
                problem=_bundle_problem(inspected_cas, bundle_content),
            )
            for configuration, bundle_content in zip(
                installation.webhook_configurations, bundles.contents, strict=True
            )
        ),
        retire_after=authorities.retire_after if authorities else None,
        requested=(authorities.rotation_request or "") if authorities else "",
        authorities=inspected_cas,
        handshakes=_handshakes(api, installation, addresses, bundles, roles),
    )


def verify(
    api: Api, installation: Installation, addresses: Sequence[str] = ()
) -> tuple[Handshake, ...]:
    """Do the handshakes only; works for any certificates, and without access to the Secret."""
    clock = Clock()
    bundles = CaBundles(api, installation, clock).read()
    try:
        authorities = CaSecret(api, installation).read(clock.now()).authorities
    except ApiError:
        authorities = None  # the roles of the issuers are then unknown
    roles = _roles(authorities, bundles)
    return _handshakes(api, installation, addresses, bundles, roles)


def _roles(authorities: Authorities | None, bundles: BundleContents) -> _CaRoles:
    """Return every known CA with its role, starting with the Secret's."""
    pems: list[tuple[str, bytes]] = []
    if authorities is not None:
        pems.append(("current", authorities.current.certificate))
        pems += [("next", authorities.next.certificate)] if authorities.next else []
        pems += [("previous", pem) for pem in authorities.previous]
    roles = [(role, ca) for role, pem in pems for ca in load_certificates(pem)]
    in_secret = {fingerprint(ca) for _, ca in roles}
    trusted = load_certificates(bundles.pem) if bundles.pem else []
    unknown = {fingerprint(ca): ca for ca in trusted if fingerprint(ca) not in in_secret}
    return roles + [("unknown", ca) for ca in unknown.values()]


def _inspected_ca(role: str, certificate: x509.Certificate, bundles: BundleContents) -> InspectedCa:
    mark = fingerprint(certificate)
    return InspectedCa(
        role=role,
        fingerprint=mark,
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        in_bundle=any(mark in content.fingerprints for content in bundles.contents),
    )


def _secret_problem(secret: CaSecret, content: SecretContent) -> str:
    if content.authorities is None:
        return content.problem or f"there is no CA in {secret}"
    return IMMUTABLE if content.immutable else ""


def _bundle_problem(cas: Sequence[InspectedCa], content: BundleContent) -> str:
    if content.problem:
        return content.problem
    trusted = [ca for ca in cas if ca.fingerprint in content.fingerprints]
    in_secret = Counter(ca.role for ca in cas if ca.role != "unknown")
    missing = Counter(ca.role for ca in cas if ca.role in in_secret and ca not in trusted)
    if missing:
        parts = (_missing_cas(role, count, in_secret[role]) for role, count in missing.items())
        return f"it lacks {' and '.join(parts)}"
    unknown = sum(ca.role == "unknown" for ca in trusted)
    return f"it trusts {unknown} CA{'s' * (unknown > 1)} that the Secret lacks" if unknown else ""


def _missing_cas(role: str, count: int, in_secret: int) -> str:
    """Name the CAs of a role that `caBundle` lacks; the Secret may have several previous ones."""
    return f"the {role} CA" if in_secret == 1 else f"{count} of {in_secret} {role} CAs"


def _handshakes(
    api: Api,
    installation: Installation,
    addresses: Sequence[str],
    bundles: BundleContents,
    roles: _CaRoles,
) -> tuple[Handshake, ...]:
    name = installation.server_name
    targets = addresses or endpoints(api, installation)
    return tuple(
        _handshake(_probe_with_each_bundle(address, name, bundles.distinct_bundles), roles)
        for address in targets
    )


def _probe_with_each_bundle(address: str, name: str, pems: Iterable[bytes]) -> ProbeResult:
    """Do a handshake for each set of trusted CAs; return a failed one if there is one."""
    results = [probe(address, name, pem) for pem in pems]
    return next((probe_result for probe_result in results if probe_result.problem), results[0])


def _handshake(probe_result: ProbeResult, roles: _CaRoles) -> Handshake:
    leaf = probe_result.leaf
    if leaf is None:
        return Handshake(address=probe_result.address, problem=probe_result.problem)
    return Handshake(
        address=probe_result.address,
        problem=probe_result.problem,
        issuer=next((role for role, ca in roles if is_issued_by(leaf, ca)), ""),
        names=tuple(dns_names(leaf)),
        not_after=leaf.not_valid_after_utc,
    )


# Connect to the replicas of a webhook as the API server does, and read the leaves they serve.

#: Seconds. The API server waits 10 s for a webhook by default, handshake included.
TIMEOUT = 5.0
#: The default port of a Service in a webhook's clientConfig.
PORT = 443


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The result of one TLS handshake."""

    #: HOST:PORT.
    address: str
    #: The reason why an API server would not send its reviews there; "" if it would.
    problem: str
    #: The served certificate, even if it is not trusted; None if nothing answers.
    leaf: x509.Certificate | None = None


def probe(address: str, name: str, roots: bytes) -> ProbeResult:
    """Do a TLS handshake: `name` is the server name, `roots` (PEM) the only trusted CAs."""
    try:
        leaf = _handshake_with(address, name, _trusting(roots))
    except ssl.SSLCertVerificationError as error:
        problem = error.verify_message or str(error)
        return ProbeResult(
            address=address, problem=problem, leaf=_served_certificate(address, name)
        )
    except ssl.SSLError as error:
        return ProbeResult(
            address=address, problem=f"the TLS handshake failed: {error.reason or error}"
        )
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        return ProbeResult(address=address, problem=f"{_CANNOT_CONNECT}{reason}")
    return ProbeResult(address=address, problem="", leaf=leaf)


def _trusting(roots: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if roots:  # otherwise nothing is trusted, although Go would trust the system's CAs
        context.load_verify_locations(cadata=roots.decode("ascii"))
    return context


def _served_certificate(address: str, name: str) -> x509.Certificate | None:
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
        certificate = tls.getpeercert(binary_form=True)
    assert certificate is not None  # a server always has one
    return x509.load_der_x509_certificate(certificate)


def endpoints(api: Api, installation: Installation, port: int = PORT) -> list[str]:
    """Return HOST:PORT of each ready endpoint, or of the Service if reading endpoints is forbidden.

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
        service_port.get("name", "")
        for service_port in ((service or {}).get("spec") or {}).get("ports") or ()
        if service_port.get("port") == port
    ]
    slices = api.read(
        f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        f"?labelSelector=kubernetes.io/service-name={name}"
    )
    items = (slices or {}).get("items") or ()
    return sorted(
        {address for endpoint_slice in items for address in _ready(endpoint_slice, port_names)}
    )


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
