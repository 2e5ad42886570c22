"""TLS records with little content, which take time below the limits of HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.integration.serving import Running, pod, review
from tests.integration.tls_client import RecordWriter
from tests.waiting import until
from webhook.serve.transport.tls_limits import BYTES_PER_RECORD, RECORDS

HEAD = b"POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
#: The records of a client's handshake: hello, change_cipher_spec and finished.
HANDSHAKE = 3


def _refused(server: Running, name: str) -> float:
    sample = f'rdma_webhook_connections_closed_total{{listener="{name}",reason="refused"}}'
    return server.metric(sample) or 0


@pytest.mark.parametrize("name", ["mutate", "preview"])
def test_key_updates_without_an_end_are_cut_off(server: Running, name: str, tmp_path: Path) -> None:
    """The limits of HTTP do not see them, since the client need not send a request."""
    before = _refused(server, name)
    writer = RecordWriter(server, name, tmp_path)
    with closing(writer.socket) as client:
        client.sendall(b"".join(writer.key_update() for _ in range(RECORDS - HANDSHAKE)))
        assert server.post(review()).status == 200
        assert _refused(server, name) == before
        client.sendall(b"".join(writer.key_update() for _ in range(RECORDS)))
        until(lambda: _refused(server, name) == before + 1)


def _connect(server: Running) -> ssl.SSLSocket:
    dialed = socket.create_connection(("127.0.0.1", server.ports["mutate"]), 20)
    return server.tls.client.wrap_socket(dialed, server_hostname="localhost")


def _send_pieces(client: ssl.SSLSocket, body: bytes, size: int) -> None:
    """Send a request whose body comes in records of `size` bytes."""
    client.sendall(HEAD % len(body))
    for start in range(0, len(body), size):
        client.sendall(body[start : start + size])


def _status(client: ssl.SSLSocket) -> int:
    answer = http.client.HTTPResponse(client)
    answer.begin()
    answer.read()
    return answer.status


def test_a_body_in_tiny_records_is_cut_off(server: Running) -> None:
    """Each byte of it costs as much as a whole record."""
    before = _refused(server, "mutate")
    with _connect(server) as client:
        with suppress(OSError):
            client.sendall(HEAD % (4 * RECORDS))
            for _ in range(4 * RECORDS):
                client.sendall(b" ")
        until(lambda: _refused(server, "mutate") == before + 1)


def _unread(client: socket.socket) -> int:
    """Return how many bytes are in the kernel's queues between the client and the server."""
    ports = {f"{address[1]:04X}" for address in (client.getpeername(), client.getsockname())}
    octets = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        if {local[-4:], remote[-4:]} == ports:
            octets += sum(int(queue, 16) for queue in queues.split(":"))
    return octets


def test_content_is_no_credit_for_later_records(server: Running) -> None:
    """After a large part of a body, the rest may have no more tiny records than another one."""
    before = _refused(server, "mutate")
    with _connect(server) as client:
        client.sendall(HEAD % (4 * RECORDS * BYTES_PER_RECORD))
        client.sendall(b" " * (2 * RECORDS * BYTES_PER_RECORD))
        until(lambda: _unread(client) == 0)  # else both might arrive in one piece
        with suppress(OSError):
            for _ in range(2 * RECORDS):
                client.sendall(b" ")
        until(lambda: _refused(server, "mutate") == before + 1)


def test_each_request_may_have_some_tiny_records(server: Running) -> None:
    """Programs send a head line by line, or a document as they write it."""
    body = review()
    size = len(body) // (RECORDS - 10) + 1
    with _connect(server) as client:
        for _ in range(3):
            _send_pieces(client, body, size)
            assert _status(client) == 200


def test_large_bodies_may_have_many_records(server: Running) -> None:
    """Go writes records of 1.2 kB at the beginning of a connection."""
    annotations = {"rdma.lab/enable": "true", "note": "x" * (2 * RECORDS * BYTES_PER_RECORD)}
    manifest = pod(metadata={"generateName": "trainer-", "annotations": annotations})
    with _connect(server) as client:
        _send_pieces(
            client, json.dumps(json.loads(review(manifest))).encode(), BYTES_PER_RECORD + 200
        )
        assert _status(client) == 200
