"""Requests of 66 kB from ten addresses, and honest requests meanwhile.

Such a uid or name once ended the worker that checks configurations and makes previews; from ten
addresses, a site could neither change its fabrics nor see a preview.
"""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.integration.serving import Process, pod
from tests.integration.test_validate import lost_workers, review, validated
from webhook.serve.fair_queue import INTERRUPTED
from webhook.serve.http.asgi import MAX_BODY_BYTES

ADDRESSES = [f"127.0.0.{number}" for number in range(1, 11)]
#: Requests of each kind from each address.
EACH = 8
POD = json.dumps(pod()).encode()


class Attack(NamedTuple):
    """A request, its listener, and the status of the answer."""

    listener: str
    request: bytes
    status: int


def _request(path: str, body: bytes, length: int = 0, padding: str = "") -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: a",
        "Content-Type: application/json",
        f"Content-Length: {length or len(body)}",
        f"X-Padding: {padding}",
        "Connection: close",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _review(path: str = "/validate", **fields: str) -> bytes:
    return _request(path, review(**fields))


ATTACKS = {
    "uid": Attack("mutate", _review(uid="u" * 66_000), 400),
    "uid of three bytes": Attack("mutate", _review(uid="\u20ac" * 12_000), 400),
    "name": Attack("mutate", _review(name="n" * 66_000), 200),
    "name of three bytes": Attack("mutate", _review(name="\u20ac" * 12_000), 200),
    "uid of a pod": Attack("mutate", _review("/mutate", uid="u" * 66_000), 400),
    "parameters": Attack(
        "preview", _request(f"/preview?namespace-label=a={'%01' * 20_000}", POD), 414
    ),
    "length": Attack("mutate", _request("/validate", b"", MAX_BODY_BYTES + 1), 413),
    "head": Attack("preview", _request("/preview", POD, padding="x" * 66_000), 431),
}


def _send(process: Process, attack: Attack, address: str) -> int:
    """Send a request from an address; return the status of the answer.

    A server that answers before it has read all may reset the connection.
    """
    place = ("127.0.0.1", process.ports[attack.listener])
    raw = socket.create_connection(place, 120, source_address=(address, 0))
    with process.tls.client.wrap_socket(raw, server_hostname="localhost") as connection:
        try:
            connection.sendall(attack.request)
            return int(connection.recv(64).split()[1])
        except ConnectionError:
            return attack.status


def test_honest_requests_are_answered(process: Process) -> None:
    """Also those from one of the addresses; no worker ends, and every attack gets its answer."""
    assert _honest(process) == [200, 200]
    before = lost_workers(process)
    attacks = [(name, address) for _ in range(EACH) for address in ADDRESSES for name in ATTACKS]
    answers: list[int] = []
    with ThreadPoolExecutor(2 * len(ADDRESSES)) as attackers:
        statuses = [
            (name, attackers.submit(_send, process, ATTACKS[name], address))
            for name, address in attacks
        ]
        while not all(status.done() for _, status in statuses):
            answers += _honest(process)
    assert answers
    assert set(answers) == {200}
    assert {(name, status.result()) for name, status in statuses} == {
        (name, attack.status) for name, attack in ATTACKS.items()
    }
    assert lost_workers(process) == before


def _honest(process: Process) -> list[int]:
    """Validate a configuration and preview a pod, from the first of the addresses.

    On a busy machine, a validation of the attack may interrupt the preview. It is sent again, as
    its answer advises.
    """
    validation = validated(process).status
    while (preview := process.post(POD, "/preview")).text == f"{INTERRUPTED}\n":
        pass
    return [validation, preview.status]
