from __future__ import annotations

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.unit.serve.client import call
from webhook.errors import RequestError
from webhook.serve.http import asgi
from webhook.serve.http.asgi import MAX_BODY_BYTES, BodyReader, DisconnectedError
from webhook.serve.transport.budget import USAGE, Budget, ConnectionUsage, Limits


def _echo(bodies: BodyReader) -> ASGIApp:
    """Make an application that answers with the length of the body."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await bodies.read(dict(scope["headers"]), receive)
        except RequestError as error:
            await asgi.refuse(send, error)
        except DisconnectedError:
            return
        else:
            await asgi.respond(send, 200, str(len(body)).encode())

    return app


@pytest.mark.parametrize(
    ("chunks", "status", "text"),
    [
        ([b""], 200, "0"),
        ([b"12345"], 200, "5"),
        ([b"12", b"34", b"5"], 200, "5"),
        ([b"123456"], 413, "the body is larger than 5 bytes\n"),
        ([b"123", b"456", b"789"], 413, "the body is larger than 5 bytes\n"),
    ],
)
def test_bodies_within_their_limit(chunks: list[bytes], status: int, text: str) -> None:
    """A body is counted as it arrives, whatever length its head declares."""
    answer = call(_echo(BodyReader(limit=5)), "POST", "/", *chunks)

    assert (answer.status, answer.text) == (status, text)


@pytest.mark.parametrize(("length", "status"), [(b"6", 413), (b"5", 200), (b"x", 200)])
def test_declared_length_is_refused_before_anything_is_read(length: bytes, status: int) -> None:
    """If the declared length is too large, the server does not wait for the body."""
    headers = [(b"content-length", length)]

    assert call(_echo(BodyReader(limit=5)), "POST", "/", b"12345", headers=headers).status == status


@pytest.mark.parametrize("chunks", [[None], [b"12", None]])
def test_client_that_leaves_gets_no_answer(chunks: list[bytes | None]) -> None:
    """A request that broke off needs no answer."""
    assert call(_echo(BodyReader()), "POST", "/", *chunks).status == 0


@pytest.mark.parametrize(
    ("client", "address"),
    [
        (None, ""),
        (("192.0.2.1", 5000), "192.0.2.1"),
        (("::ffff:192.0.2.1", 5000), "192.0.2.1"),
        (("2001:db8:0:1:2::3", 5000), "20010db800000001"),
    ],
)
def test_one_host_is_one_address(client: tuple[str, int] | None, address: str) -> None:
    """A host may use a whole IPv6 /64, and with each address it would have another turn."""
    assert asgi.address_of({"type": "http", "client": client}) == address


class Usage(ConnectionUsage):
    """The use of a connection that only counts."""

    def end(self) -> None:
        """Do nothing."""


def test_a_request_that_waits_makes_room() -> None:
    """Only meanwhile; in a program without connections, there is nothing to close."""
    budget = Budget(Limits(connection=1, in_all=10, per_address=10))
    usage = Usage(budget, "192.0.2.1")
    usage.mark_protected()
    with asgi.connection_closable({"extensions": {USAGE: {USAGE: usage}}}):
        assert list(budget.closable) == [usage]
    assert not budget.closable
    with asgi.connection_closable({}):
        pass


def test_limit_takes_what_the_api_server_can_send() -> None:
    """The API server accepts objects of 3 MiB, and a review is larger than its object."""
    assert MAX_BODY_BYTES >= 2 * 3 * 1024 * 1024
