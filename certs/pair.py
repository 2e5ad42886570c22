"""Check a certificate and its key before they are served."""

from __future__ import annotations

from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from certs.errors import CertificateError
from certs.issue import KeyPair

_SHOWN = 5  # names of a certificate that has none of the right ones


def check_pair(pair: KeyPair, now: datetime, name: str | None = None) -> datetime:
    """Return the end of a pair's validity; CertificateError if it cannot be served now.

    `name`: what clients will ask for, where that is known.
    """
    leaf = _leaf(pair.certificate)
    try:
        key = load_pem_private_key(pair.key, password=None)
    except (TypeError, ValueError) as error:
        msg = "the key is no PEM private key without a password"
        raise CertificateError(msg) from error
    if key.public_key() != leaf.public_key():
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
        raise CertificateError("the certificate is no PEM certificate") from error


def _check_name(leaf: x509.Certificate, name: str) -> None:
    """Compare as Go does (crypto/x509, VerifyHostname): the subject is never looked at."""
    names = dns_names(leaf)
    if not any(_covers(one.lower(), name) for one in names):
        shown = ", ".join(names[:_SHOWN]) or "none"
        msg = f"the certificate is not for {name}, as the API server needs it, but for {shown}"
        raise CertificateError(msg)


def dns_names(leaf: x509.Certificate) -> list[str]:
    """Return the names that a certificate is for; its subject is none of them."""
    try:
        found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (ValueError, x509.ExtensionNotFound):
        return []
    return found.value.get_values_for_type(x509.DNSName)


def _covers(pattern: str, name: str) -> bool:
    if pattern.startswith("*."):
        return name.partition(".")[2] == pattern.removeprefix("*.")
    return name == pattern
