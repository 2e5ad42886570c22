"""Issue a CA and leaves that a Kubernetes API server accepts, and compute when to renew them.

The API server verifies subject alternative names only (Go ignores common names since
1.15), and requires `serverAuth` in the extended key usages, and a CA with `CA:TRUE` and
`keyCertSign`. All keys are ECDSA P-256: small, fast and supported everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.pem import KeyPair, load_certificates, load_key

#: `notBefore` lies this far in the past, for an API server whose clock is behind ours.
BACKDATED = timedelta(hours=1)
#: The lifetimes for the development server. Those of an installation are in `certs.durations`.
DEVELOPMENT_CA_LIFETIME = timedelta(days=365)
DEVELOPMENT_LEAF_LIFETIME = timedelta(days=30)


def issue_ca(
    name: str = "rdma-webhook CA",
    lifetime: timedelta = DEVELOPMENT_CA_LIFETIME,
    now: datetime | None = None,
) -> KeyPair:
    """Issue a self-signed CA that can sign leaves but no intermediate CAs.

    `now`: when its lifetime begins (default: the current time).
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(name)
    builder = (
        _builder(key.public_key(), lifetime, now)
        .subject_name(subject)
        .issuer_name(subject)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign_certificates=True), critical=True)
    )
    return _pair(builder.sign(key, SHA256()), key)


def issue_leaf(
    ca: KeyPair,
    dns_names: Iterable[str],
    ips: Iterable[str] = (),
    lifetime: timedelta = DEVELOPMENT_LEAF_LIFETIME,
    now: datetime | None = None,
) -> KeyPair:
    """Issue a server certificate for these names and addresses; it never outlives its CA.

    `now`: when its lifetime begins (default: the current time).
    """
    issuer = x509.load_pem_x509_certificate(ca.certificate)
    signer = load_key(ca.key)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in dns_names]
    subject = _subject(str(names[0].value) if names else "rdma-webhook")
    names.extend(x509.IPAddress(ip_address(ip)) for ip in ips)
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(key.public_key(), lifetime, now, issuer.not_valid_after_utc)
        .subject_name(subject)
        .issuer_name(issuer.subject)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(authority, critical=False)
    )
    return _pair(builder.sign(signer, SHA256()), key)


def expiry(pair: KeyPair) -> datetime:
    """Return when a certificate expires."""
    return load_certificates(pair.certificate)[0].not_valid_after_utc


def renewal_time(pair: KeyPair) -> datetime:
    """Return when a certificate is to be renewed: after two thirds of its lifetime.

    The lifetime begins at issuance, not at the earlier `notBefore`.
    """
    certificate = load_certificates(pair.certificate)[0]
    until = certificate.not_valid_after_utc
    issued = min(certificate.not_valid_before_utc + BACKDATED, until)
    return until - (until - issued) / 3


def renewal_due(pair: KeyPair, now: datetime) -> bool:
    """Return whether a certificate is to be renewed now."""
    return now >= renewal_time(pair)


def _builder(
    key: ec.EllipticCurvePublicKey,
    lifetime: timedelta,
    now: datetime | None,
    latest: datetime | None = None,
) -> x509.CertificateBuilder:
    now = now or datetime.now(UTC)
    until = now + lifetime
    return (
        x509.CertificateBuilder()
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(min(until, latest) if latest else until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _subject(name: str) -> x509.Name:
    longest = 64  # RFC 5280, ub-common-name
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:longest])])


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(
        certificate=certificate.public_bytes(Encoding.PEM),
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
