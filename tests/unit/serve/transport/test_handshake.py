from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from contextlib import suppress
from threading import Event
from typing import Any, cast

import pytest

from tests.unit.serve.transport.test_budget import RecordedUsage
from tests.unit.serve.transport.test_tls_limits import Transport
from webhook.serve.transport import handshake
from webhook.serve.transport.budget import Budget, Limits
from webhook.serve.transport.handshake import (
    CERTIFICATES,
    COMPLETE_FOR,
    SLOW,
    SLOW_FOR,
    HandshakeTurns,
    SteppedContext,
    ThreadedHandshake,
)

LIMITS = Limits(connection=48 << 10, in_all=1 << 20, per_address=1 << 20)


class Tls:
    """A TLS protocol that records calls and what arrives."""

    def __init__(self) -> None:
        self.place = bytearray(1 << 17)
        self.calls: list[object] = []
        self.done: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.calls.append(name)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the place for the next piece."""
        del sizehint
        return memoryview(self.place)

    def buffer_updated(self, nbytes: int) -> None:
        """Take a piece, or, without bytes, the outcome of a computation."""
        self.calls.append(bytes(self.place[:nbytes]))
        if not nbytes:
            self.done()


class Context:
    """A context whose computation waits for permission."""

    def __init__(self) -> None:
        self.may_end = Event()
        self.may_end.set()
        self.began = asyncio.Event()
        self.seconds = 0.0
        self._loop = asyncio.get_running_loop()

    def compute(self) -> float:
        """Compute until it may end."""
        self._loop.call_soon_threadsafe(self.began.set)
        self.may_end.wait(60)
        return self.seconds


class Wire:
    """A connection whose handshake is done in a thread."""

    def __init__(self, turns: HandshakeTurns, address: str = "192.0.2.1") -> None:
        self.usage = RecordedUsage(Budget(LIMITS), address)
        self.tls, self.context, self.transport = Tls(), Context(), Transport()
        self.protocol = ThreadedHandshake(
            self.usage, self.tls, cast("SteppedContext", self.context), turns
        )
        self.protocol.connection_made(self.transport)
        self.tls.calls.clear()

    def send(self, piece: bytes) -> None:
        """Let a piece arrive."""
        self.protocol.get_buffer(len(piece))[: len(piece)] = piece
        self.protocol.buffer_updated(len(piece))

    def complete(self) -> None:
        """End the handshake, as `Connection` does."""
        self.usage.handshake_done = True


async def _settle() -> None:
    """Wait for all other tasks, and for the tasks that they begin."""
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.gather(*tasks, return_exceptions=True)


def _run(test: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(test())


def test_a_thread_computes_while_the_loop_goes_on() -> None:
    """The client is not read meanwhile, and calls for TLS wait, since the thread uses it."""

    async def test() -> None:
        wire = Wire(HandshakeTurns())
        wire.context.may_end.clear()
        wire.send(b"hello")
        assert not wire.transport.reads
        await wire.context.began.wait()
        wire.protocol.pause_writing()
        wire.protocol.resume_writing()
        wire.protocol.eof_received()
        assert wire.tls.calls == [b"hello"]
        wire.context.may_end.set()
        await _settle()
        late = ["pause_writing", "resume_writing", "eof_received"]
        assert wire.tls.calls == [b"hello", *late, b""]
        wire.protocol.resume_writing()
        assert wire.tls.calls[5:] == ["resume_writing"]

    _run(test)


def test_a_connection_that_ends_meanwhile_gets_no_outcome() -> None:
    """TLS learns of its end when the thread no longer uses it."""

    async def test() -> None:
        wire = Wire(HandshakeTurns())
        wire.context.may_end.clear()
        wire.send(b"hello")
        await wire.context.began.wait()
        wire.transport.ended = True
        wire.protocol.connection_lost(None)
        wire.context.may_end.set()
        await _settle()
        assert wire.tls.calls == [b"hello", "connection_lost"]

    _run(test)


def test_a_connection_that_ends_while_it_waits_leaves_the_queue() -> None:
    """Otherwise it would be kept in memory, and the thread would compute for nobody."""

    async def test() -> None:
        turns = HandshakeTurns()
        first, second = Wire(turns), Wire(turns)
        first.context.may_end.clear()
        first.send(b"hello")
        await first.context.began.wait()
        second.send(b"hello")
        await asyncio.sleep(0.01)
        second.protocol.connection_lost(None)
        assert second.tls.calls == [b"hello", "connection_lost"]
        first.context.may_end.set()
        await _settle()
        assert not second.context.began.is_set()

    _run(test)


def test_the_handshake_ends() -> None:
    """Only then does it need no room for certificates, and nothing passes through a thread."""

    async def test() -> None:
        wire = Wire(HandshakeTurns())
        before = wire.usage.octets
        wire.send(b"hello")
        await _settle()
        assert (wire.usage.octets, wire.transport.reads) == (before, True)
        wire.tls.done = wire.complete
        wire.send(b"certificate")
        await _settle()
        assert (wire.usage.octets, wire.transport.reads) == (before - CERTIFICATES, True)
        wire.context.began.clear()
        wire.send(b"request")
        assert wire.tls.calls[-1] == b"request"
        assert not wire.context.began.is_set()

    _run(test)


def test_certificates_need_room() -> None:
    """A client that only declares them makes OpenSSL reserve it."""

    async def test() -> None:
        assert Wire(HandshakeTurns()).usage.octets == LIMITS.connection + CERTIFICATES

    _run(test)


def test_a_slow_address_does_not_delay_others() -> None:
    """Its handshakes share a thread with other slow addresses, also waiting ones."""

    async def test() -> None:
        turns = HandshakeTurns()
        wires = [Wire(turns, "192.0.2.1") for _ in range(2)]
        other = Wire(turns, "192.0.2.2")
        wires[0].context.seconds = SLOW
        for wire in wires:
            wire.context.may_end.clear()
            wire.send(b"hello")
        await wires[0].context.began.wait()
        wires[0].context.may_end.set()
        await wires[1].context.began.wait()
        other.send(b"hello")
        await other.context.began.wait()
        wires[1].context.may_end.set()
        await _settle()

    _run(test)


async def _waits(turns: HandshakeTurns, address: str, behind: str) -> bool:
    """Return whether an address waits while another one has a turn."""
    async with turns.turn(behind):
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01), turns.turn(address):
                return False
    return True


def test_a_slow_address_is_forgotten() -> None:
    """After a while it waits with the others again; a step below the limit does not count."""

    async def test() -> None:
        now = [0.0]
        turns = HandshakeTurns(lambda: now[0])
        turns.note("a", SLOW - 0.001)
        assert await _waits(turns, "b", "a")
        turns.note("a", SLOW)
        assert not await _waits(turns, "b", "a")
        now[0] = SLOW_FOR - 1
        assert not await _waits(turns, "b", "a")
        now[0] = SLOW_FOR
        assert await _waits(turns, "b", "a")

    _run(test)


def test_a_complete_address_does_not_wait_for_strangers() -> None:
    """An API server connects again while others send slow certificates, unless it is slow."""

    async def test() -> None:
        now = [0.0]
        turns = HandshakeTurns(lambda: now[0])
        turns.note_complete("a")
        assert not await _waits(turns, "a", "b")
        assert await _waits(turns, "c", "b")
        now[0] = COMPLETE_FOR - 1
        assert not await _waits(turns, "a", "b")
        now[0] = COMPLETE_FOR
        assert await _waits(turns, "a", "b")
        turns.note_complete("a")
        turns.note("a", SLOW)
        turns.note("b", SLOW)
        assert await _waits(turns, "a", "b")

    _run(test)


def test_a_complete_handshake_is_remembered() -> None:
    """An incomplete one is not: anybody can begin one."""

    async def test() -> None:
        turns = HandshakeTurns()
        wire = Wire(turns, "192.0.2.1")
        wire.send(b"hello")
        await _settle()
        assert await _waits(turns, "192.0.2.1", "192.0.2.2")
        wire.tls.done = wire.complete
        wire.send(b"certificate")
        await _settle()
        assert not await _waits(turns, "192.0.2.1", "192.0.2.2")

    _run(test)


def test_few_addresses_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number is limited; the one that was added first is forgotten."""

    async def test() -> None:
        monkeypatch.setattr(handshake, "_MAX_ADDRESSES", 2)
        turns = HandshakeTurns()
        for address in "abac":
            turns.note(address, SLOW)
        assert await _waits(turns, "d", "b")
        assert not await _waits(turns, "d", "a")
        assert not await _waits(turns, "d", "c")

    _run(test)


def test_a_handshake_goes_on_only_when_it_is_computed() -> None:
    """Uvloop asks for its state whenever something has arrived, and after each computation."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = SteppedContext(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    stepped = context.wrap_bio(incoming, outgoing, True, None)
    incoming.write(b"\x16\x03\x01")
    assert stepped.compute() >= 0
    with pytest.raises(ssl.SSLWantReadError):
        stepped.do_handshake()
    incoming.write(b"\x00\x04\x00\x00\x00\x00")
    with pytest.raises(ssl.SSLWantReadError):
        stepped.do_handshake()
    stepped.compute()
    with pytest.raises(ssl.SSLError, match=r"SSL|ssl") as failed:
        stepped.do_handshake()
    assert not isinstance(failed.value, ssl.SSLWantReadError)
