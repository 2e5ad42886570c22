"""Clients whose certificates take long to read, on a server that requires certificates."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests.integration.serving import Certificates, Running, fabrics, review, send
from tests.integration.test_client_certificates import CLIENTS, client_pair
from webhook.serve.transport.tls_limits import HANDSHAKE_BYTES

#: A certificate for a key on a curve whose prime is k * 2^620 + 1, with compressed points: OpenSSL
#: 3.0 needs 160 ms to read it.
SLOW = """\
-----BEGIN CERTIFICATE-----
MIIClTCCAnqgAwIBAgIBBzAKBggqhkjOPQQDAjAMMQowCAYDVQQDDAF4MB4XDTIw
MDEwMTAwMDAwMFoXDTQwMDEwMTAwMDAwMFowDDEKMAgGA1UEAwwBeDCCAiYwggHL
BgcqhkjOPQIBMIIBvgIBATBeBgcqhkjOPQEBAlMIAAAAG7AAAAAAAAAAAAAAAAAA
AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
AAAAAAAAAAAAAAAAAAAAATCBqgRTBKPpPmdfSZjygMGqnTgEi6c9Qx1aqauSpaJO
+y6MPVDTpP1lPN4GGIxh2WRrEoZqdiCHKGADSDra3RQ3AlxRWGX7AQF56/TM2ko/
PJHXbXPSHAAEUwNYlrxLekXl6QRMqY6SamGcy4iZ84N2/GqFjMMNIn2j3j7KQ+6N
YIK1hY2RqACpdEFPGzJLQeg5Kl7RVsi/D5ajtroGyH92Z/QaqgZY8R0YuTRFBFQC
ARfDfvNSigGV3XGC0CQd9lRlL9q6NjaDL+UeTQoS2ayBhCb2PgC4FSqO+CodbvOh
ayOfI46k5YIqRri4+649xNhyyr+aOc2H6A89ZDg3Q76rnnsCUwgAAAAbr///////
/////////////////////////////////////////vKy6/ChzhzlDUjnAemWvhAV
fI6/LIEkzz0Nv2l8bTN1/XvXUOy6zT9JAgEBA1UAAgEXw37zUooBld1xgtAkHfZU
ZS/aujY2gy/lHk0KEtmsgYQm9j4AuBUqjvgqHW7zoWsjnyOOpOWCKka4uPuuPcTY
csq/mjnNh+gPPWQ4N0O+q557MAoGCCqGSM49BAMCAwkAMAYCAQUCAQY=
-----END CERTIFICATE-----
"""
REQUEST = b"POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"


@pytest.fixture
def strict(tls: Certificates, tmp_path: Path) -> Iterator[Running]:
    """Run a server that checks client certificates."""
    (tmp_path / "clients.crt").write_bytes(CLIENTS.certificate)
    with Running(tls, fabrics(tmp_path), client_ca=tmp_path / "clients.crt") as running:
        yield running


def _context(server: Running, folder: Path, extra: str = "") -> ssl.SSLContext:
    """Return the context of a client with a valid certificate and `extra` ones."""
    certificate, key = client_pair(folder, CLIENTS)
    certificate.write_text(certificate.read_text() + extra)
    context = server.tls.client
    context.load_cert_chain(certificate, key)
    return context


def _exchange(server: Running, context: ssl.SSLContext, request: bytes) -> bytes:
    """Return the beginning of the answer to a request; nothing without one."""
    try:
        with (
            socket.create_connection(("127.0.0.1", server.ports["mutate"]), 60) as dialed,
            context.wrap_socket(dialed, server_hostname="localhost") as tls,
        ):
            tls.sendall(request)
            return tls.recv(12)
    except OSError:
        return b""


def test_others_are_answered_while_a_slow_certificate_is_read(
    strict: Running, tmp_path: Path
) -> None:
    """OpenSSL reads certificates before it verifies them, so anybody can send these."""
    slow = _context(strict, tmp_path, 4 * SLOW)
    port, context = strict.ports["mutate"], _context(strict, tmp_path)
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)
    assert send(connection, review(), "/mutate").status == 200
    reading = Thread(target=_exchange, args=(strict, slow, REQUEST % 0))
    reading.start()
    answers = 0
    while reading.is_alive():
        assert send(connection, review(), "/mutate").status == 200
        answers += 1
    connection.close()
    assert answers > 5


def test_many_certificates_are_refused(strict: Running, tmp_path: Path) -> None:
    """Each takes time; the answer to a client that sends fewer shows that these are read."""
    certificate = CLIENTS.certificate.decode()
    size = len(ssl.PEM_cert_to_DER_cert(certificate))
    allowed, too_large = HANDSHAKE_BYTES // size - 5, HANDSHAKE_BYTES // size + 5
    request = REQUEST % 0
    assert _exchange(strict, _context(strict, tmp_path, allowed * certificate), request)
    assert not _exchange(strict, _context(strict, tmp_path, too_large * certificate), request)


def test_a_large_request_may_follow_at_once(strict: Running, tmp_path: Path) -> None:
    """It arrives together with the end of the handshake, and is no part of it."""
    body = review().ljust(10 * HANDSHAKE_BYTES)
    answer = _exchange(strict, _context(strict, tmp_path), REQUEST % len(body) + body)
    assert answer == b"HTTP/1.1 200"
