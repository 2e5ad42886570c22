"""A cluster's certificate authority, the certificates it signs, and kubeconfigs with them.

Kubernetes takes the user from a client certificate's common name and the groups from its
organizations; of a server certificate it reads only the alternative names.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: No test cluster runs for longer.
LIFETIME = timedelta(days=30)
_BACKDATED = timedelta(minutes=5)


@dataclass(frozen=True)
class Signed:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)

    def write(self, directory: Path, name: str) -> tuple[Path, Path]:
        """Write NAME.crt and NAME.key, readable only by the owner; return their paths."""
        paths = directory / f"{name}.crt", directory / f"{name}.key"
        for path, content in zip(paths, (self.certificate, self.key), strict=True):
            private(path, content)
        return paths


class Authority:
    """A certificate authority whose key exists only in memory."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject("cluster", ())
        builder = _builder(self._key, self._name, self._name).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self._signed = builder.sign(self._key, SHA256())

    @property
    def certificate(self) -> bytes:
        """The authority's own certificate, as PEM."""
        return self._signed.public_bytes(Encoding.PEM)

    def client(self, user: str, *groups: str) -> Signed:
        """Sign a client certificate for this user and these groups."""
        return self._leaf(_subject(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def server(self, name: str, hosts: Iterable[str]) -> Signed:
        """Sign a server certificate for these names and addresses."""
        return self._leaf(_subject(name, ()), ExtendedKeyUsageOID.SERVER_AUTH, hosts)

    def _leaf(self, name: x509.Name, usage: x509.ObjectIdentifier, hosts: Iterable[str]) -> Signed:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(key, name, self._name).add_extension(
            x509.ExtendedKeyUsage([usage]), critical=False
        )
        names = [_alternative(host) for host in hosts]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, SHA256())
        return Signed(certificate.public_bytes(Encoding.PEM), key_pem(key))


def key_pem(key: ec.EllipticCurvePrivateKey | None = None) -> bytes:
    """Return a private key as PEM; make a new one unless given."""
    # The only form from which the API server can also derive the public key.
    private_key = key or ec.generate_private_key(ec.SECP256R1())
    form = PrivateFormat.TraditionalOpenSSL
    return private_key.private_bytes(Encoding.PEM, form, NoEncryption())


def kubeconfig(server: str, authority: bytes, client: Signed) -> bytes:
    """Return a kubeconfig that needs no other file (as JSON, which is also YAML)."""
    user = {
        "client-certificate-data": _base64(client.certificate),
        "client-key-data": _base64(client.key),
    }
    cluster = {"server": server, "certificate-authority-data": _base64(authority)}
    named = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user"}}],
        "current-context": "test",
    }
    return json.dumps(named, indent=2).encode()


def private(path: Path, content: bytes) -> Path:
    """Write a file that only its owner can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    return path


def _builder(
    key: ec.EllipticCurvePrivateKey, name: x509.Name, issuer: x509.Name
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + LIFETIME)
    )


def _subject(name: str, groups: Iterable[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
