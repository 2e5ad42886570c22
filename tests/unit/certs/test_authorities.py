from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from certs.authorities import check_ca, unexpired_cas
from certs.errors import CertificateError
from certs.issue import issue_ca, issue_leaf
from certs.pem import KeyPair

NOW = datetime.now(UTC)
CA = issue_ca()
LEAF = issue_leaf(CA, ["a"])
OTHER_KIND = ed25519.Ed25519PrivateKey.generate().private_bytes(
    Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
)

OTHER_CURVE = ec.generate_private_key(ec.SECP256K1()).private_bytes(
    Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
)


def _self_signed(extension: x509.ExtensionType) -> KeyPair:
    """Issue a CA with another extension."""
    key = ec.generate_private_key(ec.SECP256R1())
    original = x509.load_pem_x509_certificate(CA.certificate)
    builder = x509.CertificateBuilder(
        *(original.issuer, original.subject, key.public_key(), 1),
        original.not_valid_before_utc.replace(tzinfo=None),
        original.not_valid_after_utc.replace(tzinfo=None),
        [*original.extensions, x509.Extension(extension.oid, False, extension)],
    )
    return KeyPair(
        certificate=builder.sign(key, SHA256()).public_bytes(Encoding.PEM),
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def _without_subject() -> KeyPair:
    """Return a CA whose subject is not UTF-8."""
    certificate = x509.load_pem_x509_certificate(CA.certificate)
    der = certificate.public_bytes(Encoding.DER)
    before, name, after = der.rpartition(b"rdma-webhook CA")  # the issuer comes first
    changed = before + name.replace(b"CA", b"\xff\xff") + after
    pem = x509.load_der_x509_certificate(changed).public_bytes(Encoding.PEM)
    return KeyPair(certificate=pem, key=CA.key)


CONSTRAINED = _self_signed(x509.NameConstraints([x509.DNSName("example.org")], None))
WITH_ISSUER = _self_signed(x509.AuthorityKeyIdentifier(b"key", None, None))


def test_our_own_ca_is_one() -> None:
    """The CA that this package issues passes the check."""
    check_ca(CA, NOW)


def test_a_ca_of_openssl_is_one() -> None:
    """`openssl req -x509` also names the key of the issuer, which is the CA itself."""
    check_ca(WITH_ISSUER, NOW)


@pytest.mark.parametrize(
    ("ca", "message"),
    [
        (KeyPair(certificate=b"?", key=CA.key), "it is not a single PEM certificate"),
        (KeyPair(certificate=b"", key=CA.key), "it is not a single PEM certificate"),
        (
            KeyPair(certificate=CA.certificate + LEAF.certificate, key=CA.key),
            "it is not a single PEM certificate",
        ),
        (
            KeyPair(certificate=CA.certificate, key=b"?"),
            "the key is not an unencrypted PEM private key",
        ),
        (
            KeyPair(certificate=CA.certificate, key=OTHER_KIND),
            "the key is not an ECDSA key on P-256, P-384 or P-521",
        ),
        (
            KeyPair(certificate=CA.certificate, key=OTHER_CURVE),
            "the key is not an ECDSA key on P-256, P-384 or P-521",
        ),
        (CONSTRAINED, "the CA has extensions that API servers may reject: 2.5.29.30"),
        (
            KeyPair(certificate=CA.certificate, key=LEAF.key),
            "the key does not belong to the certificate",
        ),
        (LEAF, "the certificate is not a CA certificate"),
        (_without_subject(), "the CA's subject is malformed, so no leaf can name it"),
        (issue_ca(now=NOW + timedelta(hours=2)), "the CA is not valid before 20"),
    ],
)
def test_what_no_leaf_can_be_issued_by(ca: KeyPair, message: str) -> None:
    """Each defect has its own message."""
    with pytest.raises(CertificateError, match=f"^{message}"):
        check_ca(ca, NOW)


def test_a_clock_that_is_ahead_issues_what_others_accept() -> None:
    """A clock may be ten minutes ahead: certificates are backdated by more."""
    check_ca(issue_ca(now=NOW + timedelta(minutes=10)), NOW)


def test_authorities_among_certificates() -> None:
    """Leaves and expired CAs are left out."""
    ended = issue_ca(now=NOW, lifetime=timedelta(minutes=-1))
    pem = LEAF.certificate + CA.certificate + ended.certificate

    assert unexpired_cas(pem, NOW) == [CA.certificate]
