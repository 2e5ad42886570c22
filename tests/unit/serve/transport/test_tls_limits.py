from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.serve.transport.test_budget import LIMITS, RecordedUsage
from webhook.serve.listener import LIMITS as LISTENER_LIMITS
from webhook.serve.transport.budget import Budget
from webhook.serve.transport.tls_limits import (
    BYTES_PER_RECORD,
    HANDSHAKE_BYTES,
    PIECES_AT_ONCE,
    RECORDS,
    HandshakePace,
    TlsLimits,
)


class Tls:
    """A TLS protocol that keeps what arrives."""

    def __init__(self) -> None:
        self.place = bytearray(1 << 16)
        self.arrived = b""
        self.events: list[tuple[object, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.events.append((name, *arguments))

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the place for the next piece."""
        del sizehint
        return memoryview(self.place)

    def buffer_updated(self, nbytes: int) -> None:
        """Take a piece."""
        self.arrived += self.place[:nbytes]


class Transport(asyncio.BaseTransport):
    """The transport of a socket."""

    def __init__(self) -> None:
        self.reads = True
        self.ended = False

    def pause_reading(self) -> None:
        """Stop reading."""
        self.reads = False

    def resume_reading(self) -> None:
        """Read again."""
        assert not self.ended
        self.reads = True

    def is_closing(self) -> bool:
        """Return whether it has ended."""
        return self.ended


class Wire:
    """A connection with limits, which has completed its handshake unless a test says otherwise."""

    def __init__(self, pace: HandshakePace | None = None) -> None:
        self.usage = RecordedUsage(Budget(LIMITS))
        self.usage.handshake_done = pace is None
        self.tls, self.transport = Tls(), Transport()
        self.protocol = TlsLimits(self.usage, self.tls, pace or HandshakePace())
        self.protocol.connection_made(self.transport)
        self.tls.events.clear()

    def send(self, piece: bytes) -> None:
        """Let a piece arrive."""
        place = self.protocol.get_buffer(len(self.tls.place))
        place[: len(piece)] = piece
        self.protocol.buffer_updated(len(piece))


def record(length: int) -> bytes:
    """Return a record whose content looks like a header."""
    return b"\x17\x03\x03" + length.to_bytes(2, "big") + b"\x01" * length


SIZES = (0, 1, 4, 5, 6, 300)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 11, 100, 1000])
def test_records_are_counted_however_they_arrive(size: int) -> None:
    """A header or a content may arrive in several pieces; each record counts once."""
    wire, stream = Wire(), b"".join(map(record, SIZES * 2))
    for start in range(0, len(stream), size):
        wire.send(stream[start : start + size])
    assert wire.usage.tls_records == len(SIZES) * 2
    assert wire.tls.arrived == stream


def test_a_record_counts_when_its_header_is_complete() -> None:
    """Its content may never arrive."""
    wire = Wire()
    wire.send(record(5)[:4])
    assert wire.usage.tls_records == 0
    wire.send(record(5)[4:5])
    assert wire.usage.tls_records == 1


def test_what_is_above_the_limit_does_not_reach_tls() -> None:
    """OpenSSL would take time for each record."""
    wire = Wire()
    wire.send(record(0) * RECORDS)
    assert (wire.usage.ended, len(wire.tls.arrived)) == (False, 5 * RECORDS)
    wire.send(record(0))
    assert (wire.usage.ended, wire.usage.reason) == (True, "refused")
    assert len(wire.tls.arrived) == 5 * RECORDS


def test_all_connections_of_an_address_take_little_time() -> None:
    """Each may have as many records before a request, and OpenSSL needs 11 µs for a KeyUpdate."""
    limits = LISTENER_LIMITS["mutate"]
    assert RECORDS * limits.per_address / limits.connection * 11e-6 < 0.5


@pytest.mark.parametrize(
    ("length", "ended"), [(BYTES_PER_RECORD - 5, False), (BYTES_PER_RECORD - 6, True)]
)
def test_a_piece_may_be_all_content(length: int, *, ended: bool) -> None:
    """It may have a further record for each BYTES_PER_RECORD bytes."""
    wire = Wire()
    wire.send(record(0) * RECORDS)
    wire.send(record(length))
    assert wire.usage.ended is ended


def test_events_reach_tls_itself() -> None:
    """Only pieces are for the limit."""
    wire, lost = Wire(), OSError()
    protocol = wire.protocol
    protocol.connection_made(wire.transport)
    protocol.pause_writing()
    protocol.resume_writing()
    protocol.eof_received()
    protocol.connection_lost(lost)
    assert wire.tls.events == [
        ("connection_made", wire.transport),
        ("pause_writing",),
        ("resume_writing",),
        ("eof_received",),
        ("connection_lost", lost),
    ]


def hello(declared: int, length: int | None = None) -> bytes:
    """Return the beginning of a record with a ClientHello; by default, it has the whole message."""
    length = declared + 4 if length is None else length
    return b"\x16\x03\x01" + length.to_bytes(2, "big") + b"\x01" + declared.to_bytes(3, "big")


async def _iterations(count: int) -> None:
    """Let the event loop do all that is ready, so many times."""
    for _ in range(count):
        await asyncio.sleep(0)


def _shake(*pieces: bytes) -> Wire:
    """Let pieces of a handshake arrive, each once TLS has got the one before it."""
    wire = Wire(HandshakePace())

    async def arrive() -> None:
        for piece in pieces:
            wire.send(piece)
            await _iterations(4)

    asyncio.run(arrive())
    return wire


def test_a_handshake_reaches_tls() -> None:
    """In the pieces that arrive, however small these are."""
    handshake = hello(8) + b"x" * 8 + record(300)
    wire = _shake(*(handshake[index : index + 1] for index in range(len(handshake))))
    assert (wire.tls.arrived, wire.usage.ended) == (handshake, False)


@pytest.mark.parametrize(("extra", "ended"), [(0, False), (1, True)])
def test_a_handshake_has_a_limit(extra: int, *, ended: bool) -> None:
    """OpenSSL would reserve memory and take time for what it never needs."""
    first = record(4000)
    wire = _shake(first, record(HANDSHAKE_BYTES - len(first) - 5), b"\x17" * extra)
    assert (wire.usage.ended, wire.usage.reason == "refused") == (ended, ended)
    assert len(wire.tls.arrived) == HANDSHAKE_BYTES


def test_a_handshake_gets_a_small_place() -> None:
    """A listener may have a thousand connections; the first request may be of any size."""
    wire = _shake(record(4000))
    assert len(wire.protocol.get_buffer(1 << 16)) == HANDSHAKE_BYTES - 4005
    wire.usage.handshake_done = True
    assert len(wire.protocol.get_buffer(1 << 16)) == 1 << 16


@pytest.mark.parametrize(
    "pieces",
    [
        (hello(131_396, 16_384),),
        (hello(100, 103),),
        (hello(8) + b"x" * 8, record(1), hello(131_396, 100)),  # after a HelloRetryRequest
        (hello(131_396, 3),),
        (hello(131_396, 100)[:8], hello(131_396, 100)[8:]),
    ],
)
def test_a_message_longer_than_its_record_is_refused(pieces: tuple[bytes, ...]) -> None:
    """OpenSSL reserves the memory for it as soon as its header has arrived."""
    wire = _shake(*pieces)
    assert wire.usage.reason == "refused"
    assert pieces[-1] not in wire.tls.arrived


@pytest.mark.parametrize("content", [b"\x01\xff\xff\xff", b"\x01"])
def test_encrypted_records_may_have_any_content(content: bytes) -> None:
    """Their messages cannot be seen."""
    wire = _shake(b"\x17\x03\x03\x00" + bytes([len(content)]) + content)
    assert not wire.usage.ended


def test_many_handshakes_are_spread() -> None:
    """Others are served between them, and no connection is read meanwhile."""
    pace = HandshakePace()
    wires = [Wire(pace) for _ in range(2 * PIECES_AT_ONCE + 1)]
    counts: list[int] = []

    async def arrive() -> None:
        for wire in wires:
            wire.send(record(1))
        assert not any(wire.transport.reads for wire in wires)
        for _ in range(8):
            await asyncio.sleep(0)
            counts.append(sum(bool(wire.tls.arrived) for wire in wires))

    asyncio.run(arrive())
    steps = [after - before for before, after in zip([0, *counts], counts, strict=False)]
    assert (max(steps), counts[-1]) == (PIECES_AT_ONCE, len(wires))
    assert all(wire.transport.reads for wire in wires)


def test_a_handshake_that_ends_meanwhile() -> None:
    """TLS gets nothing more."""
    wire = Wire(HandshakePace())

    async def arrive() -> None:
        wire.send(record(1))
        wire.transport.ended = True
        await _iterations(4)

    asyncio.run(arrive())
    assert wire.tls.arrived == b""
