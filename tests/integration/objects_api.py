"""An API server with two objects, over HTTP."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from tests.integration.kubeconfig import KUBECONFIG
from tests.unit.certs.objects import Objects


class ApiServer:
    """Serves `Objects` over HTTP, and records the requests."""

    def __init__(self, folder: Path) -> None:
        self.objects = Objects()
        self.asked: list[tuple[str, str, str | None]] = []
        #: If set, the answer to every request, as (status, body).
        self.instead: tuple[int, bytes] | None = None
        server = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or b"{}")
                server.asked.append((self.command, self.path, self.headers.get("Content-Type")))
                status, answer = server.instead or server.answer(self.command, self.path, body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = do_PUT = do_PATCH = answer  # noqa: N815 -- http.server's names

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.kubeconfig = folder / "config"
        self.kubeconfig.write_text(KUBECONFIG % self._server.server_address[1])

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        """Answer as an API server does, with an object or a Status."""
        path, _, query = path.partition("?")
        if "dryRun=All" in query:  # a replica checks the policy that guards it
            return 403, b'{"kind": "Status", "reason": "Forbidden", "message": "guarded"}'
        if method == "POST" and not self.objects.create(path, body):
            return 409, b'{"kind": "Status", "reason": "AlreadyExists", "message": "it exists"}'
        if method == "PUT" and not self.objects.replace(path, body):
            return 409, b'{"kind": "Status", "reason": "Conflict", "message": "changed"}'
        if method == "PATCH" and not self.objects.apply(path, body):
            return 409, b'{"kind": "Status", "reason": "Conflict", "message": "changed"}'
        stored = body if method == "POST" else self.objects.read(path)
        if stored is None:
            return 404, b'{"kind": "Status", "reason": "NotFound", "message": "not found"}'
        return 200, json.dumps(stored).encode()

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,)).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
