"""The cost of a replica's nodes: `/mutate` while it reads the first list of 10,000 nodes.

A fake API server in a separate process sends nodes as large as real ones, with the images and
managedFields that nobody keeps. It holds the first page back until the quiet turn is over, so both
turns measure the same process. Each turn calls `/mutate` 100 times a second, whether or not answers
keep up. Memory is measured after the decision cache has been filled.
"""

from __future__ import annotations

import http.client
import json
import os
import tempfile
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from tests.benchmarks import facts
from tests.benchmarks.decide import FABRICS
from tests.benchmarks.figures import Row, figure_text
from tests.benchmarks.steady_load import GOAL, PER_SECOND, load
from tests.benchmarks.workloads import new_pods
from tests.integration.kubeconfig import KUBECONFIG
from tests.integration.serving import Process, certificates, fabrics, send
from tests.waiting import until
from webhook.serve.http.decision_cache import MAX_DECISIONS

NODES = 10_000
#: The goal for a replica that caches as many decisions as it may, in MB.
MEMORY = 120.0
TURNS = 3
NODES_PATH = "/api/v1/nodes"
_NAME = "NAME-OF-THE-NODE"
_STORED_NODES = 'rdma_webhook_facts_objects{resource="nodes"}'
_HITS = "rdma_webhook_decision_cache_hits_total"


class _Turn(NamedTuple):
    """Two 99th percentiles in ms, the seconds that the list took, and memory then, in MiB."""

    quiet: float
    listing: float
    seconds: float
    memory: float


def run() -> list[Row]:
    """Measure the rows of the table that need nodes."""
    with tempfile.TemporaryDirectory() as name:
        turns = [_turn(Path(name)) for _ in range(TURNS)]
    quiet, listing, seconds, memory = (median(column) for column in zip(*turns, strict=True))
    ratio = median(turn.listing / turn.quiet for turn in turns)
    title = f"/mutate at {PER_SECOND}/s, p99, first list of {NODES:,} nodes / at rest"
    figures = f"{listing:.1f} / {quiet:.1f} ms, the list took {seconds:.0f} s"
    megabytes = memory * 1.048576
    memory_title = (
        f"memory, {NODES:,} nodes, {facts.NAMESPACES:,} namespaces as above, "
        f"and {MAX_DECISIONS} cached decisions"
    )
    return [
        Row(f"{title} ({figures})", figure_text(ratio, GOAL), f"<= {GOAL:g}", ratio <= GOAL),
        Row(
            memory_title,
            f"{figure_text(megabytes, MEMORY, 0)} MB",
            f"<= {MEMORY:.0f} MB",
            megabytes <= MEMORY,
        ),
    ]


def _turn(folder: Path) -> _Turn:
    """Start a server, and call it before and during its first list."""
    folder = Path(tempfile.mkdtemp(dir=folder))
    tls, config = certificates(folder), fabrics(folder, FABRICS)
    ca, kubeconfig = folder / "ca.crt", folder / "kubeconfig"
    ca.write_bytes(tls.ca.certificate)
    with facts.api_server(_serve) as port:
        kubeconfig.write_text(KUBECONFIG % port)
        process = Process(tls, config, folder / "log", os.environ, kubeconfig=str(kubeconfig))
        with process as server:
            load(server, ca)  # work that a process does only once is not measured
            quiet = load(server, ca).p99
            assert server.metric(_STORED_NODES) == 0
            began = time.monotonic()
            _go(port)
            listing = load(server, ca).p99
            assert server.metric(_STORED_NODES) == 0, "the list ended before the turn"
            until(lambda: server.metric(_STORED_NODES) == NODES)
            seconds = time.monotonic() - began
            _fill_cache(server)
            return _Turn(quiet, listing, seconds, server.memory())


def _fill_cache(server: Process) -> None:
    """Ask for as many different decisions as are cached, until all come from the cache.

    An index of the latest nodes may still be on its way, and empties the cache.
    """
    pods = list(islice(new_pods(), MAX_DECISIONS))
    until(lambda: _cached(server, pods) == MAX_DECISIONS)


def _cached(server: Process, pods: list[bytes]) -> float:
    """Ask for the decisions on these pods, and return how many came from the cache."""
    before, connection = server.metric(_HITS) or 0, server.connect()
    for body in pods:
        assert send(connection, body, "/mutate?timeout=5s").status == 200
    connection.close()
    return (server.metric(_HITS) or 0) - before


def _go(port: int) -> None:
    """Let the API server send nodes from now on."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/go")
    connection.getresponse().read()
    connection.close()


def _serve(connection: Connection) -> None:
    handler = partial(_Handler, threading.Event(), json.dumps(large_node(_NAME)), facts.pages())
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        connection.send(server.server_address[1])
        server.serve_forever()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, going: threading.Event, node: str, pages: facts.Pages, *args: Any) -> None:
        self._going = going
        self._node = node
        self._pages = pages
        super().__init__(*args)

    def do_GET(self) -> None:
        """Answer a page of a list, or hold a watch open until the client leaves."""
        url = urlsplit(self.path)
        if url.path == "/go":
            self._going.set()
        query = dict(parse_qsl(url.query))
        self.send_response(200)
        if "watch" in query:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.rfile.read()
            return
        body = self._body(url.path, query).encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _body(self, path: str, query: dict[str, str]) -> str:
        first = int(query.get("continue", 0))
        if page := self._pages.get((path.rpartition("/")[2], first)):
            return page.decode()
        if path != NODES_PATH or not self._going.wait(timeout=29):
            return _listed("")
        end = min(first + int(query["limit"]), NODES)
        items = ",".join(self._node.replace(_NAME, f"gpu-{n}") for n in range(first, end))
        return _listed(items, f',"continue":"{end}"' if end < NODES else "")

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def _listed(items: str, after: str = "") -> str:
    return f'{{"metadata":{{"resourceVersion":"1"{after}}},"items":[{items}]}}'


def large_node(name: str) -> dict[str, Any]:
    """Make a Node of some 21 kB, as nodes with GPUs have, most of it images and managedFields."""
    features = {f"feature.node.kubernetes.io/cpu-cpuid.F{n}": "true" for n in range(50)}
    labels = {
        **features,
        "kubernetes.io/hostname": name,
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "topology.kubernetes.io/zone": "a",
    }
    image = "registry.example/team-{0}/train@sha256:{0:064x}"
    images = [
        {"names": [image.format(n), f"registry.example/team-{n}/train:v{n}"], "sizeBytes": 10**9}
        for n in range(50)
    ]
    fields: dict[str, Any] = {f"f:{label}": {} for label in labels}
    managed = {"manager": "nfd-worker", "operation": "Update", "apiVersion": "v1"}
    amounts = {"cpu": "128", "memory": "2Ti", "pods": "110"}
    amounts |= {"nvidia.com/gpu": "8", "rdma/hca": "64"}
    kinds = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    condition = {
        "status": "False",
        "reason": "KubeletHasSufficientMemory",
        "message": "kubelet has it",
    }
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "resourceVersion": "1",
            "labels": labels,
            "annotations": {f"nfd.node.kubernetes.io/{n}": "x" * 400 for n in range(13)},
            "managedFields": [{**managed, "fieldsV1": {"f:metadata": {"f:labels": fields}}}],
        },
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": kind, **condition} for kind in kinds],
            "images": images,
        },
    }


def main() -> None:
    """Print the row."""
    for row in run():
        print(*row)


if __name__ == "__main__":
    main()
