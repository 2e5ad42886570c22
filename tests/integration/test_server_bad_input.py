"""Hostile and broken clients: each request gets an answer, and memory does not grow."""

from __future__ import annotations

import json
import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.integration.serving import SECRET, UID, pod, review, send
from tests.waiting import until

if TYPE_CHECKING:
    from tests.integration.serving import Process, Running


def _object(text: bytes) -> bytes:
    return review(object="HERE").replace(b'"HERE"', text)


#: Body, and text that the answer must contain: an AdmissionReview with the uid here, a 4xx below.
REVIEWS: dict[str, tuple[bytes, str]] = {
    "truncated": (review()[:-30], "the body is not JSON: unexpected end of data"),
    "v1beta1": (review().replace(b".io/v1", b".io/v1beta1"), "apiVersion is a string"),
    "nan": (_object(b"NaN"), "the body is not JSON: unexpected character"),
    "deep": (_object(b"[" * 50_000 + b"]" * 50_000), "the body is not JSON: depth limit"),
    "utf-8": (_object(b'{"metadata": {"name": "\xff\xfe"}}'), "the body is not UTF-8: byte"),
    "surrogate": (_object(b'{"metadata": {"name": "\\ud800"}}'), "the body is not JSON:"),
    "list": (_object(b"[]"), "request.object is a list"),
}
REFUSED: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 400, "the body is not JSON"),
    "no json": (b"hello", 400, "the body is not JSON"),
    "form": (b"a=b&c=d", 400, "the body is not JSON"),
    "no review": (json.dumps(pod()).encode(), 400, 'apiVersion is a string ("v1")'),
    "no uid": (review(uid=None), 400, "request.uid is missing"),
    "utf-16": (review().decode().encode("utf-16"), 400, "the body is not UTF-8: byte 0"),
    "10 MiB": (b" " * (10 << 20), 413, "the body is larger than 8388608 bytes"),
    "deep": (b"[" * 100_000, 400, "the body is not JSON: depth limit exceeded"),
    "many": (_object(b"[" + b"[]," * 1_000_000 + b"[]]"), 413, "the body contains more than"),
}
PASSED: dict[str, tuple[bytes, str]] = {
    "delete": (review(operation="DELETE", object=None), "request.operation is 'DELETE'"),
    "update": (review(operation="UPDATE"), "request.operation is 'UPDATE'"),
    "null": (_object(b"null"), "request.object is null"),
    "other kind": (review(kind={"group": "apps", "kind": "ReplicaSet"}), "request.kind is"),
    "subresource": (review(subResource="resize"), "request.subResource is 'resize'"),
}


@pytest.mark.parametrize("case", REVIEWS)
def test_bad_review_is_answered_with_its_uid(server: Running, case: str) -> None:
    """An invalid review is answered by one that rejects it, with a message that names the place."""
    body, message = REVIEWS[case]
    answer = server.post(body)

    assert (answer.status, answer.response["uid"], answer.response["allowed"]) == (200, UID, False)
    assert message in answer.response["status"]["message"]


@pytest.mark.parametrize("case", REFUSED)
def test_other_bodies_are_refused(server: Running, case: str) -> None:
    """A body that is not a review gets a 4xx with one line of text."""
    body, status, message = REFUSED[case]
    answer = server.post(body)

    assert answer.status == status
    assert message.replace('("v1")', "('v1')") in answer.text


@pytest.mark.parametrize("case", PASSED)
def test_other_requests_pass(server: Running, case: str) -> None:
    """Other requests are allowed unchanged, with a warning: a wrong registration does no harm."""
    body, message = PASSED[case]
    answer = server.post(body)

    assert (answer.status, answer.response["allowed"], "patch" in answer.response) == (
        200,
        True,
        False,
    )
    assert message in answer.response["warnings"][0]


def test_odd_but_valid_reviews_are_decided(server: Running) -> None:
    """Duplicate keys (the last counts) and names in other scripts do not make a review invalid."""
    twice = review().replace(b'"uid": "', b'"uid": "other", "uid": "', 1)
    named = review(pod(metadata={"name": "тренер-训练-\u202e", "annotations": {}}))
    answers = [server.post(body) for body in (twice, named)]

    assert [(answer.status, answer.response["uid"]) for answer in answers] == [
        (200, UID),
        (200, UID),
    ]


def test_garbage_instead_of_http_is_a_400(server: Running) -> None:
    """Bytes that are not HTTP get a 400, and end only their own connection."""
    connection = server.connect()
    connection.connect()
    assert connection.sock is not None
    connection.sock.sendall(b"\x00\x01\x02 garbage\r\n\r\n")
    answer = connection.sock.recv(1000)
    connection.close()

    assert answer.startswith(b"HTTP/1.1 400 ")


def _hostile(process: Process, rounds: int) -> None:
    bodies = [body for body, *_ in (*REVIEWS.values(), *REFUSED.values(), *PASSED.values())]
    connection = process.connect()
    for _ in range(rounds):
        for body in bodies:
            answer = send(connection, body, "/mutate")
            assert answer.status in {200, 400, 413}
    connection.close()


def test_memory_stays_flat(process: Process) -> None:
    """Hundreds of hostile requests leave the process running, and no larger."""
    _hostile(process, 2)
    before = process.memory()
    _hostile(process, 12)

    assert process.memory() - before < 16
    assert process.memory() < 200
    assert process.post(review()).response["allowed"] is True
    assert process.process.poll() is None


def test_log_is_json_without_values(process: Process) -> None:
    """Whatever was sent, each line of the log is JSON, and none contains a value of a pod."""
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    process.post(review(), traceparent=trace)
    for body in (review()[:-30], review(object=[SECRET]), review() + SECRET.encode()):
        process.post(body)
    process.post(json.dumps(pod()).encode(), "/preview")
    assert process.stop() == 0
    lines = process.lines()
    (decided,) = (line for line in lines if line["msg"] == "decided")

    assert (decided["uid"], decided["traceparent"]) == (UID, trace)
    assert SECRET not in json.dumps(lines)


def _hello(name: bytes) -> bytes:
    """Return the first message of a TLS client that asks for this server name."""
    stand_in = "a" * len(name)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=stand_in).do_handshake()
    return outgoing.read().replace(stand_in.encode(), name)


def test_a_server_name_that_is_not_ascii_is_one_line_of_the_log(process: Process) -> None:
    """Python would write its exception in lines that are not JSON, and wait for their reader."""
    for listener in ("mutate", "preview"):
        with socket.create_connection(("127.0.0.1", process.ports[listener]), 60) as client:
            client.sendall(_hello(b"\xff" * 40))
            client.recv(1)

    def ignored() -> int:
        return sum(line["msg"] == "exception ignored" for line in process.lines())

    until(lambda: ignored() == 2)
    assert process.post(review()).status == 200
