"""TLS contexts whose certificate can be replaced while they serve.

The outer context is created once and never replaced, because the TLS version, ALPN and
client verification come from it. Each handshake gets its certificate through `sni_callback`,
which is also called if the client sends no server name. On Linux no private key touches a disk.
"""

from __future__ import annotations

import os
import ssl
import sys
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile

from certs.clock import Clock
from certs.errors import CertificateError
from certs.pem import KeyPair, check_pair


class ServingContext:
    """A server's TLS contexts, which use the current certificate; without one, handshakes fail."""

    def __init__(self, client_ca: bytes | None = None, clock: Clock | None = None) -> None:
        """`client_ca` (PEM): require clients of `context` to show a certificate from it."""
        self._clock = clock or Clock()
        self.context = _context(client_ca)
        #: Serves the same certificate, to clients without one.
        self.anonymous = self.context if client_ca is None else _context(None)
        self._client_cas = {self.anonymous: None, self.context: client_ca}
        for outer in self._client_cas:
            outer.sni_callback = self._choose
        #: The expiry of the certificate; None while there is none.
        self.not_after: datetime | None = None
        #: The certificate with its chain, in PEM; empty while there is none.
        self.chain = b""
        self._current: dict[ssl.SSLContext, ssl.SSLContext] = {}

    def use(self, pair: KeyPair, name: str | None = None) -> None:
        """Serve this pair from the next handshake on; keep the last one on CertificateError.

        `name`: the server name that clients verify, if it is known.
        """
        until = check_pair(pair, self._clock.now(), name)
        current = {outer: _context(client_ca) for outer, client_ca in self._client_cas.items()}
        for context in current.values():
            _load(context, pair)
        self._current = current
        self.chain, self.not_after = pair.certificate, until

    def valid(self) -> bool:
        """Return whether there is a certificate that has not expired."""
        return self.not_after is not None and self._clock.now() < self.not_after

    def _choose(self, tls: ssl.SSLObject, _name: str | None, outer: ssl.SSLContext) -> None:
        current = self._current.get(outer)
        if current is not None:
            tls.context = current


class CertificateFiles:
    """A pair in two files that another program renews (cert-manager, the kubelet)."""

    def __init__(
        self, certificate: Path, key: Path, serving: ServingContext, name: str | None = None
    ) -> None:
        """`name`: the name that the certificate must be for; None if it is not known."""
        self._paths = (certificate, key)
        self._serving = serving
        self._name = name
        self._content: tuple[bytes, bytes] | None = None
        #: The problem with the current files; "" while they are served.
        self.error = ""

    def poll(self) -> bool:
        """Serve the pair in the files if their content is new; return whether anything changed.

        Compares the content, not the modification time, because a mounted Secret is updated
        by swapping a symbolic link. Never raises: if a pair cannot be served, the last one
        stays in place, and `error` has the reason.
        """
        certificate, key = self._paths
        try:
            content = (certificate.read_bytes(), key.read_bytes())
        except OSError as error:
            return self._set_error(None, f"cannot read {error.filename}: {error.strerror}")
        if content == self._content:
            return False
        try:
            self._serving.use(KeyPair(certificate=content[0], key=content[1]), self._name)
        except CertificateError as error:
            return self._set_error(content, f"{certificate} with {key}: {error}")
        self._content, self.error = content, ""
        return True

    def _set_error(self, content: tuple[bytes, bytes] | None, error: str) -> bool:
        changed = error != self.error
        self._content, self.error = content, error
        return changed


#: The only group for the key exchange, which all clients have (RFC 8446, 9.1). By default, OpenSSL
#: also accepts ffdhe8192, for which a server computes 110 ms, and a client not even its own share
#: (CVE-2002-20001, D(HE)at). Python before 3.15 cannot allow several groups.
GROUP = "prime256v1"


def _context(client_ca: bytes | None) -> ssl.SSLContext:
    """Create a context. The inner ones need the client CA too, since their trust store is used.

    Raises CertificateError if the client CA is not a PEM certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # A server cannot see how large the parts of an older handshake will be: `serve.transport`.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_ecdh_curve(GROUP)
    # API servers resume no session. A resumed one would skip the check of the client's certificate,
    # which may have expired, and a hello has room for many tickets, each of which takes time.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    # The API server offers only this (client-go, rest/transport: NextProtos).
    context.set_alpn_protocols(["http/1.1"])
    if client_ca is not None:
        _trust_clients(context, client_ca)
    return context


def _trust_clients(context: ssl.SSLContext, client_ca: bytes) -> None:
    """Require certificates of this CA."""
    try:
        context.load_verify_locations(cadata=client_ca.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise CertificateError("the client CA is not a PEM certificate") from error
    context.verify_mode = ssl.CERT_REQUIRED


def _load(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Load the pair through a file in memory, because OpenSSL reads only files."""
    pem = pair.key.rstrip() + b"\n" + pair.certificate
    try:
        if sys.platform == "linux":
            descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
            with os.fdopen(descriptor, "wb") as file:
                file.write(pem)
                file.flush()
                context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        else:  # no memfd; this file is readable by the user only, and removed at once
            with NamedTemporaryFile() as file:
                file.write(pem)
                file.flush()
                context.load_cert_chain(file.name)
    except ssl.SSLError as error:
        raise CertificateError(
            f"OpenSSL does not accept the pair: {error.reason or error}"
        ) from error
