"""Limits on everything but bodies, on each port: the client gets an answer that names them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.integration.serving import Running, review
from webhook.serve.transport.connection import BESIDE_BODY, FIELDS, PIPELINED

PATHS = {"mutate": b"/mutate", "preview": b"/preview", "health": b"/healthz"}
_FIELD = b"X-A: "


@contextmanager
def _dialed(server: Running, name: str) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.ports[name]), 20) as raw:
        if name == "health":
            yield raw
            return
        with server.tls.client.wrap_socket(raw, server_hostname="localhost") as tls:
            yield tls


def _answers(server: Running, name: str, *pieces: bytes) -> bytes:
    """Send pieces on a connection, and return all that arrives until the server closes it."""
    with _dialed(server, name) as client:
        received = b""
        with suppress(OSError):  # the server may close it meanwhile
            for piece in pieces:
                client.sendall(piece)
        with suppress(OSError):
            while chunk := client.recv(1 << 16):
                received += chunk
        return received


def _codes(answers: bytes) -> list[int]:
    return [int(part[:3]) for part in answers.split(b"HTTP/1.1 ")[1:]]


def _head(name: str, size: int, *fields: bytes) -> bytes:
    """Make a request head of `size` bytes."""
    lines = [b"GET %s HTTP/1.1" % PATHS[name], b"Host: a", *fields]
    overhead = len(b"\r\n".join(lines)) + 6 + len(_FIELD)
    return b"\r\n".join([*lines, _FIELD + b"y" * (size - overhead), b"", b""])


LAST = b"Connection: close"


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize(("excess", "refused"), [(0, False), (1, True)])
def test_head_is_bounded_to_the_byte(
    server: Running, name: str, excess: int, refused: bool
) -> None:
    """The limit is exact to the byte, even for a head that arrives in one piece."""
    head = _head(name, BESIDE_BODY + excess, LAST)
    (code,) = _codes(_answers(server, name, head))

    assert len(head) == BESIDE_BODY + excess
    assert (code == 431) is refused


@pytest.mark.parametrize("name", PATHS)
def test_head_without_an_end_is_cut_off(server: Running, name: str) -> None:
    """The connection ends as soon as the head is too large, not when the head ends."""
    start = _head(name, 60_000)[:-4]
    answer = _answers(server, name, start, b"y" * 6_000)

    assert _codes(answer) == [431]
    assert answer.endswith(
        b"head, trailers and chunk sizes must have fewer than 65536 bytes and 100 fields\n"
    )


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize(("count", "refused"), [(FIELDS, False), (FIELDS + 1, True)])
def test_fields_are_counted(server: Running, name: str, count: int, refused: bool) -> None:
    """The number of fields is limited: a field of four bytes takes thirty times as much memory."""
    fields = b"Connection: close\r\n" + b"a:\r\n" * (count - 1)
    (code,) = _codes(_answers(server, name, b"GET %s HTTP/1.1\r\n%b\r\n" % (PATHS[name], fields)))

    assert (code == 431) is refused


_CHUNKED = b"POST %s HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
_ENDLESS = {
    "trailers": (b"1\r\na\r\n0\r\n", b"a:\r\n"),
    "one trailer": (b"1\r\na\r\n0\r\nA:", b"a" * 100),
    "chunk extensions": (b"", b"1;" + b"e" * 100 + b"\r\na\r\n"),
    "one chunk extension": (b"1;", b"e" * 100),
    "small chunks": (b"", b"1\r\na\r\n"),
}


@pytest.mark.parametrize("name", ["preview", "health"])
@pytest.mark.parametrize("kind", _ENDLESS)
def test_framing_of_a_body_is_bounded(server: Running, name: str, kind: str) -> None:
    """Trailers, chunk extensions and chunk sizes count like the head."""
    start, repeated = _ENDLESS[kind]
    pieces = (_CHUNKED % PATHS[name] + start, *[repeated * (10_000 // len(repeated))] * 20)
    (code,) = _codes(_answers(server, name, *pieces))

    # The health listener rejects the method at once, or first finds that the limit is exceeded.
    assert code in ({431} if name == "preview" else {405, 431})


def test_mutate_takes_no_chunks(server: Running) -> None:
    """`/mutate` reads no body without a length, since the API server always sends one."""
    request = _CHUNKED % b"/mutate" + b"1\r\na\r\n" * 1000

    assert _codes(_answers(server, "mutate", request)) == [411]


def _post(*fields: bytes) -> bytes:
    body = review()
    lines = [b"POST /mutate HTTP/1.1", b"Host: a", b"Content-Length: %d" % len(body), *fields]
    return b"\r\n".join([*lines, b"", body])


def test_pipelined_requests_are_answered_in_turn(server: Running) -> None:
    """A few pipelined requests are answered in order; an invalid one is rejected in its turn."""
    usual = _post()
    large = _head("mutate", BESIDE_BODY + 1)

    assert _codes(_answers(server, "mutate", usual * 2 + _post(LAST))) == [200, 200, 200]
    assert _codes(_answers(server, "mutate", usual * 2 + large)) == [200, 200, 431]
    assert _codes(_answers(server, "mutate", usual + b"\x00\r\n\r\n")) == [200, 400]


def test_pipelined_requests_are_bounded(server: Running) -> None:
    """Waiting requests take memory: those within a limit are answered, and the connection ends."""
    answers = _codes(_answers(server, "mutate", _post() * 200))

    assert answers == [200] * (PIPELINED + 1) + [431]
