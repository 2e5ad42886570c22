"""Start and memory of a replica that watches a large cluster.

A fake API server in a separate process has prepared all answers, so only the replica's work is
measured: it lists and stores the objects, and then its watches are silent.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.benchmarks.figures import Row, figure_text
from tests.integration.kubeconfig import KUBECONFIG
from tests.integration.serving import Process, certificates, fabrics

NAMESPACES = 10_000
PAGE = 500
STARTS = 5
#: Resource, `continue` → the page of its list.
Pages = dict[tuple[str, int], bytes]
#: Design goals: seconds, and MB.
READY, MEMORY = 2.0, 150.0


def run() -> list[Row]:
    """Measure the rows of the table that need a large cluster."""
    with tempfile.TemporaryDirectory() as folder, api_server(_serve) as port:
        kubeconfig = Path(folder, "kubeconfig")
        kubeconfig.write_text(KUBECONFIG % port)
        tls, config = certificates(Path(folder)), fabrics(Path(folder))
        log = Path(folder, "log")
        given = {"kubeconfig": str(kubeconfig)}
        starts = [_start(Process(tls, config, log, os.environ, **given)) for _ in range(STARTS)]
    seconds, megabytes = (median(start[column] for start in starts) for column in (0, 1))
    scale = f"{NAMESPACES:,} namespaces, each with a LimitRange and a quota"
    return [
        Row(
            f"start to ready, {scale}",
            f"{figure_text(seconds, READY, 1)} s",
            f"<= {READY:.0f} s",
            seconds <= READY,
        ),
        Row(
            f"memory, {scale}",
            f"{figure_text(megabytes, MEMORY, 0)} MB",
            f"<= {MEMORY:.0f} MB",
            megabytes <= MEMORY,
        ),
    ]


def _start(process: Process) -> tuple[float, float]:
    """Return the seconds until a process was ready, and the MB that it used then."""
    begun = time.monotonic()
    with process as server:
        seconds = time.monotonic() - begun
        return seconds, server.memory() * 1.048576  # from MiB


@contextmanager
def api_server(serve: Callable[[Connection], None]) -> Iterator[int]:
    """Run an API server in a separate process, and yield its port, which `serve` sends."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def _serve(connection: Connection) -> None:
    handler = partial(_Handler, pages())
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        connection.send(server.server_address[1])
        server.serve_forever()


#: The list of any other kind.
_EMPTY_LIST = b'{"metadata":{"resourceVersion":"1"},"items":[]}'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, pages: Pages, *args: Any) -> None:
        self._pages = pages
        super().__init__(*args)

    def do_GET(self) -> None:
        """Answer a page of a list, or hold a watch open until the client leaves."""
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        self.send_response(200)
        if "watch" in query:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.rfile.read()
            return
        key = url.path.rpartition("/")[2], int(query.get("continue", 0))
        body = self._pages.get(key, _EMPTY_LIST)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def pages() -> Pages:
    """Write every page that can be requested, by resource and `continue`."""
    kinds = {"namespaces": labeled_namespace, "limitranges": _limit_range, "resourcequotas": _quota}
    written: Pages = {}
    for resource, make in kinds.items():
        for first in range(0, NAMESPACES, PAGE):
            meta = {"resourceVersion": "1"}
            if first + PAGE < NAMESPACES:
                meta["continue"] = str(first + PAGE)
            items = [make(namespace_name(number)) for number in range(first, first + PAGE)]
            written[resource, first] = json.dumps({"metadata": meta, "items": items}).encode()
    return written


def namespace_name(number: int) -> str:
    """Name a namespace; the first has the pods of all benchmarks."""
    return f"team-{number}" if number else "lab"


def labeled_namespace(name: str) -> dict[str, Any]:
    """Make a Namespace as sites have it, with annotations that the webhook drops."""
    labels = {
        "kubernetes.io/metadata.name": name,
        "pod-security.kubernetes.io/enforce": "baseline",
        "rdma.lab/enable": "true",
    }
    applied = {"example.org/owner": f"group of {name}", "example.org/note": "n" * 1500}
    meta = {"name": name, "uid": name, "resourceVersion": "1"}
    return {
        "metadata": {**meta, "labels": labels, "annotations": applied},
        "status": {"phase": "Active"},
    }


def _limit_range(space: str) -> dict[str, Any]:
    limit = {"type": "Container", "max": {"memory": "1Ti"}, "default": {"memory": "1Gi"}}
    return {"metadata": _meta("limits", space), "spec": {"limits": [limit]}}


def _quota(space: str) -> dict[str, Any]:
    hard = {"limits.memory": "1Ti", "requests.nvidia.com/gpu": "64"}
    return {"metadata": _meta("quota", space), "spec": {"hard": hard}, "status": {"hard": hard}}


def _meta(name: str, space: str) -> dict[str, str]:
    return {"name": name, "namespace": space, "uid": f"{space}-{name}", "resourceVersion": "1"}
