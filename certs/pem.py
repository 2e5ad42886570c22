"""PEM certificates and keys: parse and compare them, and check a pair before it is served."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InternalError, InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import PublicKeyAlgorithmOID

from certs.errors import CertificateError

#: The largest key that is parsed: cert-manager makes RSA keys of up to 8,192 bits, 6.4 kB.
MAX_KEY_BYTES = 8 * 1024
_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY-----(.*?)-----END ", re.DOTALL)
#: Formats of one algorithm: SEC 1 (RFC 5915) and PKCS #1.
_LABELS = (b"EC ", b"RSA ")
#: The beginning of PKCS #8 (RFC 5958): a version, and id-ecPublicKey, rsaEncryption or Ed25519.
_PKCS8 = re.compile(
    rb"\x30(?:[\x00-\x7f]|\x81.|\x82..)\x02\x01[\x00\x01]\x30.\x06"
    rb"(?:\x07\x2a\x86\x48\xce\x3d\x02\x01|\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01|\x03\x2b\x65\x70)",
    re.DOTALL,
)
_ALGORITHMS = frozenset(
    {
        PublicKeyAlgorithmOID.EC_PUBLIC_KEY,
        PublicKeyAlgorithmOID.RSAES_PKCS1_v1_5,
        PublicKeyAlgorithmOID.ED25519,
    }
)
#: Errors of cryptography with certificates and keys that it cannot parse.
MALFORMED = (
    *(TypeError, ValueError, UnsupportedAlgorithm, InternalError),
    *(x509.InvalidVersion, x509.DuplicateExtension),
)
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
    except MALFORMED as error:
        raise CertificateError("not PEM certificates") from error


def load_key(pem: bytes) -> PrivateKeyTypes:
    """Parse a private key; raise CertificateError if it is malformed, encrypted or slow to parse.

    cryptography tests whether the numbers of an RSA key, or of Diffie-Hellman parameters, are
    prime, which takes 23 s for parameters of 1.7 kB and blocks all threads. So only algorithms of
    certificates are parsed, and RSA keys without these tests: a key that does not work is noticed
    when it is compared with its certificate, or in the first handshake.
    """
    if len(pem) > MAX_KEY_BYTES:
        raise CertificateError(f"the key has more than {MAX_KEY_BYTES} bytes")
    blocks = _BLOCK.findall(pem)
    if not all(label in _LABELS or _is_certificate_key(label, text) for label, text in blocks):
        raise CertificateError("the key is not an unencrypted ECDSA, RSA or Ed25519 key")
    try:
        return load_pem_private_key(pem, password=None, unsafe_skip_rsa_key_validation=True)
    except MALFORMED as error:
        raise CertificateError("the key is not an unencrypted PEM private key") from error


def _is_certificate_key(label: bytes, text: bytes) -> bool:
    try:
        der = b64decode(b"".join(text.split()), validate=True)
    except binascii.Error:
        return False
    return not label and _PKCS8.match(der) is not None


def has_certificate_key(certificate: x509.Certificate) -> bool:
    """Return whether the public key may be parsed: others take as long as such private keys."""
    return certificate.public_key_algorithm_oid in _ALGORITHMS


def belongs_to(key: PrivateKeyTypes, certificate: x509.Certificate) -> bool:
    """Return whether a key is that of a certificate, which may have a key of any kind."""
    if not has_certificate_key(certificate):
        return False
    try:
        return key.public_key() == certificate.public_key()
    except MALFORMED:
        return False


def is_issued_by(certificate: x509.Certificate, ca: x509.Certificate) -> bool:
    """Return whether a CA signed a certificate."""
    if not has_certificate_key(ca):
        return False
    try:
        certificate.verify_directly_issued_by(ca)
    except (InvalidSignature, *MALFORMED):
        return False
    return True


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
    except (*MALFORMED, x509.ExtensionNotFound):
        return []
    return extension.value.get_values_for_type(x509.DNSName)


def check_pair(pair: KeyPair, now: datetime, name: str | None = None) -> datetime:
    """Return when a pair expires; raise CertificateError if it cannot be served now.

    `name`: the server name that clients verify, if it is known.
    """
    leaf = _leaf(pair.certificate)
    if not belongs_to(load_key(pair.key), leaf):
        raise CertificateError("the key does not belong to the certificate")
    if leaf.not_valid_after_utc <= now:
        until = leaf.not_valid_after_utc
        raise CertificateError(f"the certificate expired at {until:%Y-%m-%dT%H:%M:%SZ}")
    if name is not None:
        _check_name(leaf, name)
    return leaf.not_valid_after_utc


def _leaf(pem: bytes) -> x509.Certificate:
    try:
        return load_certificates(pem)[0]
    except CertificateError as error:
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
