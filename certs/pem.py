"""Certificates as PEM, as they are stored, and the fingerprints that tell them apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from certs.errors import CertificateError


def certificates(pem: bytes) -> list[x509.Certificate]:
    """Parse one certificate or several; CertificateError for what Go might read less of."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise CertificateError("not PEM certificates") from error


def fingerprint(certificate: x509.Certificate) -> str:
    """Return the SHA-256 of a certificate, in hex."""
    return certificate.fingerprint(SHA256()).hex()


def fingerprint_of(pem: bytes) -> str:
    """Return the fingerprint of the first certificate."""
    return fingerprint(certificates(pem)[0])


def encoded(found: Iterable[x509.Certificate]) -> tuple[bytes, ...]:
    """Return each certificate as PEM."""
    return tuple(one.public_bytes(Encoding.PEM) for one in found)


def distinct(pems: Iterable[bytes]) -> Iterator[bytes]:
    """Yield certificates (PEM, one each) once, in their order."""
    seen: set[str] = set()
    for pem in pems:
        found = fingerprint_of(pem)
        if found not in seen:
            seen.add(found)
            yield pem
