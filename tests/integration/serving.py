"""Start servers, and send them requests as an API server does."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest
import uvloop

from certs.issue import issue_ca, issue_leaf
from certs.pem import KeyPair
from tests.waiting import PATIENCE, until
from webhook.serve.server import ServeOptions, WebhookServer

_HOUR = timedelta(hours=1)
#: The name at which an API server calls the webhook.
SERVICE_NAME = "rdma-webhook.rdma-webhook.svc"
UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
SECRET = "hunter2-is-the-password"
FABRICS = """\
apiVersion: rdma.lab/v1alpha1
kind: FabricConfiguration
spec:
  fabrics:
  - name: ib
    match: {gpuResources: [nvidia.com/gpu]}
    resources: [{name: rdma/hca}]
    linkLayer: InfiniBand
    rateGbps: 100
    hcas: [mlx5_0]
"""
#: A timeout that no preview reaches, however busy the machine is.
_PREVIEW_SECONDS = 120.0
#: As that timeout, the time limit of a validation; and a priority with which the worker gets
#: processor time.
_LIMITS = {
    "webhook.serve.http.validate.SECONDS": 120.0,
    "webhook.serve.worker_supervisor.NICEST": 1,
}
#: The program of a separate process; its log line "serving" has the ports chosen for 0.
_PROGRAM = """\
import json, pkgutil, sys
from pathlib import Path
from webhook.serve.server import ServeOptions, serve
given = json.loads(sys.argv[1])
for limit, value in given.pop("limits").items():
    module, _, name = limit.rpartition(".")
    setattr(pkgutil.resolve_name(module), name, value)
files = {key: Path(given.pop(key)) for key in ("config", "tls_cert", "tls_key")}
sys.exit(serve(ServeOptions(**files, **given)))
"""
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """A CA, and files with a leaf for the loopback."""

    ca: KeyPair
    cert: Path
    key: Path

    @property
    def client(self) -> ssl.SSLContext:
        """The TLS context of a client that trusts the CA."""
        return ssl.create_default_context(cadata=self.ca.certificate.decode())


def certificates(folder: Path, lifetime: timedelta = _HOUR) -> Certificates:
    """Issue a CA and a leaf, as cert-manager would mount them."""
    ca = issue_ca()
    issued = Certificates(ca=ca, cert=folder / "tls.crt", key=folder / "tls.key")
    renew(issued, lifetime)
    return issued


def renew(issued: Certificates, lifetime: timedelta = _HOUR) -> KeyPair:
    """Write a new leaf from the same CA."""
    leaf = issue_leaf(issued.ca, ["localhost", SERVICE_NAME], ["127.0.0.1"], lifetime)
    issued.cert.write_bytes(leaf.certificate)
    issued.key.write_bytes(leaf.key)
    return leaf


def fabrics(folder: Path, text: str = FABRICS) -> Path:
    """Write a fabrics file as the kubelet mounts a ConfigMap: through a link to a link."""
    mount(folder, text)
    (folder / "fabrics.yaml").symlink_to("..data/fabrics.yaml")
    return folder / "fabrics.yaml"


def mount(folder: Path, text: str) -> None:
    """Change the mounted ConfigMap as the kubelet does: a new directory, and ..data renamed."""
    version = folder / f"..{time.monotonic_ns()}"
    version.mkdir()
    (version / "fabrics.yaml").write_text(text)
    (folder / "..data_tmp").symlink_to(version.name)
    (folder / "..data_tmp").rename(folder / "..data")


def pod(**changes: Any) -> dict[str, Any]:
    """Make a pod that requests RDMA and contains a secret."""
    container = {
        "name": "trainer",
        "env": [{"name": "PASSWORD", "value": SECRET}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "trainer-", "annotations": {"rdma.lab/enable": "true"}},
        "spec": {"containers": [container]},
        **changes,
    }


def review(manifest: Any = None, **request: Any) -> bytes:
    """Write the AdmissionReview for the creation of a pod."""
    fields = {
        "uid": UID,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": "lab",
        "object": manifest or pod(),
        **request,
    }
    document = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": fields}
    return json.dumps(document).encode()


class Reply(NamedTuple):
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    @property
    def response(self) -> Any:
        """The response of an AdmissionReview."""
        return json.loads(self.body)["response"]


class _Server:
    """Sends requests to a running server, in this process or another."""

    tls: Certificates
    ports: Mapping[str, int]

    def connect(self, name: str = "mutate") -> http.client.HTTPSConnection:
        """Open a connection that stays open."""
        port = self.ports[name]
        return http.client.HTTPSConnection("127.0.0.1", port, context=self.tls.client, timeout=180)

    def post(self, body: Any, path: str = "/mutate?timeout=5s", **headers: str) -> Reply:
        """Post a body on a new connection."""
        name = "preview" if path.startswith("/preview") else "mutate"
        connection = self.connect(name)
        try:
            return send(connection, body, path, **headers)
        finally:
            connection.close()

    def get(self, path: str) -> Reply:
        """Read from the health listener."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["health"], timeout=60)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return Reply(answer.status, dict(answer.headers), answer.read())
        finally:
            connection.close()

    def metric(self, sample: str) -> float | None:
        """Return the value of a sample, named with its labels as in `/metrics`; None if missing."""
        for line in self.get("/metrics").text.splitlines():
            if line.startswith(f"{sample} "):
                return float(line.rpartition(" ")[2])
        return None


def send(connection: http.client.HTTPConnection, body: Any, path: str, **headers: str) -> Reply:
    """Post a body on a connection, and leave it open."""
    given = {"Content-Type": "application/json"}
    given.update((name.replace("_", "-"), value) for name, value in headers.items())
    connection.request("POST", path, body, given)
    answer = connection.getresponse()
    return Reply(answer.status, dict(answer.headers), answer.read())


class Running(_Server):
    """A server in a thread of this process, on free ports."""

    def __init__(self, tls: Certificates, config: Path | None, **options: Any) -> None:
        self.tls = tls
        self.config = config
        given = {
            "poll_seconds": 0.1, "drain_seconds": 0.0, "log_level": "error",
            "preview_seconds": _PREVIEW_SECONDS, **options,
        }  # fmt: skip
        self._server = WebhookServer(
            ServeOptions(
                config=config, tls_cert=tls.cert, tls_key=tls.key, host="127.0.0.1",
                port=0, preview_port=0, health_port=0, **given,
            )
        )  # fmt: skip
        self.ports = self._server.ports
        self._thread = threading.Thread(target=self._run)
        self._patch = pytest.MonkeyPatch()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._server.run())

    def __enter__(self) -> Self:
        for limit, value in _LIMITS.items():
            self._patch.setattr(limit, value)
        self._thread.start()
        until(lambda: self.get("/healthz").status == 200)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        self._patch.undo()

    def stop(self) -> None:
        """Stop the server, as a first signal does."""
        self._server.stop()


class Process(_Server):
    """A server in its own process, on free ports; its log is a file."""

    def __init__(
        self, tls: Certificates, config: Path, log: Path, environment: Mapping[str, str],
        **options: Any,
    ) -> None:  # fmt: skip
        self.tls = tls
        self.config = config
        self._log = log
        given = {
            "config": str(config), "tls_cert": str(tls.cert), "tls_key": str(tls.key),
            "host": "127.0.0.1", "port": 0, "preview_port": 0, "health_port": 0,
            "drain_seconds": 0.0, "preview_seconds": _PREVIEW_SECONDS, "limits": _LIMITS,
            **options,
        }  # fmt: skip
        self._command = [sys.executable, "-c", _PROGRAM, json.dumps(given)]
        self._environment = dict(environment)

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                self._command, cwd=_ROOT, env=self._environment, stdout=log, stderr=log
            )
        until(lambda: self._serving() is not None)
        ports = self._serving()
        assert ports is not None
        self.ports = ports
        until(lambda: self.get("/readyz").status == 200)
        #: Seconds of processor time from the start of the process until it was ready.
        self.took = _processor_seconds(self.process.pid)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def lines(self) -> list[dict[str, Any]]:
        """Read the log; every line must be JSON, except one that is being written."""
        lines = self._log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def memory(self) -> float:
        """Return the resident memory in MiB."""
        resident = self.metric("process_resident_memory_bytes")
        assert resident is not None
        return resident / (1 << 20)

    def _serving(self) -> dict[str, int] | None:
        assert self.process.poll() is None, self._log.read_text()
        for line in self._log.read_text().splitlines():
            if '"serving"' in line and line.endswith("}"):
                ports: dict[str, int] = json.loads(line)["ports"]
                return ports
        return None


def _processor_seconds(pid: int) -> float:
    """Return the processor time of a process (proc_pid_stat(5): utime and stime, in ticks)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
