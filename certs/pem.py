"""PEM certificates and keys: parse and compare them, and check a pair before it is served."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from certs.errors import CertificateError

#: The number of names of a certificate that an error lists if the required name is missing.
_LISTED_NAMES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A certificate (leaf first, then any intermediates) and its private key, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def load_certificates(pem: bytes) -> list[x509.Certificate]:
    """Parse one or more certificates; raise CertificateError if any part of `pem` is malformed.

    Go would read only a part of such a bundle.
    """
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise CertificateError("not PEM certificates") from error


def load_key(pem: bytes) -> PrivateKeyTypes:
    """Parse a private key; raise CertificateError if it is malformed or encrypted."""
    try:
        return load_pem_private_key(pem, password=None)
    except (TypeError, ValueError) as error:
        raise CertificateError("the key is not an unencrypted PEM private key") from error


def to_pem(certificates: Iterable[x509.Certificate]) -> tuple[bytes, ...]:
    """Return each certificate as PEM that ends in a newline."""
    return tuple(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def fingerprint(certificate: x509.Certificate) -> str:
    """Return the SHA-256 fingerprint of a certificate, in hex."""
    return certificate.fingerprint(SHA256()).hex()


def pem_fingerprint(pem: bytes) -> str:
    """Return the fingerprint of the first certificate in `pem`."""
    return fingerprint(load_certificates(pem)[0])


def distinct(pems: Iterable[bytes]) -> Iterator[bytes]:
    """Yield each certificate (PEM, one each) once, in order of first appearance."""
    fingerprints: set[str] = set()
    for pem in pems:
        mark = pem_fingerprint(pem)
        if mark not in fingerprints:
            fingerprints.add(mark)
            yield pem


def dns_names(leaf: x509.Certificate) -> list[str]:
    """Return the DNS subject alternative names of a certificate; its subject is ignored."""
    try:
        extension = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (ValueError, x509.ExtensionNotFound):
        return []
    return extension.value.get_values_for_type(x509.DNSName)


def check_pair(pair: KeyPair, now: datetime, name: str | None = None) -> datetime:
    """Return when a pair expires; raise CertificateError if it cannot be served now.

    `name`: the server name that clients verify, if it is known.
    """
    leaf = _leaf(pair.certificate)
    if load_key(pair.key).public_key() != leaf.public_key():
        raise CertificateError("the key does not belong to the certificate")
    if leaf.not_valid_after_utc <= now:
        until = leaf.not_valid_after_utc
        raise CertificateError(f"the certificate expired at {until:%Y-%m-%dT%H:%M:%SZ}")
    if name is not None:
        _check_name(leaf, name)
    return leaf.not_valid_after_utc


def _leaf(pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificates(pem)[0]
    except ValueError as error:
        raise CertificateError("the certificate is not a PEM certificate") from error


def _check_name(leaf: x509.Certificate, name: str) -> None:
    """Compare as Go does (crypto/x509, VerifyHostname), which ignores the subject."""
    names = dns_names(leaf)
    if not any(_covers(pattern.lower(), name) for pattern in names):
        listed = ", ".join(names[:_LISTED_NAMES]) or "none"
        raise CertificateError(
            f"the certificate is not for {name}, which the API server expects, but for {listed}"
        )


def _covers(pattern: str, name: str) -> bool:
    if pattern.startswith("*."):
        return name.partition(".")[2] == pattern.removeprefix("*.")
    return name == pattern
