"""Another team's mutating webhook, which the API server calls before or after ours."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from certs.issue import issue_ca, issue_leaf
from certs.pem import KeyPair
from tests.cluster.cluster import Cluster
from tests.e2e.admission.places import named
from tests.e2e.documents import Document

Ops = list[dict[str, Any]]
#: The webhook's change to a pod: takes the pod, and returns the operations of a JSON patch.
Habit = Callable[[Document], Ops]

#: Names on both sides of `zz-rdma-webhook-test-informed`.
BEFORE, AFTER = "aa-neighbor", "zzz-neighbor"


def limits_memory(pod: Document) -> Ops:
    """Give the first container a memory limit if it has none."""
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    path = "/spec/containers/0/resources/limits/memory"
    return [] if "memory" in limits else [{"op": "add", "path": path, "value": "64Gi"}]


def sets_hca(pod: Document) -> Ops:
    """Set NCCL_IB_HCA in the first container if it is not set."""
    container = pod["spec"]["containers"][0]
    if any(env_var["name"] == "NCCL_IB_HCA" for env_var in container.get("env", [])):
        return []
    variable = {"name": "NCCL_IB_HCA", "value": "mlx5_7"}
    if "env" in container:
        return [{"op": "add", "path": "/spec/containers/0/env/-", "value": variable}]
    return [{"op": "add", "path": "/spec/containers/0/env", "value": [variable]}]


def opts_in(pod: Document) -> Ops:
    """Opt in on behalf of the pod."""
    if "rdma.lab/enable" in pod["metadata"]["annotations"]:
        return []
    return [{"op": "add", "path": "/metadata/annotations/rdma.lab~1enable", "value": "true"}]


@dataclass
class Neighbor:
    """Another team's webhook, in a thread of the test; each test gives it a habit and a name."""

    cluster: Cluster
    ca: KeyPair
    port: int
    habit: Habit = lambda _: []
    #: The namespace whose pods it is called for.
    space: str = field(default_factory=lambda: named("neighbor"))
    #: Seconds that it takes for an answer.
    takes: float = 0.0
    #: Seconds between two moments at which all calls that wait are answered; 0: each by itself.
    period: float = 0.0
    #: For each call of the present registration, in order: the number of operations in the answer.
    answered: list[int] = field(default_factory=list)
    #: The number of registrations so far. Each has its own path, since the API server may call an
    #: earlier one for a while after it was deleted.
    registrations: int = 0

    @contextmanager
    def moved_in(self, name: str, habit: Habit, reinvocation: str) -> Iterator[None]:
        """Register it under this name during the block."""
        self.habit = habit
        self.registrations += 1
        self.answered.clear()
        document = self._configuration(name, reinvocation)
        self.cluster.kubectl("create", "--filename=-", input=json.dumps(document))
        try:
            yield
        finally:
            self.cluster.kubectl("delete", "mutatingwebhookconfiguration", name)

    @property
    def path(self) -> str:
        """The path at which the API server calls the present registration."""
        return f"/{self.registrations}"

    def answer(self, review: Document, path: str) -> Document:
        """Answer an AdmissionReview that was posted to a path."""
        time.sleep(self.takes + _until_next(self.period))
        ops = self.habit(review["request"]["object"]) if path == self.path else []
        if path == self.path:
            self.answered.append(len(ops))
        response = {"uid": review["request"]["uid"], "allowed": True}
        if ops:
            patch = base64.b64encode(json.dumps(ops).encode()).decode()
            response |= {"patchType": "JSONPatch", "patch": patch}
        return {**review, "request": None, "response": response}

    def _configuration(self, name: str, reinvocation: str) -> Document:
        selector = {"kubernetes.io/metadata.name": self.space}
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
        webhook = {
            "name": "neighbor.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {
                "url": f"https://{self.cluster.network.machine}:{self.port}{self.path}",
                "caBundle": base64.b64encode(self.ca.certificate).decode(),
            },
            "rules": [{**rule, "resources": ["pods"]}],
            "namespaceSelector": {"matchLabels": selector},
            "reinvocationPolicy": reinvocation,
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [webhook],
        }


def _until_next(period: float) -> float:
    return period - time.monotonic() % period if period else 0.0


@contextmanager
def running(cluster: Cluster, folder: Path) -> Iterator[Neighbor]:
    """Serve on the address at which the API server reaches this machine."""
    ca = issue_ca()
    leaf = issue_leaf(ca, [], [cluster.network.machine])
    chain = folder / "neighbor.pem"
    chain.write_bytes(leaf.certificate + leaf.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    server = _Server((cluster.network.machine, 0), _Handler)
    # The thread of each connection does its handshake, so that none waits for another's.
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    neighbor = Neighbor(cluster, ca, server.server_port)
    _Handler.neighbor = neighbor
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
    thread.start()
    try:
        yield neighbor
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # the default, five, resets connections of a burst


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # with a handshake for each call, it would be slower than we are
    neighbor: Neighbor

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(self.neighbor.answer(review, urlsplit(self.path).path)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""
