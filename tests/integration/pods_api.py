"""An API server over HTTP whose pods exist in memory only; tests/e2e has real ones."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.integration.kubeconfig import KUBECONFIG
from tests.unit.diagnose.verify.runs.fake_pods import FakePods
from webhook.kube.api import StatusError

PODS = "/api/v1/namespaces/lab/pods"


class PodsApi(ThreadingHTTPServer):
    """Serves pods, and prepared objects for other paths; 403 for the remaining ones."""

    daemon_threads = True

    def __init__(self, pods: FakePods, answers: dict[str, Any], folder: Path) -> None:
        self.pods = pods
        self.answers = answers
        self.asked: list[str] = []
        #: One request at a time: `FakePods` has no lock.
        self.turn = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)
        self.kubeconfig = folder / "config"
        self.kubeconfig.write_text(KUBECONFIG % self.server_address[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def answer(self, method: str, target: str, body: Any) -> Any:
        """Return an object or a text; raise StatusError for another status."""
        path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
        if path in (PODS, "/api/v1/pods"):
            if method == "POST":
                return self.pods.create(body)
            return {"items": self.pods.list(query["labelSelector"][0])}
        if path.startswith(f"{PODS}/"):
            return self._of_pod(method, *path.removeprefix(f"{PODS}/").split("/"))
        if path in self.answers:
            return self.answers[path]
        raise StatusError(403, f"cannot get {path}")

    def _of_pod(self, method: str, name: str, *subresource: str) -> Any:
        if name not in self.pods.pods:
            raise StatusError(404, "not found")
        pod = self.pods.pods[name]
        if method == "DELETE":
            self.pods.delete(pod)
            return pod
        return self.pods.log(name, "perftest") if subresource else pod


class _Handler(BaseHTTPRequestHandler):
    server: PodsApi
    wbufsize = 1 << 16  # one packet for an answer: a second one would wait for an acknowledgement

    def answer(self) -> None:
        """Answer with an object, a text or a Status."""
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        code, answer = 200, None
        with self.server.turn:
            self.server.asked.append(f"{self.command} {self.path}")
            try:
                answer = self.server.answer(self.command, self.path, body)
            except StatusError as error:
                code, answer = error.code, {"kind": "Status", "message": str(error)}
        text = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_DELETE = answer  # noqa: N815 -- http.server's names

    def log_message(self, *_: object) -> None:
        """Log nothing."""
