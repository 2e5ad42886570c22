"""CAs that API servers can read.

Go does not parse every certificate that cryptography parses. An API server ignores such a CA in
`caBundle`, and rejects its leaves. So a CA is used only in the form that OpenSSL and Go write; what
is unusual is not accepted, whether or not a version of Go would read it.
Source: Go 1.26, crypto/x509, parser.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtensionOID

from certs.pem import MALFORMED, has_certificate_key

#: The curves that Go supports in certificates, except the short P-224.
CURVES = ("secp256r1", "secp384r1", "secp521r1")
#: The extensions of a CA that `certs.issue` makes, and one that `openssl req -x509` adds.
_ACCEPTED_EXTENSIONS = (
    ExtensionOID.BASIC_CONSTRAINTS,
    ExtensionOID.KEY_USAGE,
    ExtensionOID.SUBJECT_KEY_IDENTIFIER,
    ExtensionOID.AUTHORITY_KEY_IDENTIFIER,
)
#: Those of them that must not be critical (RFC 5280, 4.2.1.1 and 4.2.1.2).
_NEVER_CRITICAL = (ExtensionOID.SUBJECT_KEY_IDENTIFIER, ExtensionOID.AUTHORITY_KEY_IDENTIFIER)
#: The fields of a certificate's signed part: version, serial number, algorithm, issuer, validity,
#: subject, key and extensions (RFC 5280, 4.1).
_FIELDS = 8
_ALGORITHM, _ISSUER, _SUBJECT, _KEY = 2, 3, 5, 6
#: Tags of DER (X.690), and the bit of a length that marks its long form.
_UTF8_STRING, _PRINTABLE_STRING, _ASCII_STRING, _LONG = 0x0C, 0x13, 0x16, 0x80
#: The bound for numbers in the identifiers of attributes, for lengths of paths and for exponents of
#: RSA keys; Go parses numbers as int32.
_NUMBER_BOUND = 1 << 30


def unreadable_part(certificate: x509.Certificate) -> str:
    """Return the part of a CA that an API server may be unable to read; "" for none."""
    return next((part for part, usual in _PARTS.items() if not _holds(usual, certificate)), "")


def foreign_extensions(certificate: x509.Certificate) -> str:
    """Return the extensions that are not accepted, separated by ", "; "" for none.

    Go rejects leaves of a CA with an unknown critical extension, or with constraints that exclude
    their names.
    """
    oids = [extension.oid for extension in certificate.extensions]
    return ", ".join(oid.dotted_string for oid in oids if oid not in _ACCEPTED_EXTENSIONS)


def _holds(usual: Callable[[x509.Certificate], bool], certificate: x509.Certificate) -> bool:
    try:
        return usual(certificate)
    except MALFORMED:
        return False


def _has_usual_fields(certificate: x509.Certificate) -> bool:
    return len(_fields(certificate)) == _FIELDS


def _has_usual_serial(certificate: x509.Certificate) -> bool:
    return certificate.serial_number >= 0


def _has_usual_algorithm(certificate: x509.Certificate) -> bool:
    """Compare the algorithm with its copy outside the signed part."""
    _ = certificate.signature_hash_algorithm  # raises if it is unknown
    ((_, whole),) = _elements(certificate.public_bytes(Encoding.DER))
    _, (_, algorithm), _ = _elements(whole)
    return algorithm == _fields(certificate)[_ALGORITHM]


def _has_usual_names(certificate: x509.Certificate) -> bool:
    fields = _fields(certificate)
    return all(_is_usual_name(fields[field]) for field in (_ISSUER, _SUBJECT)) and all(
        _is_small(int(number))
        for name in (certificate.issuer, certificate.subject)
        for attribute in name  # raises if its text has bytes that its tag does not allow
        for number in attribute.oid.dotted_string.split(".")
    )


def _is_usual_name(name: bytes) -> bool:
    return all(
        _has_usual_text(attribute)
        for _, attributes in _elements(name)
        for _, attribute in _elements(attributes)
    )


def _has_usual_text(attribute: bytes) -> bool:
    elements = _elements(attribute)
    next(elements)  # the type
    tag, text = next(elements)
    is_ascii = tag == _ASCII_STRING and text.isascii()  # cryptography reads UTF-8 there
    return is_ascii or tag in (_UTF8_STRING, _PRINTABLE_STRING)


def _has_usual_key(certificate: x509.Certificate) -> bool:
    """Compare the key with what cryptography writes for it."""
    if not has_certificate_key(certificate):
        return False
    key = certificate.public_key()
    ((_, written),) = _elements(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    return _is_usual_key(key) and written == _fields(certificate)[_KEY]


def _is_usual_key(key: CertificatePublicKeyTypes) -> bool:
    if isinstance(key, ec.EllipticCurvePublicKey):
        return key.curve.name in CURVES
    return not isinstance(key, rsa.RSAPublicKey) or _is_small(key.public_numbers().e)


def _has_usual_extensions(certificate: x509.Certificate) -> bool:
    extensions = certificate.extensions
    constraints = extensions.get_extension_for_class(x509.BasicConstraints).value
    marked = (extension for extension in extensions if extension.critical)
    return _is_small(constraints.path_length or 0) and not any(
        extension.oid in _NEVER_CRITICAL for extension in marked
    )


def _is_small(number: int) -> bool:
    return number < _NUMBER_BOUND


#: What has a usual form, in words.
_PARTS: dict[str, Callable[[x509.Certificate], bool]] = {
    "fields": _has_usual_fields,
    "serial number": _has_usual_serial,
    "signature algorithm": _has_usual_algorithm,
    "names": _has_usual_names,
    "key": _has_usual_key,
    "extensions": _has_usual_extensions,
}


# The parts of DER that cryptography has parsed, so that its lengths are right.


def _fields(certificate: x509.Certificate) -> list[bytes]:
    ((_, signed),) = _elements(certificate.tbs_certificate_bytes)
    return [content for _, content in _elements(signed)]


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the tag and the content of each element."""
    while der:
        tag, length, begin = der[0], der[1], 2
        if length >= _LONG:
            begin += length - _LONG
            length = int.from_bytes(der[2:begin])
        yield tag, der[begin : begin + length]
        der = der[begin + length :]
