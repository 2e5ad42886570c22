"""An API server over HTTP that lists and watches the objects of a cluster in memory.

It also has single objects by path. Its rules on what is forbidden stand in for RBAC and policies.
"""

from __future__ import annotations

import json
import queue
import re
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.integration.kubeconfig import KUBECONFIG
from tests.unit.kube.cluster import Cluster
from webhook.kube.api import StatusError


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, api: LiveApi) -> None:
        self.api = api
        self.open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, *request: Any) -> None:
        """Print no error of a connection that a client or the test has cut."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(*request)

    def cut(self) -> None:
        """Stop the server, and cut all its connections."""
        self.shutdown()
        self.server_close()
        for connection in list(self.open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.open.add(self.request)

    def finish(self) -> None:
        self.server.open.discard(self.request)
        super().finish()

    def do_GET(self) -> None:
        """Answer a list or a watch."""
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        try:
            if "watch" in query:
                self._stream(url.path, query)
            elif url.path in self.server.api.objects:
                self._answer_object(url.path)
            else:
                self._answer(200, self.server.api.cluster.get(url.path, query))
        except StatusError as error:
            self._answer(error.code, {"kind": "Status", "message": str(error)})

    def _write(self) -> None:
        """Answer a write; only an object that is replaced is stored."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        api, path = self.server.api, urlsplit(self.path).path
        if any(re.search(rule, f"{self.command} {self.path}") for rule in api.forbidden):
            self._answer(403, {"kind": "Status", "message": "it is forbidden"})
        elif self.command != "PUT":
            self._answer(200, body)
        else:
            api.objects[path] = api.objects[path] and body
            self._answer_object(path)

    do_PATCH = do_POST = do_PUT = _write  # noqa: N815 -- http.server's names

    def _answer_object(self, path: str) -> None:
        stored = self.server.api.objects[path]
        if stored is None:
            self._answer(404, {"kind": "Status", "message": "not found"})
        else:
            self._answer(200, stored)

    def _stream(self, path: str, query: dict[str, str]) -> None:
        events: Iterable[Any] = self.server.api.cluster.stream(path, query, 0.0)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with suppress(OSError, queue.Empty):  # the client has gone
            for event in events:
                raw = event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))
            self.wfile.write(b"0\r\n\r\n")

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.close_connection = self.server.api.cuts_answers
        self.wfile.write(raw[: len(raw) // 2] if self.close_connection else raw)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class LiveApi:
    """Serves a cluster, always on the same port, even after an outage."""

    def __init__(self, folder: Path, cluster: Cluster | None = None) -> None:
        self.cluster = cluster or Cluster()
        #: Single objects by path; None for one that does not exist.
        self.objects: dict[str, dict[str, Any] | None] = {}
        #: Patterns of "METHOD path?query" that are answered with 403: by default, what the
        #: webhook's account tries in dry runs.
        self.forbidden = ["dryRun=All"]
        #: Whether the connection breaks in the middle of each answer.
        self.cuts_answers = False
        self._server = _Server(0, self)
        self._port = self._server.server_address[1]
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(KUBECONFIG % self._port)

    def _serve(self) -> None:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @contextmanager
    def serving(self) -> Iterator[LiveApi]:
        """Answer requests during the block."""
        self._serve()
        try:
            yield self
        finally:
            self._server.cut()

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Cut the open connections, and refuse new ones during the block."""
        self._server.cut()
        yield
        self._server = _Server(self._port, self)
        self._serve()
