"""Anonymous clients cannot make the serving process use 400 MiB, whatever they send.

All attacks go to one process, so that memory that one of them leaves in use counts in the next.
During each attack, honest requests are answered. The documented limit is 450 MiB, for several
attacks at once.
"""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.serving import Process, fabrics, review
from webhook.serve.http.asgi import MAX_BODY_BYTES
from webhook.serve.http.review_body import MAX_OBJECTS, MAX_VALUES

if TYPE_CHECKING:
    from tests.integration.serving import Certificates

#: MiB; the Deployment's limit is 1024, and the process that computes previews needs its share.
LIMIT = 400
HELLO = bytes.fromhex("16030100c8010000c40303")
_HEAD = b"POST /mutate HTTP/1.1\r\nHost: a\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n"


@pytest.fixture(scope="module")
def served(tls: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """Run one process for all attacks of this module."""
    folder = tmp_path_factory.mktemp("memory")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # for the clients' ends
    with Process(tls, fabrics(folder), folder / "log", os.environ) as running:
        yield running
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _peak_memory(process: Process) -> float:
    """Return the peak of resident memory in MiB (proc_pid_status(5): VmHWM)."""
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def _open(served: Process, stack: ExitStack, name: str, *, tls: bool) -> socket.socket | None:
    """Connect; None if the server already refuses connections."""
    with suppress(OSError):
        raw = stack.enter_context(socket.create_connection(("127.0.0.1", served.ports[name]), 20))
        if not tls:
            return raw
        return stack.enter_context(served.tls.client.wrap_socket(raw, server_hostname="localhost"))
    return None


def _flood(
    name: str, count: int, payload: bytes, *, tls: bool = False, times: int = 1
) -> Callable[[Process, ExitStack], None]:
    """Make an attack: each of `count` connections sends `payload` and reads nothing."""

    def attack(served: Process, stack: ExitStack) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        for _ in range(min(count, hard - 1000)):
            connection = _open(served, stack, name, tls=tls)
            if connection is None:
                continue
            connection.settimeout(0.2)  # do not wait for a server that does not read
            with suppress(OSError):
                for _ in range(times):
                    connection.sendall(payload)

    return attack


def _never_read(served: Process, stack: ExitStack) -> None:
    """Request large answers again and again, and read none of them."""
    for _ in range(50):
        connection = _open(served, stack, "health", tls=False)
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            for _ in range(40):
                with suppress(OSError):
                    connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")


def _leave_previews_unread(served: Process, stack: ExitStack) -> None:
    """Request previews that are as large as their pods, and read only the first bytes of each."""
    body = b'{"kind":"Pod","apiVersion":"v1","metadata":{"annotations":{"a":"%b"}},"spec":{}}'
    body %= b"a" * (5 << 20)
    head = b"POST /preview HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
    statuses = []
    for _ in range(8):
        connection = _open(served, stack, "preview", tls=True)
        assert connection is not None
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        connection.sendall(head + body)
        statuses.append(connection.recv(12))
    assert statuses[0].endswith(b"200")
    assert {status[-3:] for status in statuses} <= {
        b"200",
        b"429",
    }  # 429 once the kernel buffers no more


#: A configuration that takes 100 MiB once it is parsed, and its check a while.
_CONFIGURATION = review(
    {
        "metadata": {
            "labels": [{f"\N{GRINNING FACE}{number:020}": 0} for number in range(150_000)]
        },
        "spec": {"fabrics": [{"name": f"{number}", "hcas": ["a"]} for number in range(3000)]},
    },
    kind={"group": "rdma.lab", "version": "v1alpha1", "kind": "FabricConfiguration"},
)


def _validate_at_once(served: Process, stack: ExitStack) -> None:
    """Have several configurations checked at once: they wait for each other."""
    pool = stack.enter_context(ThreadPoolExecutor(5))
    answers = [pool.submit(served.post, _CONFIGURATION, "/validate") for _ in range(5)]
    stack.callback(lambda: [answer.result() for answer in answers])


ATTACKS: dict[str, Callable[[Process, ExitStack], None]] = {
    "trailers": _flood("health", 4, _HEAD + _CHUNKED + b"0\r\n" + b"a:\r\n" * (3 << 20)),
    "chunk extensions": _flood("health", 4, _HEAD + _CHUNKED + b"1;" + b"e" * (12 << 20)),
    "fields": _flood("health", 200, _HEAD + b"a:\r\n" * 15_000),
    "unfinished heads": _flood("health", 5000, _HEAD + b"A: " + b"a" * 60_000),
    "unfinished heads over TLS": _flood("mutate", 300, _HEAD + b"A: " + b"a" * 60_000, tls=True),
    "half-open handshakes": _flood("mutate", 5000, HELLO),
    "half-open handshakes for previews": _flood("preview", 3000, HELLO),
    "silent connections": _flood("mutate", 5000, b""),
    "pipelining": _flood("health", 20, b"GET / HTTP/1.1\r\n\r\n" * 14_000),
    "pipelining over TLS": _flood(
        "mutate", 100, b"GET /%b HTTP/1.1\r\n\r\n" % (b"x" * 6_000), tls=True, times=30
    ),
    "answers that are not read": _never_read,
    "previews that are not read": _leave_previews_unread,
    "pages that are not read": _flood(
        "preview", 800, b"GET /page.js HTTP/1.1\r\n\r\n" * 8, tls=True, times=10
    ),
    "bodies that do not end": _flood(
        "mutate", 150, _HEAD + b"Content-Length: 8000000\r\n\r\n" + b" " * 1_000_000, tls=True
    ),
    "dense configurations": _validate_at_once,
    "previews that do not end": _flood(
        "preview",
        60,
        b"POST /preview HTTP/1.1\r\nContent-Length: 8000000\r\n\r\n" + b" " * 1_000_000,
        tls=True,
    ),
}


def _fill_both_ports(served: Process, stack: ExitStack) -> None:
    """Keep bodies of both ports waiting, and validations and previews at work."""
    for name in ("bodies that do not end", "previews that do not end", "dense configurations"):
        ATTACKS[name](served, stack)


ATTACKS["bodies of both ports, and configurations"] = _fill_both_ports


@pytest.mark.parametrize("name", ATTACKS)
def test_no_flood_fills_the_memory(served: Process, name: str) -> None:
    """During a flood, pods are decided and probes are answered."""
    with ExitStack() as stack:
        ATTACKS[name](served, stack)
        assert served.post(review()).status == 200
        assert served.get("/healthz").status == 200
        assert served.get("/readyz").status == 200
    assert _peak_memory(served) < LIMIT


def _objects(unit: str, count: int) -> bytes:
    """Write a list of `count` units, each with a number in it, within the limit of a body."""
    written = ",".join(unit % number for number in range(count))
    return f"[{written}]".encode()


_WIDE = "\N{GRINNING FACE}"  # makes every character of its string take four bytes
DENSE: dict[str, bytes] = {
    "8 MiB of {},": b"[" + b"{}," * (MAX_BODY_BYTES // 3 - 2) + b"{}]",
    "strings": _objects(f'"{_WIDE}%010d"', MAX_VALUES - 1),
    "objects": _objects(f'{{"{_WIDE}%020d":0}}', MAX_VALUES // 2 - 1),
    "fields": b"{" + _objects(f'"{_WIDE}%06d":""', MAX_VALUES - 2)[1:-1] + b"}",
    "nested": b"[" + b",".join([b'{"a":' * 900 + b"0" + b"}" * 900] * (MAX_OBJECTS // 901)) + b"]",
}


@pytest.mark.parametrize("name", DENSE)
def test_no_body_fills_the_memory(served: Process, name: str) -> None:
    """The densest bodies, next to as many others as the port holds, are rejected without harm."""
    assert len(DENSE[name]) <= MAX_BODY_BYTES
    with ExitStack() as stack:
        ATTACKS["bodies that do not end"](served, stack)
        status = served.post(DENSE[name]).status
    assert status == (413 if name.startswith("8 MiB") else 400)
    assert _peak_memory(served) < LIMIT
