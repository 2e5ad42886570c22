"""Plain HTTP on the loopback answers this computer and its own page, and nobody else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from starlette.types import Receive, Scope, Send

from tests.unit.serve.client import call
from webhook.serve.http import asgi
from webhook.serve.http.local import FOREIGN, NOT_LOCAL, LocalOnly


async def _answer(_scope: Scope, _receive: Receive, send: Send) -> None:
    await asgi.respond(send, 200, b"answered")


def ask(method: str, *headers: tuple[bytes, bytes]) -> tuple[int, str]:
    """Return the status and the text of the answer to a request with these headers."""
    answer = call(LocalOnly(_answer), method, "/preview", b"body", headers=headers)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    return answer.status, answer.text


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "[::1]"),
        *("127.0.0.1:8081", "localhost:1", "[::1]:65535"),
        "LocalHost:8081",
    ],
)
def test_the_loopback_is_answered(method: str, host: str) -> None:
    """Any port will do: `ssh -L` forwards another one to ours."""
    assert ask(method, (b"host", host.encode())) == (200, "answered")


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [b""],
        [b"evil.example"],
        [b"evil.example:8081"],
        [b"127.0.0.1.evil.example"],
        [b"localhost.evil.example"],
        [b"evil.localhost"],
        [b"localhost."],
        [b"127x0x0x1"],
        [b"127.0.0.1:8081 "],
        [b"127.0.0.1:8081\n"],
        [b"127.0.0.1:123456"],
        [b"127.0.0.1:"],
        [b"user@127.0.0.1"],
        [b"::1"],
        [b"[::2]"],
        [b"10.0.0.1"],
        [b"0.0.0.0"],
        [b"127.0.0.1", b"127.0.0.1"],
        [b"127.0.0.1", b"evil.example"],
    ],
)
def test_other_names_are_refused(method: str, hosts: Sequence[bytes]) -> None:
    """A site whose name resolves to 127.0.0.1 is sent by the browser as the Host."""
    headers = [(b"host", host) for host in hosts]
    assert ask(method, *headers) == (403, f"{NOT_LOCAL}\n")


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8081", "http://127.0.0.1:8081"),
        ("localhost:9000", "http://localhost:9000"),
        ("LOCALHOST:9000", "http://localhost:9000"),
        ("localhost", "HTTP://LOCALHOST"),
    ],
)
def test_the_page_itself_is_answered(method: str, host: str, origin: str) -> None:
    """Its origin is the address at which the browser opened it."""
    assert ask(method, (b"host", host.encode()), (b"origin", origin.encode())) == (200, "answered")


@pytest.mark.parametrize(
    "origin",
    [
        b"http://evil.example",
        b"https://127.0.0.1:8081",
        b"http://127.0.0.1",
        b"http://127.0.0.1:3000",
        b"http://localhost:8081",
        b"null",
        b"",
    ],
)
def test_pages_of_other_origins_are_refused(origin: bytes) -> None:
    """A browser sends them without asking if they look like forms, so they must have no use."""
    own = (b"host", b"127.0.0.1:8081")
    assert ask("POST", own, (b"origin", origin)) == (403, f"{FOREIGN}\n")
    pair = (b"origin", b"http://127.0.0.1:8081"), (b"origin", origin)
    assert ask("POST", own, *pair) == (403, f"{FOREIGN}\n")
