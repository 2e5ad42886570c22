"""The CAs of one installation, and how far the rotation from one to the next has come.

There is no stored phase that could contradict the CAs; it follows from the CAs that exist:

    settled      only `current`
    publishing   also `next`: it is in `caBundle`, but has not issued anything yet
    draining     also `previous`: they no longer issue, but replicas may still serve their leaves
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from certs.errors import CertificateError
from certs.pem import (
    MALFORMED,
    KeyPair,
    belongs_to,
    distinct,
    load_certificates,
    load_key,
    pem_fingerprint,
    to_pem,
)
from certs.readable import CURVES, foreign_extensions, unreadable_part

#: The largest part of the Secret: 16 KiB in base64, as in manifests/base/guard-secrets.yaml, which
#: rejects a larger one.
MAX_FIELD_BYTES = 12 * 1024


class RotationRequest(StrEnum):
    """A request in an annotation of the Secret."""

    #: A new CA before it is due.
    ROTATE = "rotate"
    #: The same, because the keys may be compromised: trust them no longer than necessary.
    REVOKE = "revoke"


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorities:
    """The current, the next and the previous CAs in the Secret."""

    current: KeyPair
    next: KeyPair | None = None
    #: Certificates only (PEM, one each): their keys are not kept.
    previous: tuple[bytes, ...] = ()
    #: `previous` may be removed from then on; before, a replica that cannot reach the API server
    #: may still serve its leaves.
    retire_after: datetime | None = None
    #: A request that no replica has acted on yet.
    rotation_request: RotationRequest | None = None
    #: `next` exists because the keys before it may be compromised.
    revoking: bool = False

    @property
    def phase(self) -> str:
        """The phase of the rotation: settled, publishing or draining."""
        if self.next is not None:
            return "publishing"
        return "draining" if self.previous else "settled"

    @property
    def trusted_cas(self) -> tuple[bytes, ...]:
        """The certificates (PEM, one each) that belong in `caBundle`, without duplicates."""
        pairs = (self.current, self.next) if self.next is not None else (self.current,)
        return tuple(distinct([*(pair.certificate for pair in pairs), *self.previous]))

    def includes(self, certificate: bytes) -> bool:
        """Return whether a CA (PEM) is among these."""
        searched = pem_fingerprint(certificate)
        return any(pem_fingerprint(ca) == searched for ca in self.trusted_cas)


def describe_changes(before: Authorities | None, after: Authorities) -> Iterator[str]:
    """Yield a log message for each change; none if `before`, the Secret's, was unusable."""
    if before is None:
        return
    if before.current != after.current:
        yield "issues certificates with the next CA from now on"
    elif before.next != after.next:
        reason = " because its keys may have leaked" if after.revoking else ""
        yield f"created the next CA{reason}"
    if not set(before.previous) >= set(after.previous) - {before.current.certificate}:
        yield "continues to trust a CA that was in caBundle"
    if before.previous and not after.previous:
        yield "retired the previous CA"


def check_ca(ca: KeyPair, now: datetime) -> None:
    """Raise CertificateError unless this CA can issue leaves; its expiry is not checked.

    Call it before using a CA, so that no leaf is issued that the API server would reject.
    """
    certificate = _only_certificate(ca.certificate)
    key = load_key(ca.key)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name not in CURVES:
        raise CertificateError("the key is not an ECDSA key on P-256, P-384 or P-521")
    if not belongs_to(key, certificate):
        raise CertificateError("the key does not belong to the certificate")
    if not _signs_certificates(certificate):
        raise CertificateError("the certificate is not a CA certificate")
    if not _has_readable_subject(certificate):
        raise CertificateError("the CA's subject is malformed, so no leaf can name it")
    if foreign := foreign_extensions(certificate):
        raise CertificateError(f"the CA has extensions that API servers may reject: {foreign}")
    if part := unreadable_part(certificate):
        raise CertificateError(f"API servers may be unable to read the {part} of the CA")
    if certificate.not_valid_before_utc > now:
        since = certificate.not_valid_before_utc
        raise CertificateError(f"the CA is not valid before {since:%Y-%m-%dT%H:%M:%SZ}")


def _has_readable_subject(certificate: x509.Certificate) -> bool:
    """Return whether a leaf can name the subject as its issuer: nothing has parsed it yet."""
    try:
        certificate.subject.public_bytes()
    except MALFORMED:
        return False
    return True


def unexpired_cas(pem: bytes, now: datetime) -> list[bytes]:
    """Return, as PEM, the certificates that are CAs of the usual form and have not expired."""
    certificates = load_certificates(pem)
    valid = [ca for ca in certificates if ca.not_valid_after_utc > now and _is_usual_ca(ca)]
    return list(to_pem(valid))


def _is_usual_ca(certificate: x509.Certificate) -> bool:
    signs = _signs_certificates(certificate)
    return signs and not (foreign_extensions(certificate) or unreadable_part(certificate))


def storable(cas: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the CAs (PEM, one each) that fit into one part of the Secret, the first before others.

    Somebody may fill that part; with one CA more, nothing could be written, not even a revocation.
    """
    free_bytes = MAX_FIELD_BYTES
    for ca in cas:
        if len(ca) <= free_bytes:
            free_bytes -= len(ca)
            yield ca


def _only_certificate(pem: bytes) -> x509.Certificate:
    try:
        (certificate,) = load_certificates(pem)
    except (CertificateError, ValueError) as error:  # ValueError: there is more than one
        raise CertificateError("it is not a single PEM certificate") from error
    return certificate


def _signs_certificates(certificate: x509.Certificate) -> bool:
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    except (*MALFORMED, x509.ExtensionNotFound):
        return False
    return constraints.value.ca and usage.value.key_cert_sign
