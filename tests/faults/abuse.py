"""Malicious clients, at a replica's own address."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from tests.integration.serving import pod, review

PORT = 8443
#: Bytes below the limit of 8 MiB, in a body that also stays below the limit of 400,000 values.
LARGE = int(7.9 * (1 << 20))
_HELLO = bytes.fromhex("16030100c8010000c40303")  # the beginning of a ClientHello


@dataclass
class Abused:
    """The outcome of the abuse."""

    #: The number of connections, or of requests by status code.
    counts: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return ", ".join(f"{count} {kind}" for kind, count in sorted(self.counts.items()))


def shaken(address: str) -> ssl.SSLSocket:
    """Connect and do a TLS handshake, without verifying the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    raw = socket.create_connection((address, PORT), 30)
    return context.wrap_socket(raw)


@contextmanager
def idle(address: str, count: int) -> Iterator[Abused]:
    """Keep connections open that are silent after the handshake."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(shaken(address))
        yield Abused(Counter({"connections": count}))


@contextmanager
def half_open(address: str, count: int) -> Iterator[Abused]:
    """Keep connections open that begin a handshake and do not continue."""
    with ExitStack() as stack:
        for _ in range(count):
            raw = stack.enter_context(socket.create_connection((address, PORT), 30))
            raw.sendall(_HELLO)
        yield Abused(Counter({"connections": count}))


@contextmanager
def slow(address: str, count: int) -> Iterator[Abused]:
    """Send requests at one byte a second, half of them in the head and half in the body.

    A connection that is cut off is opened again.
    """
    abused = Abused(Counter({"connections": count}))

    def drip(stop: threading.Event) -> None:
        while not stop.wait(1):
            for number, connection in enumerate(sockets):
                try:
                    connection.sendall(b"a")
                except OSError:  # the replica has cut it off
                    connection.close()
                    abused.counts["cut off"] += 1
                    sockets[number] = _begun(address, number)

    sockets = [_begun(address, number) for number in range(count)]
    try:
        with _meanwhile(drip):
            yield abused
    finally:
        for connection in sockets:
            connection.close()


def _begun(address: str, number: int) -> ssl.SSLSocket:
    head = b"POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    begun = shaken(address)
    begun.sendall(head + (b"Content-Length: 1000000\r\n\r\n" if number % 2 else b"X-A: "))
    return begun


@contextmanager
def large(address: str, count: int) -> Iterator[Abused]:
    """Send reviews of 7.9 MiB, one after another on each of `count` connections."""
    body = review(_large_pod())
    assert LARGE - (1 << 16) < len(body) <= LARGE
    with _posting(address, count, body, 1.0) as abused:
        yield abused


@contextmanager
def crowd(address: str, count: int) -> Iterator[Abused]:
    """Keep `count` typical reviews in flight."""
    with _posting(address, count, review(), 0.0) as abused:
        yield abused


@contextmanager
def _posting(address: str, count: int, body: bytes, pause: float) -> Iterator[Abused]:
    abused, lock = Abused(), threading.Lock()

    def post(stop: threading.Event) -> None:
        connection = http.client.HTTPConnection(address)
        connection.sock = shaken(address)
        while not stop.is_set():
            connection.request("POST", "/mutate", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            allowed = json.loads(answer.read())["response"]["allowed"]
            with lock:
                abused.counts[f"answered {answer.status}{'' if allowed else ', denied'}"] += 1
            stop.wait(pause)
        connection.close()

    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(_meanwhile(post))
        yield abused


@contextmanager
def _meanwhile(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run a thread until the end of the block, and raise its exception there."""
    stop = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work(stop)
        except BaseException as error:  # noqa: BLE001 -- raised below
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()
    if failed:
        raise failed[0]


def _large_pod() -> object:
    """Return an opted-in pod with as many variables as fit, which is the most work to decide."""
    manifest = pod()
    (container,) = manifest["spec"]["containers"]
    overhead = len(review(manifest))
    per_variable = len(json.dumps(_variable(0))) + 2
    container["env"] += [_variable(number) for number in range((LARGE - overhead) // per_variable)]
    return manifest


def _variable(number: int) -> dict[str, str]:
    return {"name": f"V{number:09}", "value": f"{number:028}"}
