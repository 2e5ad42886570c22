"""The webhooks, each a process on the node, next to the API server.

Ours is the real `rdma-webhook serve` with certificates from files. All use the same Python,
libraries and certificate, and are called at an address; behind a Service, calls of all of them
would take the same time longer.
"""

from __future__ import annotations

import base64
import json
import socket
import ssl
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.cluster import counts
from tests.benchmarks.cluster.modes import FASTAPI, NOOP, OURS, RAW, Document, Mode
from tests.benchmarks.reviews import review
from tests.cluster.cluster import Cluster
from tests.cluster.namespaces import INSIDE

_ANSWERS = Path(__file__).with_name("answers.py")


def start_ours(cluster: Cluster, files: Path) -> None:
    """Start our webhook with the folder's `fabrics.yaml`, `facts.json`, `tls.crt` and `tls.key`."""
    inside = _inside(cluster, files)
    argv = [
        str(Path(sys.executable).with_name("rdma-webhook")),
        "serve",
        f"--config={inside / 'fabrics.yaml'}",
        f"--facts={inside / 'facts.json'}",
        f"--host={cluster.network.gateway}",
        f"--tls-cert={inside / 'tls.crt'}",
        f"--tls-key={inside / 'tls.key'}",
    ]
    started = cluster.start("rdma-webhook", argv)
    until(lambda: counts.ours(cluster, "readyz") is not None, started.tail)


def start_others(cluster: Cluster, files: Path) -> None:
    """Start the other webhooks; the patching ones answer with the folder's `patch.json`."""
    inside = _inside(cluster, files)
    for mode in (NOOP, RAW, FASTAPI):
        address = (cluster.network.gateway, str(mode.port))
        program = [sys.executable, "-P", str(_ANSWERS), mode.key, *address]
        given = [f"{inside}/patch.json"] if mode.same_patch else []
        argv = [*program, f"{inside}/tls.crt", f"{inside}/tls.key", *given]
        started = cluster.start(f"webhook-{mode.key}", argv)
        until(lambda mode=mode: _listens(cluster, mode), started.tail)  # type: ignore[misc]


def our_patch(cluster: Cluster, files: Path, pod: Document) -> list[Document]:
    """Return our webhook's patch for a pod in its namespace; the folder's `ca.crt` is trusted."""
    body = review(pod)
    body["request"]["namespace"] = OURS.namespace
    trusted = ssl.create_default_context(cafile=files / "ca.crt")
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusted)
    )
    url = f"https://{cluster.network.gateway}:{OURS.port}{OURS.path}"
    json_only = {"Content-Type": "application/json"}
    with opener.open(urllib.request.Request(url, json.dumps(body).encode(), json_only)) as answer:
        response = json.load(answer)["response"]
    patch: list[Document] = json.loads(base64.b64decode(response["patch"]))
    return patch


def until(
    condition: Callable[[], bool], log: Callable[[], str] = str, seconds: float = 60.0
) -> None:
    """Wait for a condition; TimeoutError, with a log, if it takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:.0f} s\n{log()}")
        time.sleep(0.2)


def _inside(cluster: Cluster, files: Path) -> Path:
    """Return the node's path of a folder in the cluster's directory."""
    return INSIDE / files.relative_to(cluster.directory)


def _listens(cluster: Cluster, mode: Mode) -> bool:
    try:
        with socket.create_connection((cluster.network.gateway, mode.port), timeout=1):
            return True
    except OSError:
        return False
