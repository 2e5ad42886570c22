"""Serve certificates: TLS contexts whose certificate can be replaced while they serve.

The outer context is made once and never replaced, because version, ALPN and client
verification are taken from it; each handshake then gets its certificate through
`sni_callback` (which fires without a server name too). No private key touches a disk.
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
    """A server's TLS, with the certificate of the moment; without one, handshakes fail."""

    def __init__(self, client_ca: bytes | None = None, clock: Clock | None = None) -> None:
        """Ask clients of `context` for a certificate of `client_ca` (PEM) where it is given."""
        self._clock = clock or Clock()
        self.context = _context(client_ca)
        #: The same certificate for clients who have none of their own.
        self.anonymous = self.context if client_ca is None else _context(None)
        self._client_cas = {self.anonymous: None, self.context: client_ca}
        for outer in self._client_cas:
            outer.sni_callback = self._choose
        #: The end of the certificate's validity; None while there is none.
        self.not_after: datetime | None = None
        self._current: dict[ssl.SSLContext, ssl.SSLContext] = {}

    def use(self, pair: KeyPair, name: str | None = None) -> None:
        """Serve this pair from the next handshake on; CertificateError keeps the last one.

        `name`: what clients will ask for, where that is known.
        """
        until = check_pair(pair, self._clock.now(), name)
        current = {outer: _context(client_ca) for outer, client_ca in self._client_cas.items()}
        for context in current.values():
            _load(context, pair)
        self._current = current
        self.not_after = until

    def valid(self) -> bool:
        """Whether there is a certificate that has not expired."""
        return self.not_after is not None and self._clock.now() < self.not_after

    def _choose(self, tls: ssl.SSLObject, _name: str | None, outer: ssl.SSLContext) -> None:
        current = self._current.get(outer)
        if current is not None:
            tls.context = current


class CertificateFiles:
    """A pair in two files that somebody else renews (cert-manager, the kubelet)."""

    def __init__(
        self, certificate: Path, key: Path, serving: ServingContext, name: str | None = None
    ) -> None:
        """`name`: what the certificate must be for; None: that is not known."""
        self._paths = (certificate, key)
        self._serving = serving
        self._name = name
        self._seen: tuple[bytes, bytes] | None = None
        #: What is wrong with the files as they are; "" while they are served.
        self.error = ""

    def poll(self) -> bool:
        """Serve the files' pair if their content is new; return whether anything changed.

        The content is compared and not its time, because a mounted Secret is renewed by
        swapping a symbolic link. Never raises: a pair that cannot be served leaves the
        last one in place, and `error` says why.
        """
        certificate, key = self._paths
        try:
            seen = (certificate.read_bytes(), key.read_bytes())
        except OSError as error:
            return self._failed(None, f"cannot read {error.filename}: {error.strerror}")
        if seen == self._seen:
            return False
        try:
            self._serving.use(KeyPair(certificate=seen[0], key=seen[1]), self._name)
        except CertificateError as error:
            return self._failed(seen, f"{certificate} with {key}: {error}")
        self._seen, self.error = seen, ""
        return True

    def _failed(self, seen: tuple[bytes, bytes] | None, error: str) -> bool:
        changed = error != self.error
        self._seen, self.error = seen, error
        return changed


#: Of TLS 1.2, as OpenSSL names them; TLS 1.3 has none but such. CBC suites are open to padding
#: oracles (RFC 7457), and Go, curl and the browsers all speak one of these.
AEAD = "ECDHE+AESGCM:ECDHE+CHACHA20"


def _context(client_ca: bytes | None) -> ssl.SSLContext:
    """Make a context; the client CA is needed in the inner ones too, which bring the trust store.

    Raises CertificateError for a client CA that is none.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(AEAD)
    # The API server offers nothing else (client-go, rest/transport: NextProtos).
    context.set_alpn_protocols(["http/1.1"])
    if client_ca is not None:
        _trust_clients(context, client_ca)
    return context


def _trust_clients(context: ssl.SSLContext, client_ca: bytes) -> None:
    try:
        context.load_verify_locations(cadata=client_ca.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        msg = "the client CA is no PEM certificate"
        raise CertificateError(msg) from error
    context.verify_mode = ssl.CERT_REQUIRED


def _load(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Give OpenSSL, which reads from files only, a file that exists in memory only."""
    pem = pair.key.rstrip() + b"\n" + pair.certificate
    try:
        if sys.platform == "linux":
            descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
            with os.fdopen(descriptor, "wb") as file:
                file.write(pem)
                file.flush()
                context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        else:  # no such files there; this one is the user's alone and goes at once
            with NamedTemporaryFile() as file:
                file.write(pem)
                file.flush()
                context.load_cert_chain(file.name)
    except ssl.SSLError as error:
        msg = f"OpenSSL does not accept the pair: {error.reason or error}"
        raise CertificateError(msg) from error
