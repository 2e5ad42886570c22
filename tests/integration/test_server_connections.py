"""Which connections a full listener closes, and which it keeps."""

from __future__ import annotations

import asyncio
import gc
import resource
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.serving import Process, Running, fabrics, review, send
from tests.waiting import until
from webhook.serve import listener
from webhook.serve.fair_queue import FairQueue
from webhook.serve.http.mutate import LARGE
from webhook.serve.transport import accept
from webhook.serve.transport.budget import Limits

if TYPE_CHECKING:
    from tests.integration.serving import Certificates

#: The beginning of a ClientHello.
HELLO = bytes.fromhex("16030100c8010000c40303")
COST = 1 << 20


@pytest.fixture
def small(tls: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """Run a server whose listeners accept four connections from one address."""
    for name in listener.LIMITS:
        limits = Limits(connection=COST, in_all=6 * COST, per_address=4 * COST)
        monkeypatch.setitem(listener.LIMITS, name, limits)
    with Running(tls, fabrics(tmp_path)) as running:
        yield running


def _dial(running: Running | Process, name: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.ports[name]), 60)


def _closed(connection: socket.socket) -> bool:
    """Wait for data or the end of a connection, and return whether it ended."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_hundreds_at_once_are_served(process: Process) -> None:
    """API servers behind one address may open hundreds of connections at once: all get answers."""
    body = review()
    request = b"POST /mutate HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    with ExitStack() as stack:
        dialed = []
        for _ in range(400):  # all are open before the first request
            raw = _dial(process, "mutate")
            tls = process.tls.client.wrap_socket(raw, server_hostname="localhost")
            dialed.append(stack.enter_context(tls))
        for client in dialed:
            client.sendall(request)
        assert Counter(client.recv(12) for client in dialed) == {b"HTTP/1.1 200": 400}


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("mutate", b""),
        ("mutate", HELLO),
        ("preview", b""),
        ("preview", HELLO),
        ("health", b""),
        ("health", b"GET /hea"),
    ],
)
def test_the_longest_silent_make_room(small: Running, name: str, start: bytes) -> None:
    """A full listener closes the connections that were silent longest, and serves the newcomer."""
    with ExitStack() as stack:
        idle = [stack.enter_context(_dial(small, name)) for _ in range(6)]
        for client in idle:
            with suppress(OSError):  # the first may be closed already
                client.sendall(start)
        assert all(map(_closed, idle[:2]))
        assert small.get("/healthz").status == 200
        assert small.post(review()).status == 200


def test_requests_that_wait_for_a_turn_make_room(
    small: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two addresses with large requests do not fill the listener, however long these wait."""
    waiting: list[str] = []

    @asynccontextmanager
    async def endless(_queue: FairQueue, client: str, *_: float, **__: str) -> AsyncIterator[None]:
        waiting.append(client)
        await asyncio.Event().wait()
        yield

    monkeypatch.setattr(FairQueue, "turn", endless)
    body = review().ljust(LARGE + 1)
    request = b"POST /mutate HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    with ExitStack() as stack:
        for number in range(6):
            source = f"127.0.0.{2 + number % 2}", 0
            port = small.ports["mutate"]
            raw = socket.create_connection(("127.0.0.1", port), 60, source_address=source)
            with suppress(OSError):  # a full listener closes it
                tls = small.tls.client.wrap_socket(raw, server_hostname="localhost")
                stack.enter_context(tls).sendall(request)
        until(lambda: len(waiting) > 4)  # as many as fit
        assert small.post(review()).status == 200


def test_a_flood_of_the_other_ports_leaves_the_probes_alone(small: Running) -> None:
    """Each listener has its own budget."""
    before = small.get("/metrics")
    with ExitStack() as stack:
        for name in ("mutate", "preview"):
            for _ in range(20):
                stack.enter_context(_dial(small, name))
        assert small.get("/healthz").status == before.status == 200
        until(
            lambda: (
                small.metric('rdma_webhook_connections{listener="mutate"}') == 4
                and small.metric(
                    'rdma_webhook_connections_closed_total{listener="mutate",reason="crowded"}'
                )
                == 16
            )
        )


def test_a_connection_in_use_stays(small: Running) -> None:
    """A connection in use outlives idle connections."""
    used = small.connect()
    with ExitStack() as stack, closing(used):
        idle = [stack.enter_context(_dial(small, "mutate")) for _ in range(3)]
        send(used, review(), "/mutate")
        opened = used.sock
        late = stack.enter_context(_dial(small, "mutate"))
        assert _closed(idle[0])
        assert send(used, review(), "/mutate").status == 200
        assert used.sock is opened
        late.setblocking(False)
        with pytest.raises(BlockingIOError):
            late.recv(1)


def test_a_body_counts_as_it_arrives(small: Running) -> None:
    """A large body displaces the oldest connections; one over the whole budget is ended itself."""
    body = b" " * (5 * COST)
    with _dial(small, "preview") as idle:
        with suppress(OSError):
            small.post(body, "/preview")
        assert _closed(idle)
    assert small.post(review()).status == 200


def test_a_handshake_has_a_time_limit(
    tls: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handshake that takes too long is ended without an answer, and counted."""
    monkeypatch.setattr(accept, "HANDSHAKE_SECONDS", 0.2)
    ended = 'rdma_webhook_connections_closed_total{listener="mutate",reason="handshake"}'
    with Running(tls, fabrics(tmp_path)) as running, _dial(running, "mutate") as half:
        half.sendall(HELLO)
        assert _closed(half)
        until(lambda: running.metric(ended) == 1)


@pytest.mark.parametrize("name", ["health", "mutate"])
def test_a_client_that_does_not_read_is_cut_off(
    tls: Certificates, tmp_path: Path, name: str
) -> None:
    """A client that does not read its answers is disconnected after a time."""
    ended = f'rdma_webhook_connections_closed_total{{listener="{name}",reason="unread"}}'
    body = review()
    request = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
    with Running(tls, fabrics(tmp_path), request_seconds=1.0) as running:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        client.connect(("127.0.0.1", running.ports[name]))
        if name == "mutate":
            client = running.tls.client.wrap_socket(client, server_hostname="localhost")
            request = b"POST /mutate HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body

        def ask_on() -> bool:
            with suppress(OSError):
                client.sendall(request)
            return running.metric(ended) == 1  # the server answers this after the request above

        with closing(client):
            client.settimeout(0.01)
            until(ask_on)


def test_nothing_stays_of_a_connection_that_ended(server: Running) -> None:
    """No object of a closed connection waits for the garbage collector's rare full collections."""

    def count() -> int:
        return sum(
            type(instance).__module__
            in {
                "webhook.serve.transport.connection",
                "webhook.serve.transport.accept",
                "webhook.serve.listener",
            }
            for instance in gc.get_objects()
        )

    def half() -> None:
        with _dial(server, "mutate") as client:
            client.sendall(HELLO)

    def cut() -> None:
        connection = server.connect()
        connection.putrequest("POST", "/mutate")
        connection.putheader("Content-Length", "100000")
        connection.endheaders()
        connection.send(b"x" * 1000)
        connection.close()

    gc.collect()
    until(lambda: server.metric('rdma_webhook_connections{listener="mutate"}') in {None, 0})
    before = count()
    gc.disable()
    try:
        for _ in range(20):
            server.post(review())
            half()
            cut()
        until(lambda: server.metric('rdma_webhook_connections{listener="mutate"}') == 0)
        assert count() - before < 10
    finally:
        gc.enable()


def test_without_descriptors_the_longest_make_room(process: Process) -> None:
    """Out of descriptors, the server neither spins nor stops: new clients wait a little longer."""
    open_files = len(list(Path(f"/proc/{process.process.pid}/fd").iterdir()))
    resource.prlimit(process.process.pid, resource.RLIMIT_NOFILE, (open_files + 8, open_files + 8))
    with ExitStack() as stack:
        for _ in range(30):
            stack.enter_context(_dial(process, "mutate"))
        assert process.post(review()).status == 200
