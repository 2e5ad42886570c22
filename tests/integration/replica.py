"""Replicas that manage their own certificates, each in a process, outside the cluster."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any, Self

from tests.integration.serving import fabrics
from tests.waiting import PATIENCE, until

_ROOT = Path(__file__).parents[2]
#: Seconds for an answer, which an idle machine gives in a fraction of one.
_SECONDS = 60.0
#: The webhook, with the clock of its certificates set wrong.
WRONG_CLOCK = """\
import sys
from datetime import timedelta
from certs.clock import Clock
right, wrong = Clock.now, timedelta(seconds=int(sys.argv.pop(1)))
Clock.now = lambda self: right(self) + wrong
from webhook.cli import main
sys.exit(main())
"""


class Replica:
    """`rdma-webhook serve` as the manifests start it, but with a kubeconfig, on free ports."""

    def __init__(
        self,
        kubeconfig: Path,
        folder: Path,
        namespace: str,
        *flags: str,
        host: str = "127.0.0.1",
        clock: int = 0,
    ) -> None:
        """Prepare the command; the replica's clock is `clock` seconds ahead."""
        folder.mkdir(exist_ok=True)
        self._host = host
        self._log = folder / "log"
        self._command = [
            sys.executable, *(("-c", WRONG_CLOCK, str(clock)) if clock else ("-m", "webhook")),
            "serve", "-c", str(fabrics(folder)),
            "--kubeconfig", str(kubeconfig), "--namespace", namespace,
            "--host", host, "--port", "0", "--preview-port", "0", "--health-port", "0",
            "--drain-seconds", "0", "--watch", "off", *flags,
        ]  # fmt: skip

    def launch(self) -> None:
        """Start the process without waiting for anything."""
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(self._command, cwd=_ROOT, stdout=log, stderr=log)

    def wait_for_ports(self) -> None:
        """Wait until its ports are known."""
        until(lambda: bool(self.lines("serving")))
        self.ports: dict[str, int] = self.lines("serving")[0]["ports"]

    def end(self) -> None:
        """Stop it as the kubelet does."""
        self.process.send_signal(signal.SIGTERM)
        try:
            assert self.process.wait(PATIENCE) == 0, self._log.read_text()
        finally:
            self.process.kill()

    def __enter__(self) -> Self:
        self.launch()
        self.wait_for_ports()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def lines(self, message: str) -> list[dict[str, Any]]:
        """Return the log's lines with this message."""
        lines = self._log.read_text().splitlines(keepends=True)
        entries = [json.loads(line) for line in lines if line.endswith("\n")]
        return [line for line in entries if line["msg"] == message]

    def ready(self) -> tuple[int, str]:
        """Get `/readyz`; return status and answer."""
        return self.get("/readyz")

    def get(self, path: str) -> tuple[int, str]:
        """Get a path as the kubelet does; return status and answer."""
        with socket.create_connection((self._host, self.ports["health"]), _SECONDS) as raw:
            raw.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: raw.recv(4096), b"")).decode()
        return int(answer.split()[1]), answer

    def handshake(self, bundle: str, name: str) -> list[str]:
        """Do a TLS handshake as the API server does: by the Service's name, trusting only `bundle`.

        Returns the names in the certificate; ssl.SSLError if it is not trusted.
        """
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.load_verify_locations(cadata=b64decode(bundle).decode())
        with (
            socket.create_connection((self._host, self.ports["mutate"]), _SECONDS) as raw,
            client.wrap_socket(raw, server_hostname=name) as tls,
        ):
            certificate: Any = tls.getpeercert()
            return [name for _, name in certificate["subjectAltName"]]
