"""How the certificates of an installation are: the Secret, `caBundle`, and what is served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from certs.authorities import Authorities
from certs.ca_bundle import CaBundle, Published
from certs.clock import Clock
from certs.errors import ApiError
from certs.handshake import Shaken, shake
from certs.installation import Api, Installation
from certs.pem import dns_names, fingerprint, load_certificates
from certs.places import places
from certs.secret import IMMUTABLE, CaSecret, SecretContent

_Roles = list[tuple[str, x509.Certificate]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A CA that is in the Secret or in `caBundle`."""

    #: current, next, previous; or unknown, where it is in `caBundle` alone.
    role: str
    #: SHA-256, in hex.
    fingerprint: str
    not_before: datetime
    not_after: datetime
    in_bundle: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """A handshake with one address, as the API server makes it."""

    address: str
    #: Why it failed; "" if it did not.
    problem: str
    #: Which CA issued what is served, by its role; "" where that is not known.
    issuer: str = ""
    names: tuple[str, ...] = ()
    not_after: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All of it at one moment."""

    #: settled, publishing, draining; "" where there is no CA to tell of.
    phase: str
    #: Of the Secret and of `caBundle`: what is wrong; "" if nothing is.
    secret_problem: str
    bundle_problem: str
    #: Before this the previous CA stays.
    retire_after: datetime | None
    #: What somebody has asked for and no replica has begun: rotate or revoke; "" if nothing.
    asked: str
    authorities: tuple[Authority, ...]
    handshakes: tuple[Handshake, ...]

    @property
    def served(self) -> bool:
        """Whether an API server reaches all there is to reach."""
        return bool(self.handshakes) and not any(one.problem for one in self.handshakes)

    @property
    def good(self) -> bool:
        """Whether nothing is to be done by anybody."""
        return self.served and not self.secret_problem and not self.bundle_problem


def report(api: Api, installation: Installation, addresses: Sequence[str] = ()) -> Report:
    """Look at everything; ApiError where the API server does not let us.

    `addresses`: HOST:PORT of replicas, in the place of those that the cluster knows.
    """
    clock = Clock()
    published = CaBundle(api, installation, clock).read()
    secret = CaSecret(api, installation)
    found = secret.read(clock.now())
    known = found.authorities
    roles = _roles(known, published)
    authorities = tuple(_authority(role, one, published) for role, one in roles)
    return Report(
        phase=known.phase if known else "",
        secret_problem=_secret_problem(secret, found),
        bundle_problem=_bundle_problem(authorities, published),
        retire_after=known.retire_after if known else None,
        asked=(known.requested or "") if known else "",
        authorities=authorities,
        handshakes=_handshakes(api, installation, addresses, published, roles),
    )


def verify(
    api: Api, installation: Installation, addresses: Sequence[str] = ()
) -> tuple[Handshake, ...]:
    """Only shake hands, with whatever certificates; who may not read the Secret may do it too."""
    clock = Clock()
    published = CaBundle(api, installation, clock).read()
    try:
        known = CaSecret(api, installation).read(clock.now()).authorities
    except ApiError:
        known = None  # then it is not told which CA issued what is served
    return _handshakes(api, installation, addresses, published, _roles(known, published))


def _roles(known: Authorities | None, published: Published) -> _Roles:
    """Return each CA that is known of, the Secret's first."""
    pems: list[tuple[str, bytes]] = []
    if known is not None:
        pems.append(("current", known.current.certificate))
        pems += [("next", known.next.certificate)] if known.next else []
        pems += [("previous", one) for one in known.previous]
    found = [(role, one) for role, pem in pems for one in load_certificates(pem)]
    there = {fingerprint(one) for _, one in found}
    trusted = load_certificates(published.pem) if published.pem else []
    return found + [("unknown", one) for one in trusted if fingerprint(one) not in there]


def _authority(role: str, one: x509.Certificate, published: Published) -> Authority:
    mark = fingerprint(one)
    return Authority(
        role=role,
        fingerprint=mark,
        not_before=one.not_valid_before_utc,
        not_after=one.not_valid_after_utc,
        in_bundle=mark in published.fingerprints,
    )


def _secret_problem(secret: CaSecret, found: SecretContent) -> str:
    if found.authorities is None:
        return found.problem or f"there is no CA in {secret}"
    return IMMUTABLE if found.immutable else ""


def _bundle_problem(authorities: Sequence[Authority], published: Published) -> str:
    if published.problem:
        return published.problem
    missing = [one.role for one in authorities if not one.in_bundle]
    if missing:
        return f"it lacks the {' and the '.join(missing)} CA"
    strangers = sum(one.role == "unknown" for one in authorities)
    return f"it trusts {strangers} CA that the Secret does not have" if strangers else ""


def _handshakes(
    api: Api,
    installation: Installation,
    addresses: Sequence[str],
    published: Published,
    roles: _Roles,
) -> tuple[Handshake, ...]:
    found = addresses or places(api, installation)
    name = installation.server_name
    return tuple(_told(shake(one, name, published.pem), roles) for one in found)


def _told(shaken: Shaken, roles: _Roles) -> Handshake:
    leaf = shaken.leaf
    if leaf is None:
        return Handshake(address=shaken.address, problem=shaken.problem)
    return Handshake(
        address=shaken.address,
        problem=shaken.problem,
        issuer=next((role for role, ca in roles if _issued(leaf, ca)), ""),
        names=tuple(dns_names(leaf)),
        not_after=leaf.not_valid_after_utc,
    )


def _issued(leaf: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(ca)
    except (InvalidSignature, TypeError, ValueError):
        return False
    return True
