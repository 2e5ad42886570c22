"""A TLS 1.3 client that sends KeyUpdates (RFC 8446, 4.6.3), which Python's ssl cannot.

It takes over a connection after the handshake, with the secret that ssl writes to a key log.
"""

from __future__ import annotations

import socket
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, HashAlgorithm
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from tests.integration.serving import Process, Running

_HANDSHAKE, _DATA = 22, 23
#: key_update with update_requested, in a handshake message.
_KEY_UPDATE = bytes([24, 0, 0, 1, 1])
_SUITES: dict[str, tuple[HashAlgorithm, int]] = {
    "TLS_AES_128_GCM_SHA256": (SHA256(), 16),
    "TLS_AES_256_GCM_SHA384": (SHA384(), 32),
}


class RecordWriter:
    """A connection to a port of a server, for records that its user composes."""

    def __init__(self, server: Running | Process, name: str, folder: Path) -> None:
        """Connect to the port of this name, with the key log in `folder`."""
        context = server.tls.client
        context.keylog_filename = str(folder / "keys")
        dialed = socket.create_connection(("127.0.0.1", server.ports[name]), 60)
        with context.wrap_socket(dialed, server_hostname="localhost") as tls:
            suite = tls.cipher()
            assert suite is not None
            #: The socket under TLS.
            self.socket = socket.socket(fileno=tls.detach())
            self.socket.settimeout(60)
        self._hash, self._key_size = _SUITES[suite[0]]
        lines = map(str.split, (folder / "keys").read_text().splitlines())
        (secret,) = (line[2] for line in lines if line[0] == "CLIENT_TRAFFIC_SECRET_0")
        self._use(bytes.fromhex(secret))

    def data(self, content: bytes) -> bytes:
        """Return a record with content."""
        return self._record(_DATA, content)

    def key_update(self) -> bytes:
        """Return a record with a KeyUpdate; later records have another key."""
        record = self._record(_HANDSHAKE, _KEY_UPDATE)
        self._use(self._expand(b"traffic upd", self._hash.digest_size))
        return record

    def _use(self, secret: bytes) -> None:
        self._secret, self._sequence = secret, 0
        self._cipher = AESGCM(self._expand(b"key", self._key_size))
        self._iv = self._expand(b"iv", 12)

    def _expand(self, label: bytes, length: int) -> bytes:
        """Derive from the secret (RFC 8446, 7.1: HKDF-Expand-Label)."""
        label = b"tls13 " + label
        info = length.to_bytes(2, "big") + bytes([len(label)]) + label + b"\0"
        return HKDFExpand(self._hash, length, info).derive(self._secret)

    def _record(self, kind: int, content: bytes) -> bytes:
        """Protect a record (RFC 8446, 5.2 and 5.3)."""
        head = bytes([_DATA, 3, 3]) + (len(content) + 17).to_bytes(2, "big")
        count = self._sequence.to_bytes(12, "big")
        nonce = bytes(a ^ b for a, b in zip(self._iv, count, strict=True))
        self._sequence += 1
        return head + self._cipher.encrypt(nonce, content + bytes([kind]), head)
