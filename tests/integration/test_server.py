"""The server over TLS, as the API server, operators and users see it."""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import jsonpatch
import pytest
from prometheus_client.parser import text_string_to_metric_families

from certs.issue import issue_ca
from tests.integration.serving import UID, Running, fabrics, pod, review, send
from tests.waiting import until
from webhook.serve.options import ServeOptions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.serving import Certificates


def test_pod_is_patched(server: Running) -> None:
    """A review over HTTPS comes back with a patch that applies."""
    answer = server.post(review())
    patch = json.loads(base64.b64decode(answer.response["patch"]))
    patched = jsonpatch.apply_patch(pod(), patch)

    assert (answer.status, answer.response["uid"], answer.response["allowed"]) == (200, UID, True)
    assert patched["spec"]["containers"][0]["resources"]["limits"]["rdma/hca"] == "1"


def test_connection_stays_open(server: Running) -> None:
    """The API server keeps its connections; each answer leaves them open."""
    connection = server.connect()
    answers = [send(connection, review(), "/mutate") for _ in range(3)]
    opened = connection.sock

    assert [answer.status for answer in answers] == [200, 200, 200]
    assert all("Connection" not in answer.headers for answer in answers)
    assert opened is connection.sock
    connection.close()


def test_keep_alive_is_longer_than_the_clients() -> None:
    """Go closes an idle connection after 90 s; a server that closes it earlier loses requests."""
    assert ServeOptions().idle_seconds > 90


def test_refusal_leaves_the_connection_usable(server: Running) -> None:
    """A body that was rejected unread is discarded, and the next request is answered."""
    connection = server.connect()
    large = send(connection, b"x" * (10 << 20), "/mutate")
    after = send(connection, review(), "/mutate")
    connection.close()

    assert (large.status, after.status) == (413, 200)
    assert large.text == "the body is larger than 8388608 bytes\n"


def test_chunked_bodies_are_capped_too(server: Running) -> None:
    """A preview's body without a length is counted as it arrives; `/mutate` accepts none."""
    body = json.dumps(pod()).encode()

    assert server.post(iter([b"x" * (1 << 20)] * 9), "/preview").status == 413
    assert server.post(iter([body[:100], body[100:]]), "/preview").status == 200
    assert server.post(iter([review()])).status == 411


def test_client_without_the_ca_does_not_trust_us(server: Running) -> None:
    """A client that does not have the server's CA does not trust its certificate."""
    stranger = ssl.create_default_context(cadata=issue_ca().certificate.decode())
    connection = http.client.HTTPSConnection(
        "127.0.0.1", server.ports["mutate"], context=stranger, timeout=60
    )

    with pytest.raises(ssl.SSLCertVerificationError):
        connection.request("GET", "/")


def spoken(server: Running, listener: str, client: ssl.SSLContext) -> str | None:
    """Return the TLS version of a handshake; None if it is refused."""
    with (
        suppress(ssl.SSLError),
        socket.create_connection(("127.0.0.1", server.ports[listener])) as raw,
        client.wrap_socket(raw, server_hostname="localhost") as tls,
    ):
        return tls.version()
    return None


@pytest.mark.parametrize("listener", ["mutate", "preview"])
def test_only_tls_1_3(server: Running, listener: str) -> None:
    """All its suites have forward secrecy, and only its first messages are not encrypted."""
    client = server.tls.client
    assert spoken(server, listener, client) == "TLSv1.3"
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    assert spoken(server, listener, client) is None


@pytest.mark.parametrize("listener", ["mutate", "preview"])
@pytest.mark.parametrize(
    ("group", "accepted"),
    [("prime256v1", True), ("ffdhe8192", False), ("ffdhe2048", False), ("secp521r1", False)],
)
def test_groups(server: Running, listener: str, group: str, accepted: bool) -> None:
    """A handshake with ffdhe8192 would stop the server for a tenth of a second."""
    client = server.tls.client
    client.set_ecdh_curve(group)
    assert (spoken(server, listener, client) is not None) == accepted


def test_plain_http_on_a_tls_port_does_no_harm(server: Running) -> None:
    """Plain HTTP only ends its own connection; other clients get their answers."""
    with socket.create_connection(("127.0.0.1", server.ports["mutate"])) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
        raw.settimeout(60)
        try:
            while raw.recv(1000):
                pass
        except ConnectionResetError:
            pass
    assert server.post(review()).status == 200


def test_metrics_count_requests(server: Running) -> None:
    """A scrape can be parsed, and each request increments its counter."""
    name = 'rdma_webhook_requests_total{code="200",endpoint="mutate"}'
    before = server.metric(name) or 0
    server.post(review())
    until(lambda: server.metric(name) == before + 1)
    families = {
        family.name for family in text_string_to_metric_families(server.get("/metrics").text)
    }

    assert {
        "rdma_webhook_requests",
        "rdma_webhook_request_duration_seconds",
        "rdma_webhook_decisions",
        "rdma_webhook_mutations",
        "rdma_webhook_config_loads",
        "rdma_webhook_certificate_not_after_timestamp_seconds",
    } <= families


def test_ready_and_alive(server: Running) -> None:
    """Both probes answer over plain HTTP, readiness with a line for each check."""
    ready = server.get("/readyz")

    assert (server.get("/healthz").status, ready.status) == (200, 200)
    assert re.search(r"\[\+\] configuration: load 1, config [0-9a-f]{12} \(ib\)\n", ready.text)


def test_preview_over_https(server: Running) -> None:
    """The same server answers previews, as text if the client requests it."""
    body = json.dumps(pod()).encode()
    answer = server.post(body, "/preview", Accept="text/plain")

    assert (answer.status, "ipc-lock" in answer.text) == (200, True)


def test_slow_clients_are_cut_off(tls: Certificates, tmp_path: Path) -> None:
    """An unfinished head or body gets a 408; a silent connection stays open.

    Go's HTTP client may keep a connection for later before its first request. The time limit is
    long enough to begin all three on a busy machine.
    """
    body = b"POST /mutate HTTP/1.1\r\nContent-Length: 10\r\n\r\n12345"
    with (
        Running(tls, fabrics(tmp_path), request_seconds=3.0) as server,
        ExitStack() as stack,
    ):
        begun = [stack.enter_context(_begun(server, start)) for start in (b"", b"POST /mut", body)]
        silent, head, cut = begun
        rejected = [client.recv(1000) for client in (head, cut)]
        silent.setblocking(False)
        with pytest.raises(ssl.SSLWantReadError):
            silent.recv(1000)
    assert all(answer.startswith(b"HTTP/1.1 408 ") for answer in rejected)


def test_a_silent_connection_ends_like_an_idle_connection(
    tls: Certificates, tmp_path: Path
) -> None:
    """It is closed after that time limit, without an answer."""
    with (
        Running(tls, fabrics(tmp_path), idle_seconds=1.0) as server,
        _begun(server, b"") as silent,
    ):
        assert silent.recv(1000) == b""


@contextmanager
def _begun(server: Running, start: bytes) -> Iterator[ssl.SSLSocket]:
    """Connect and send the start of a request."""
    with (
        socket.create_connection(("127.0.0.1", server.ports["mutate"])) as raw,
        server.tls.client.wrap_socket(raw, server_hostname="localhost") as client,
    ):
        client.settimeout(60)
        client.sendall(start)
        yield client


def test_a_slow_request_does_not_delay_others(server: Running) -> None:
    """A body that arrives slowly does not delay other requests."""
    connection = server.connect()
    connection.putrequest("POST", "/mutate")
    connection.putheader("Content-Length", str(len(review())))
    connection.endheaders()
    connection.send(review()[:50])
    statuses = [server.post(review()).status for _ in range(3)]
    connection.send(review()[50:])
    slow = connection.getresponse().status
    connection.close()

    assert (statuses, slow) == ([200, 200, 200], 200)
