"""A key and a certificate with Diffie-Hellman parameters, which cryptography tests for primes.

No library issues such certificates, so their DER is written here (X.690; RFC 3279, 2.3.3).
"""

from __future__ import annotations

from base64 import encodebytes

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_SEQUENCE, _INTEGER, _BITS, _OCTETS = 0x30, 0x02, 0x03, 0x04
_DIFFIE_HELLMAN = bytes.fromhex("06092a864886f70d010301")  # PKCS #3
#: A Mersenne prime p whose (p - 1) / 2 is none, so that the test takes long: 4.6 s measured.
_PRIME = 2**4423 - 1


def key() -> bytes:
    """Return a private key as PEM of 857 bytes."""
    return _pem("PRIVATE KEY", _tag(_SEQUENCE, _integer(0), _algorithm(), _tag(_OCTETS, _VALUE)))


def certificate(original: bytes) -> bytes:
    """Return a certificate (PEM) with such a public key instead; its signature is wrong."""
    parsed = x509.load_pem_x509_certificate(original)
    spki = parsed.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    signed = parsed.tbs_certificate_bytes
    fields = _content(signed).replace(
        spki, _tag(_SEQUENCE, _algorithm(), _tag(_BITS, b"\0", _VALUE))
    )
    signature = _content(parsed.public_bytes(Encoding.DER)).removeprefix(signed)
    return _pem("CERTIFICATE", _tag(_SEQUENCE, _tag(_SEQUENCE, fields), signature))


def _algorithm() -> bytes:
    parameters = _tag(_SEQUENCE, _integer(_PRIME), _integer(2))
    return _tag(_SEQUENCE, _DIFFIE_HELLMAN, parameters)


def _integer(number: int) -> bytes:
    return _tag(_INTEGER, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _tag(tag: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    size = len(content)
    if size < 128:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def _content(der: bytes) -> bytes:
    """Return the content of a value with a long length."""
    return der[2 + (der[1] & 0x7F) :]


def _pem(label: str, der: bytes) -> bytes:
    return f"-----BEGIN {label}-----\n{encodebytes(der).decode()}-----END {label}-----\n".encode()


_VALUE = _integer(12345)
