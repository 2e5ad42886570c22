from __future__ import annotations

from asyncio import BaseTransport
from typing import Any

import pytest

from tests.unit.serve.transport.test_budget import LIMITS, RecordedUsage
from webhook.serve.listener import LIMITS as LISTENER_LIMITS
from webhook.serve.transport.budget import Budget
from webhook.serve.transport.tls_records import BYTES_PER_RECORD, RECORDS, RecordLimit


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
        assert sizehint == len(self.place)
        return memoryview(self.place)

    def buffer_updated(self, nbytes: int) -> None:
        """Take a piece."""
        self.arrived += self.place[:nbytes]


class Wire:
    """A connection with a limit on its records."""

    def __init__(self) -> None:
        self.usage = RecordedUsage(Budget(LIMITS))
        self.tls = Tls()
        self.protocol = RecordLimit(self.usage, self.tls)

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
    protocol, lost, transport = Wire().protocol, OSError(), BaseTransport()
    protocol.connection_made(transport)
    protocol.pause_writing()
    protocol.resume_writing()
    protocol.eof_received()
    protocol.connection_lost(lost)
    assert protocol._tls.events == [
        ("connection_made", transport),
        ("pause_writing",),
        ("resume_writing",),
        ("eof_received",),
        ("connection_lost", lost),
    ]
