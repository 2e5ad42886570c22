"""Requests per second of `/mutate`, compared with a FastAPI endpoint that only answers.

The same server runs both over TLS, each in a separate process; a third process keeps 16 requests
in flight on open connections. The two are measured in turns, and the result is the median of the
turns' ratios, so that a slow moment of the machine affects both.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import uvloop
from fastapi import Body, FastAPI

from tests.benchmarks.answers import Asking
from tests.benchmarks.decide import FABRICS, TYPICAL, Row
from tests.benchmarks.reviews import pod, review
from webhook.serve.server import ServeOptions, WebhookServer

IN_FLIGHT = 16
SECONDS = 2.0
TURNS = 5
GOAL = 0.75
_ROOT = Path(__file__).parents[2]


def run() -> list[Row]:
    """Measure the rows of the table that need a server."""
    with _server("fastapi") as plain, _server("mutate") as ours:
        turns = [(_rate(*ours), _rate(*plain)) for _ in range(TURNS + 1)][1:]
    ratio = median(mine / theirs for mine, theirs in turns)
    mine, theirs = (median(turn[column] for turn in turns) for column in (0, 1))
    return [
        Row(
            f"/mutate / FastAPI endpoint ({mine:.0f} / {theirs:.0f} requests/s)",
            f"{ratio:.2f}",
            f">= {GOAL}",
            ratio >= GOAL,
        )
    ]


@contextmanager
def _server(role: str) -> Iterator[tuple[str, str]]:
    """Run a server in a separate process; yield its port and the file of its CA."""
    with tempfile.TemporaryDirectory() as folder, Path(folder, "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.serving", "serve", role],
            cwd=_ROOT,
            env={**os.environ, "XDG_STATE_HOME": folder},
            stdout=log,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            port = process.stderr.readline().strip()
            yield port, f"{folder}/rdma-webhook/dev-ca-{port}.crt"
        finally:
            process.terminate()
            process.communicate()


def _rate(port: str, ca: str) -> float:
    """Let a separate process send requests for a while, and return requests per second."""
    command = [sys.executable, "-m", "tests.benchmarks.serving", "load", port, ca]
    done = subprocess.run(command, cwd=_ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout)


def _serve(role: str) -> None:
    def ready(_instructions: str) -> None:
        sys.stderr.write(f"{server.ports['mutate']}\n")
        sys.stderr.flush()

    config = Path(os.environ["XDG_STATE_HOME"], "fabrics.yaml")
    config.write_text(FABRICS)
    options = ServeOptions(
        config=config,
        dev=True,
        port=0,
        preview_port=0,
        health_port=0,
        preview=False,
        announce=ready,
    )
    server = WebhookServer(options)
    if role == "fastapi":
        app = FastAPI()

        @app.post("/mutate")
        async def answer(review: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
            response = {"uid": review["request"]["uid"], "allowed": True}
            return {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": response,
            }

        server._apps["mutate"] = app
    uvloop.run(server.run())


class _Client(Asking):
    """One connection that always has one request in flight."""

    def __init__(self, request: bytes) -> None:
        super().__init__()
        self.answered = 0
        self._request = request

    def on_connection(self) -> None:
        self.send(self._request)

    def on_answer(self) -> None:
        self.answered += 1
        self.send(self._request)


async def _load(port: int, ca: str) -> float:
    body = json.dumps(review(pod(variables=TYPICAL)), separators=(",", ":")).encode()
    head = (
        "POST /mutate?timeout=5s HTTP/1.1\r\nHost: rdma-webhook.rdma-webhook.svc\r\n"
        "User-Agent: kube-apiserver-admission\r\nAccept: application/json, */*\r\n"
        f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n\r\n"
    )
    request = head.encode() + body
    trust = ssl.create_default_context(cafile=ca)
    loop = asyncio.get_running_loop()
    clients = [
        (
            await loop.create_connection(
                lambda: _Client(request), "127.0.0.1", port, ssl=trust, server_hostname="localhost"
            )
        )[1]
        for _ in range(IN_FLIGHT)
    ]
    started, before = time.perf_counter(), sum(client.answered for client in clients)
    await asyncio.sleep(SECONDS)
    answered = sum(client.answered for client in clients) - before
    return answered / (time.perf_counter() - started)


def main(arguments: list[str]) -> None:
    """Run one of the three processes, or print the table."""
    match arguments:
        case ["serve", role]:
            _serve(role)
        case ["load", port, ca]:
            print(uvloop.run(_load(int(port), ca)))
        case _:
            for row in run():
                print(*row)


if __name__ == "__main__":
    main(sys.argv[1:])
