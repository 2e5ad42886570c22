"""Check a CA before it is used: what the API server would not accept is told here."""

from __future__ import annotations

from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from certs.errors import CertificateError
from certs.issue import KeyPair
from certs.pem import certificates, encoded


def check_authority(ca: KeyPair, now: datetime) -> None:
    """Raise CertificateError unless leaves can be issued by this CA; its end is not looked at."""
    certificate = _certificate(ca.certificate)
    key = _key(ca.key)
    if key.public_key() != certificate.public_key():
        raise CertificateError("the key does not belong to the certificate")
    if not _signs_certificates(certificate):
        raise CertificateError("the certificate is not that of a CA")
    if certificate.not_valid_before_utc > now:
        since = certificate.not_valid_before_utc
        raise CertificateError(f"the CA is not valid before {since:%Y-%m-%dT%H:%M:%SZ}")


def authorities_in(pem: bytes, now: datetime) -> list[bytes]:
    """Return those of some certificates that are CAs and have not ended, as PEM."""
    found = certificates(pem)
    valid = [one for one in found if one.not_valid_after_utc > now and _signs_certificates(one)]
    return list(encoded(valid))


def _certificate(pem: bytes) -> x509.Certificate:
    try:
        (found,) = x509.load_pem_x509_certificates(pem)
    except ValueError as error:  # also where there are several
        raise CertificateError("the certificate is not one PEM certificate") from error
    return found


def _key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        found = load_pem_private_key(pem, password=None)
    except (TypeError, ValueError) as error:
        msg = "the key is no PEM private key without a password"
        raise CertificateError(msg) from error
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise CertificateError("the key is not one for ECDSA")
    return found


def _signs_certificates(certificate: x509.Certificate) -> bool:
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    except (ValueError, x509.ExtensionNotFound):
        return False
    return constraints.value.ca and usage.value.key_cert_sign
