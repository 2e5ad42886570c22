"""Unusual or wrong HTTP at a replica's port: a proper answer, or the end of the connection."""

from __future__ import annotations

import json
import socket
from typing import NamedTuple

from tests.cluster.install import Webhook
from tests.e2e.live.replica import replicas
from tests.faults.abuse import PORT, shaken
from tests.faults.conftest import Figure
from tests.integration.serving import review

_HEAD = b"POST /mutate HTTP/1.1\r\nHost: a\r\n"
_JSON = b"Content-Type: application/json\r\n"
_LAST = b"Connection: close\r\n"


def _with_length(body: bytes, headers: bytes) -> bytes:
    return _HEAD + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body


def _chunked(body: bytes, headers: bytes) -> bytes:
    pieces = [body[start : start + 100] for start in range(0, len(body), 100)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return _HEAD + headers + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


class Case(NamedTuple):
    """A request, and the expected answer."""

    sent: bytes
    #: The status code of each answer.
    codes: list[int]


CASES = {
    "three pipelined": Case(
        _with_length(review(uid="1"), _JSON)
        + _with_length(review(uid="2"), _JSON)
        + _with_length(review(uid="3"), _JSON + _LAST),
        [200, 200, 200],
    ),
    "chunked": Case(_chunked(review(uid="1"), _JSON), [411]),
    "chunk size that is none": Case(
        _HEAD + _JSON + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", [400]
    ),
    "text/plain": Case(_with_length(review(), b"Content-Type: text/plain\r\n" + _LAST), [415]),
    "gzip": Case(_with_length(review(), _JSON + b"Content-Encoding: gzip\r\n" + _LAST), [415]),
    "length and chunks": Case(
        _HEAD + _JSON + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [400]
    ),
    "no HTTP": Case(b"\x00\x01 garbage\r\n\r\n", [400]),
}


def test_unusual_http_is_answered(webhook: Webhook, figure: Figure) -> None:
    """Pipelining works, wrong requests get a 4xx, and HTTP without TLS is not served."""
    replica = replicas(webhook)[0]
    lines = _problems(webhook, replica.name)
    actual = {name: _codes(_answers(replica.address, case)) for name, case in CASES.items()}
    assert actual == {name: case.codes for name, case in CASES.items()}
    pipelined = _answers(replica.address, CASES["three pipelined"])
    assert [pipelined.find(b'"uid":"%d"' % number) > 0 for number in (1, 2, 3)] == [True] * 3

    plain = _plain(replica.address)
    assert plain.startswith(b"HTTP/1.1 400") or not plain.startswith(b"HTTP/")
    assert _problems(webhook, replica.name) == lines
    assert replica.get("/readyz")[0] == 200
    summary = ", ".join(f"{name} {'+'.join(map(str, codes))}" for name, codes in actual.items())
    figure("HTTP that is unusual or wrong", f"{summary}; HTTP on the TLS port: closed; no log line")


def _answers(address: str, case: Case) -> bytes:
    """Send the case in one piece, and read until the replica closes the connection."""
    with shaken(address) as connection:
        connection.settimeout(60)
        connection.sendall(case.sent)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def _codes(answers: bytes) -> list[int]:
    return [int(part[:3]) for part in answers.split(b"HTTP/1.1 ")[1:]]


def _plain(address: str) -> bytes:
    """Send HTTP without TLS, and return what arrives before the end."""
    with socket.create_connection((address, PORT), 60) as raw:
        raw.sendall(b"GET /mutate HTTP/1.1\r\nHost: a\r\n\r\n")
        try:
            return b"".join(iter(lambda: raw.recv(1 << 16), b""))
        except ConnectionResetError:
            return b""


def _problems(webhook: Webhook, replica: str) -> int:
    """Return the number of errors in its log."""
    logs = [json.loads(line) for line in webhook.kubectl("logs", replica).splitlines()]
    return sum(line["level"] == "error" for line in logs)
