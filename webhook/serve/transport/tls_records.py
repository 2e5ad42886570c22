"""A limit on TLS records with little content.

A record may carry one byte, or only a KeyUpdate, and TLS 1.3 allows any number of these (RFC 8446,
4.6.3). OpenSSL needs up to 20 µs for each, and the limits of HTTP do not see them: a single client
that sends 2 MB/s of them would take all the time of the event loop. Nor may a request have many:
an address can send one on each of its 850 connections at once, and again after the answers.
"""

from __future__ import annotations

import asyncio
from typing import cast

from uvloop.loop import SSLProtocol  # type: ignore[attr-defined]

from webhook.serve.transport.budget import ConnectionUsage

#: Records of a handshake or of a request that may have any content. Programs that send a head line
#: by line stay below it.
RECORDS = 50
#: Bytes of content for each further record. Go begins with records of 1.2 kB, others send 16 KiB.
BYTES_PER_RECORD = 1024
#: type, version, length (RFC 8446, 5.1)
_HEADER = 5


class RecordLimit(asyncio.BufferedProtocol):
    """A protocol between a socket and uvloop's TLS, which ends connections above the limit.

    uvloop calls its own TLS without Python, so a subclass of that would notice nothing.
    """

    def __init__(self, usage: ConnectionUsage, tls: SSLProtocol) -> None:
        self._usage = usage
        self._tls = tls
        self._buffer = memoryview(b"")
        #: Bytes until the next header, and the part of a header that has arrived.
        self._ahead, self._begun = 0, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the handshake."""
        self._tls.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """End TLS."""
        self._tls.connection_lost(exc)

    def eof_received(self) -> None:
        """End TLS; the transport then closes itself."""
        self._tls.eof_received()

    def pause_writing(self) -> None:
        """Stop writing until the client has read."""
        self._tls.pause_writing()

    def resume_writing(self) -> None:
        """Write again."""
        self._tls.resume_writing()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the place for the next piece."""
        self._buffer = cast("memoryview", self._tls.get_buffer(sizehint))
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass a piece on; close the connection if its records are too many for so few bytes."""
        usage = self._usage
        usage.tls_records += self._count(nbytes)
        if usage.tls_records > RECORDS + nbytes // BYTES_PER_RECORD:
            usage.close_because("refused")
        else:
            self._tls.buffer_updated(nbytes)

    def _count(self, octets: int) -> int:
        """Count the records whose headers end in the first bytes of the buffer."""
        if self._ahead >= octets:
            self._ahead -= octets
            return 0
        piece = self._begun + bytes(self._buffer[self._ahead : octets])
        count = position = 0
        while position + _HEADER <= len(piece):
            position += _HEADER + int.from_bytes(piece[position + 3 : position + _HEADER], "big")
            count += 1
        self._ahead, self._begun = max(0, position - len(piece)), piece[position:]
        return count
