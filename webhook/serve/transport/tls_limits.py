"""Limits on the TLS below HTTP: on handshakes, and on records with little content.

A hello may have 128 KiB: OpenSSL reserves as much as the first bytes declare, and takes 4 ms for a
hello full of cipher suites. Many handshakes that arrive at the same time are also spread over
iterations of the event loop: each takes 0.3 ms, and an address may have 850 connections.

A record may carry one byte, or only a KeyUpdate, and TLS 1.3 allows any number of these (RFC 8446,
4.6.3). OpenSSL needs up to 20 µs for each, and the limits of HTTP do not see them: a single client
that sends 2 MB/s of them would take all the time of the event loop. Nor may a request have many:
an address can send one on each of its 850 connections at once, and again after the answers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import cast

from uvloop.loop import SSLProtocol  # type: ignore[attr-defined]

from webhook.serve.transport.budget import ConnectionUsage

#: Bytes of a client's part of a handshake. Go's two hellos have 3.5 kB, a certificate with an RSA
#: key of 4096 bits and one above it 4 kB.
HANDSHAKE_BYTES = 10 * 1024
#: Pieces of handshakes that TLS gets in one iteration of the event loop.
PIECES_AT_ONCE = 16
#: Records of a handshake or of a request that may have any content. Programs that send a head line
#: by line stay below it.
RECORDS = 50
#: Bytes of content for each further record. Go begins with records of 1.2 kB, others send 16 KiB.
BYTES_PER_RECORD = 1024
#: type, version, length (RFC 8446, 5.1)
_HEADER = 5
#: The type of records with messages of a handshake that are not encrypted.
_HANDSHAKE = 22
#: type, length (RFC 8446, 4)
_MESSAGE_HEADER = 4


class HandshakePace:
    """The handshakes of a listener, a few in each iteration of the event loop."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def append(self, step: Callable[[], None]) -> None:
        """Run a step of a handshake in one of the next iterations."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._run)
        self._waiting.append(step)

    def _run(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(min(PIECES_AT_ONCE, len(self._waiting))):
            loop.call_soon(self._waiting.popleft())
        if self._waiting:
            loop.call_soon(self._run)


class TlsLimits(asyncio.BufferedProtocol):
    """A protocol between a socket and uvloop's TLS, which ends connections above the limits.

    uvloop calls its own TLS without Python, so a subclass of that would notice nothing.
    """

    def __init__(self, usage: ConnectionUsage, tls: SSLProtocol, pace: HandshakePace) -> None:
        self._usage = usage
        self._tls = tls
        self._pace = pace
        self._buffer = memoryview(b"")
        #: The bytes that have arrived during the handshake.
        self._handshake = b""
        #: Bytes until the next header, and the part of a header that has arrived.
        self._ahead, self._begun = 0, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the handshake."""
        self._transport = cast("asyncio.Transport", transport)
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
        if not self._usage.handshake_done:
            self._buffer = self._buffer[: max(1, HANDSHAKE_BYTES - len(self._handshake))]
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass a piece on, unless the handshake or the number of records is above its limit."""
        usage = self._usage
        usage.tls_records += self._count(nbytes)
        if usage.tls_records > RECORDS + nbytes // BYTES_PER_RECORD:
            usage.close_because("refused")
        elif usage.handshake_done:
            self._tls.buffer_updated(nbytes)
        else:
            self._continue_handshake(bytes(self._buffer[:nbytes]))

    def _continue_handshake(self, piece: bytes) -> None:
        self._handshake += piece
        if len(self._handshake) > HANDSHAKE_BYTES or _has_partial_message(self._handshake):
            self._usage.close_because("refused")
        else:
            self._transport.pause_reading()
            self._pace.append(partial(self._pass_on, piece))

    def _pass_on(self, piece: bytes) -> None:
        """Give TLS a piece of the handshake; the first request may begin in it."""
        if self._transport.is_closing():
            return
        self._transport.resume_reading()
        self._tls.get_buffer(len(piece))[: len(piece)] = piece
        self._tls.buffer_updated(len(piece))
        if self._usage.handshake_done:
            self._handshake = b""

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


def _has_partial_message(records: bytes) -> bool:
    """Return whether an unencrypted message, such as a hello, is longer than its record.

    Its own header declares its length. No client splits a message below the limit.
    """
    position = 0
    while position + _HEADER + _MESSAGE_HEADER <= len(records):
        content = position + _HEADER
        length = int.from_bytes(records[position + 3 : content], "big")
        declared = int.from_bytes(records[content + 1 : content + _MESSAGE_HEADER], "big")
        if records[position] == _HANDSHAKE and length < _MESSAGE_HEADER + declared:
            return True
        position = content + length
    return False
