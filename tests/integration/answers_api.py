"""An API server over HTTP or HTTPS with prepared answers; tests/e2e has a real one."""

from __future__ import annotations

import json
import ssl
import threading
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self


class AnswersApi(ThreadingHTTPServer):
    """Answers a path with its object, text or status code, and with 403 if it has none."""

    daemon_threads = True

    def __init__(self, answers: dict[str, Any], certificate: Path | None = None) -> None:
        """Listen on 127.0.0.1; `certificate` is a PEM file with its key, for HTTPS."""
        self.answers = answers
        self.asked: list[str] = []
        self.headers: list[Message] = []
        super().__init__(("127.0.0.1", 0), _Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: AnswersApi

    def do_GET(self) -> None:
        """Answer with an object, a text or a Status."""
        path = self.path.partition("?")[0]
        self.server.asked.append(self.path)
        self.server.headers.append(self.headers)
        answer = self.server.answers.get(path, 403)
        code = answer if isinstance(answer, int) else 200
        if isinstance(answer, int):
            answer = {"kind": "Status", "message": f"cannot get {path}"}
        body = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""
