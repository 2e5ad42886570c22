"""CAs that Go reads, and some that only cryptography does.

Go 1.26 rejects each of the latter, except where the name of a case ends in "(Go reads it)".
"""

from __future__ import annotations

import re
from base64 import encodebytes
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.hazmat.primitives.serialization import PublicFormat as Form
from cryptography.x509.oid import NameOID, ObjectIdentifier

from certs.authorities import check_ca, unexpired_cas
from certs.errors import CertificateError
from certs.issue import issue_ca
from certs.pem import KeyPair
from certs.readable import unreadable_part

NOW = datetime.now(UTC)
KEY = ec.generate_private_key(ec.SECP256R1())
RSA = rsa.generate_private_key(65537, 2048)
NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "our CA")])
#: A serial number, as DER.
SERIAL = bytes.fromhex("0204 7f5a5a5a")
SHA256_SIGNATURE, UNKNOWN_SIGNATURE = (
    bytes.fromhex(f"06082a8648ce3d0403{last}") for last in ("02", "7f")
)
#: "our CA" as a UTF8String.
TEXT = b"\x0c\x06our CA"
VERSION_3 = bytes.fromhex("a003020102")
#: The tags of other strings: NumericString, T61String, VisibleString, BMPString.
OTHER_STRINGS = (0x12, 0x14, 0x1A, 0x1E)


def _ca(
    name: x509.Name = NAME,
    key: CertificatePublicKeyTypes | None = None,
    *,
    issuer: x509.Name | None = None,
    path_length: int | None = 0,
    critical: bool = False,
) -> bytes:
    """Return the DER of a CA."""
    key = key or KEY.public_key()
    identifier = x509.SubjectKeyIdentifier.from_public_key(key)
    authority = x509.AuthorityKeyIdentifier(identifier.digest, None, None)
    usage = x509.KeyUsage(
        *(False, False, False, False, False), key_cert_sign=True, crl_sign=True,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
    constraints = x509.BasicConstraints(ca=True, path_length=path_length)
    builder = (
        x509.CertificateBuilder(issuer or name, name, key, int.from_bytes(SERIAL[2:]))
        .not_valid_before(NOW - timedelta(hours=1))
        .not_valid_after(NOW + timedelta(days=1))
        .add_extension(constraints, critical=True)
        .add_extension(usage, critical=True)
        .add_extension(identifier, critical=critical)
        .add_extension(authority, critical=False)
    )
    return builder.sign(KEY, SHA256()).public_bytes(Encoding.DER)


def _pem(der: bytes) -> bytes:
    return b"-----BEGIN CERTIFICATE-----\n" + encodebytes(der) + b"-----END CERTIFICATE-----\n"


def _named(*attributes: tuple[ObjectIdentifier, str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(oid, text) for oid, text in attributes])


def _replace(old: bytes, new: bytes, *, last: bool = False) -> bytes:
    """Return the DER of the usual CA with other bytes, of the same number, at one place."""
    der = _ca()
    assert len(old) == len(new)
    assert old in der
    at = der.rindex(old) if last else der.index(old)
    return der[:at] + new + der[at + len(old) :]


def _longer(old: bytes, new: bytes) -> bytes:
    """Return the DER of the usual CA with bytes of another number."""
    der = bytearray(_ca().replace(old, new))
    for header in (0, 4):  # of the certificate, and of its signed part
        assert der[header : header + 2] == b"\x30\x82"
        length = int.from_bytes(der[header + 2 : header + 4]) + len(new) - len(old)
        der[header + 2 : header + 4] = length.to_bytes(2)
    return bytes(der)


def _compressed() -> bytes:
    """Return the DER of the usual CA with a compressed point as its key."""
    public = KEY.public_key()
    info = public.public_bytes(Encoding.DER, Form.SubjectPublicKeyInfo)
    algorithm = info[2:23]
    point = b"\x03\x22\x00" + public.public_bytes(Encoding.X962, Form.CompressedPoint)
    content = algorithm + point
    return _longer(info, bytes([0x30, len(content)]) + content)


def _with_identifier() -> bytes:
    """Return the DER of the usual CA with an issuerUniqueID before its extensions."""
    certificate = x509.load_der_x509_certificate(_ca())
    (before,) = re.findall(rb"\xa3.\x30.\x30.\x06\x03\x55\x1d", certificate.tbs_certificate_bytes)
    return _longer(before, b"\x81\x02\x00\x01" + before)


def _critical_authority() -> bytes:
    certificate = x509.load_der_x509_certificate(_ca())
    extensions = [
        x509.Extension(item.oid, item.critical or "authority" in item.oid._name, item.value)
        for item in certificate.extensions
    ]
    builder = x509.CertificateBuilder(
        *(NAME, NAME, KEY.public_key(), 1),
        certificate.not_valid_before_utc.replace(tzinfo=None),
        certificate.not_valid_after_utc.replace(tzinfo=None),
        extensions,
    )
    return builder.sign(KEY, SHA256()).public_bytes(Encoding.DER)


USUAL: dict[str, Callable[[], bytes]] = {
    "a common name": _ca,
    "as of openssl": lambda: _ca(
        _named(
            (NameOID.COUNTRY_NAME, "DE"),  # a PrintableString
            (NameOID.ORGANIZATION_NAME, "Bücher"),
            (NameOID.EMAIL_ADDRESS, "a@example.org"),  # an IA5String
            (NameOID.DOMAIN_COMPONENT, "org"),
        )
    ),
    "no name": lambda: _ca(x509.Name([])),
    "a PrintableString": lambda: _replace(TEXT, b"\x13" + TEXT[1:], last=True),
    "by another CA": lambda: _ca(issuer=_named((NameOID.COMMON_NAME, "x"))),
    "without a path length": lambda: _ca(path_length=None),
    "P-521": lambda: _ca(key=ec.generate_private_key(ec.SECP521R1()).public_key()),
    "RSA": lambda: _ca(key=RSA.public_key()),
    "Ed25519": lambda: _ca(key=ed25519.Ed25519PrivateKey.generate().public_key()),
}
UNUSUAL: dict[str, tuple[Callable[[], bytes], str]] = {
    "version 1": (lambda: _longer(VERSION_3, b""), "fields"),
    "an identifier (Go reads it)": (_with_identifier, "fields"),
    "a negative serial number": (
        lambda: _replace(SERIAL, SERIAL[:2] + b"\xff" + SERIAL[3:]),
        "serial number",
    ),
    "another algorithm inside": (
        lambda: _replace(SHA256_SIGNATURE, SHA256_SIGNATURE[:-1] + b"\x03"),
        "signature algorithm",
    ),
    "another algorithm outside": (
        lambda: _replace(SHA256_SIGNATURE, SHA256_SIGNATURE[:-1] + b"\x03", last=True),
        "signature algorithm",
    ),
    "an unknown algorithm (Go reads it)": (
        lambda: _ca().replace(SHA256_SIGNATURE, UNKNOWN_SIGNATURE),
        "signature algorithm",
    ),
    **{
        f"a string of tag {tag:x} in the {field} (Go reads some)": (
            partial(_replace, TEXT, bytes([tag]) + TEXT[1:], last=last),
            "names",
        )
        for tag in OTHER_STRINGS
        for field, last in (("issuer", False), ("subject", True))
    },
    "an IA5String beyond ASCII": (lambda: _replace(TEXT, b"\x16\x06our\xc3\xa9A"), "names"),
    "a UTF8String of other bytes": (lambda: _replace(TEXT, b"\x0c\x06our\xffCA"), "names"),
    "a large number in a name": (
        lambda: _ca(_named((ObjectIdentifier("1.2.2147483648"), "x"))),
        "names",
    ),
    "a large number in the issuer's name": (
        lambda: _ca(issuer=_named((ObjectIdentifier("1.2.2147483648"), "x"))),
        "names",
    ),
    "a compressed point": (_compressed, "key"),
    "another curve": (
        lambda: _ca(key=ec.generate_private_key(ec.SECP256K1()).public_key()),
        "key",
    ),
    "a large exponent": (
        lambda: _ca(
            key=rsa.RSAPublicNumbers(
                (1 << 70) + 1, RSA.public_key().public_numbers().n
            ).public_key()
        ),
        "key",
    ),
    "an unknown key (Go reads it)": (
        lambda: _replace(bytes.fromhex("2a8648ce3d0201"), bytes.fromhex("2a8648ce3d027f")),
        "key",
    ),
    "a critical key identifier": (lambda: _ca(critical=True), "extensions"),
    "a critical identifier of the issuer": (_critical_authority, "extensions"),
    "a long path (Go reads it)": (lambda: _ca(path_length=1 << 30), "extensions"),
}


@pytest.mark.parametrize("form", USUAL)
def test_usual_forms(form: str) -> None:
    """OpenSSL, Go and this program write such CAs."""
    assert unreadable_part(x509.load_der_x509_certificate(USUAL[form]())) == ""
    assert len(unexpired_cas(_pem(USUAL[form]()), NOW)) == 1


def test_our_own_form() -> None:
    """The CA that this package issues is usual."""
    assert unreadable_part(x509.load_pem_x509_certificate(issue_ca().certificate)) == ""


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
@pytest.mark.parametrize("form", UNUSUAL)
def test_unusual_forms(form: str) -> None:
    """The part is named. API servers would ignore such a CA in `caBundle`, and reject all calls."""
    make, part = UNUSUAL[form]
    certificate = x509.load_der_x509_certificate(make())
    assert unreadable_part(certificate) == part
    assert unexpired_cas(_pem(make()), NOW) == []


def test_an_unreadable_ca_is_not_used() -> None:
    """The message names the part."""
    key = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    check_ca(KeyPair(certificate=_pem(_ca()), key=key), NOW)
    message = "API servers may be unable to read the extensions of the CA"
    with pytest.raises(CertificateError, match=f"^{re.escape(message)}$"):
        check_ca(KeyPair(certificate=_pem(_ca(critical=True)), key=key), NOW)
