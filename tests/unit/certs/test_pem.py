from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509 import load_der_x509_certificate, load_pem_x509_certificate

from certs.errors import CertificateError
from certs.issue import issue_ca, issue_leaf
from certs.pem import MAX_KEY_BYTES, KeyPair, check_pair, is_issued_by, load_key
from tests.unit.certs import diffie_hellman

NOW = datetime.now(UTC)
RSA = rsa.generate_private_key(65537, 2048)
KEYS: dict[str, PrivateKeyTypes] = {
    "ECDSA": ec.generate_private_key(ec.SECP521R1()),
    "RSA": RSA,
    "Ed25519": ed25519.Ed25519PrivateKey.generate(),
}
CA = issue_ca()
SERVICE = "web.lab.svc"


def _leaf(lifetime: timedelta = timedelta(hours=1)) -> KeyPair:
    return issue_leaf(CA, ["localhost"], lifetime=lifetime)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (KeyPair(certificate=b"", key=b""), "the certificate is not a PEM certificate"),
        (
            KeyPair(certificate=CA.certificate, key=b"?"),
            "the key is not an unencrypted PEM private key",
        ),
        (KeyPair(certificate=CA.certificate, key=_leaf().key), "does not belong to"),
        (
            KeyPair(certificate=CA.certificate, key=diffie_hellman.key()),
            "the key is not an unencrypted ECDSA, RSA or Ed25519 key",
        ),
        (
            KeyPair(certificate=diffie_hellman.certificate(CA.certificate), key=CA.key),
            "the key does not belong to the certificate",
        ),
        (
            KeyPair(certificate=CA.certificate, key=CA.key + b" " * MAX_KEY_BYTES),
            "the key has more than 8192 bytes",
        ),
        (_leaf(timedelta(minutes=-1)), "the certificate expired at 20"),
    ],
)
def test_pairs_that_cannot_be_served(pair: KeyPair, message: str) -> None:
    """Each defect has its own message; none has numbers tested for primes (seconds of CPU)."""
    with pytest.raises(CertificateError, match=message):
        check_pair(pair, NOW)


@pytest.mark.parametrize(
    "names", [[SERVICE], ["a", SERVICE.upper()], [f"*.{SERVICE.partition('.')[2]}"]]
)
def test_names_that_the_api_server_accepts(names: list[str]) -> None:
    """The name may be one of several, in any case, or a wildcard for the first label."""
    check_pair(issue_leaf(CA, names), NOW, SERVICE)


@pytest.mark.parametrize(
    ("names", "listed"),
    [
        ([], "none"),
        (["web.other.svc"], "web.other.svc"),
        (["*.svc"], "*.svc"),
        (
            [f"{SERVICE}.cluster.local", "b", "c", "d", "e", "f"],
            f"{SERVICE}.cluster.local, b, c, d, e",
        ),
    ],
)
def test_names_that_it_does_not(names: list[str], listed: str) -> None:
    """Such a pair never replaces a good one, since every call would fail; subjects do not count."""
    pair = issue_leaf(CA, names, ["127.0.0.1"])
    message = (
        f"the certificate is not for {SERVICE}, which the API server expects, but for {listed}"
    )
    with pytest.raises(CertificateError, match=f"^{re.escape(message)}$"):
        check_pair(pair, NOW, SERVICE)


@pytest.mark.parametrize("format_", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_certificates(kind: str, format_: PrivateFormat) -> None:
    """ECDSA, RSA and Ed25519 keys are parsed, in the formats that tools write."""
    key = KEYS[kind]
    if kind == "Ed25519":
        format_ = PrivateFormat.PKCS8  # its only one
    pem = key.private_bytes(Encoding.PEM, format_, NoEncryption())
    assert load_key(pem).public_key() == key.public_key()
    assert load_key(b"a comment\n" + pem.replace(b"\n", b"\r\n")).public_key() == key.public_key()


def test_primes_of_rsa_keys_are_not_tested() -> None:
    """The test takes a minute for a key of 15 kB; a wrong key fails in the first handshake."""
    numbers = RSA.private_numbers()
    composite = rsa.RSAPrivateNumbers(
        *(numbers.p, numbers.q, numbers.d, numbers.dmp1, numbers.dmq1, numbers.iqmp + 1),
        numbers.public_numbers,
    )
    damaged_key = composite.private_key(unsafe_skip_rsa_key_validation=True)
    pem = damaged_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    assert load_key(pem).public_key() == RSA.public_key()


@pytest.mark.parametrize("kind", ["unknown curve", "Diffie-Hellman"])
def test_a_ca_whose_key_cannot_be_used(kind: str) -> None:
    """Such a CA, which anybody may have put into the Secret, has issued no leaf."""
    if kind == "unknown curve":
        p256, unknown = bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a8648ce3d03017f")
        der = load_pem_x509_certificate(CA.certificate).public_bytes(Encoding.DER)
        ca = load_der_x509_certificate(der.replace(p256, unknown))
    else:
        ca = load_pem_x509_certificate(diffie_hellman.certificate(CA.certificate))
    leaf = load_pem_x509_certificate(issue_leaf(CA, ["a"]).certificate)
    assert not is_issued_by(leaf, ca)
    assert is_issued_by(leaf, load_pem_x509_certificate(CA.certificate))
