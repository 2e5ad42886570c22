"""A replica in a large cluster: its start, its memory, and the cost of nodes for `/mutate`.

The API server and etcd are real, and hold 10,000 Nodes, which no kubelet runs, and 10,000
Namespaces. Controller manager and scheduler are frozen, so that they do not work on these. The
replica is a process next to the API server: its identity is the shipped ServiceAccount, with its
rights and its FlowSchema. `/mutate` is called directly, 100 times a second, whether or not answers
keep up: through the API server, its own work on the list of nodes would be measured.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.cluster import counts
from tests.benchmarks.cluster.changing import NodeChanges
from tests.benchmarks.cluster.many_objects import create, namespaces, nodes
from tests.benchmarks.decide import FABRICS
from tests.benchmarks.facts import MEMORY
from tests.benchmarks.figures import Row, figure_text
from tests.benchmarks.steady_load import GOAL, PER_SECOND, load
from tests.cluster import progress
from tests.cluster.binaries import binary
from tests.cluster.cluster import Cluster, running
from tests.cluster.controlplane import server
from tests.cluster.images import ROOT
from tests.cluster.install import NAME
from tests.e2e.wire import send
from tests.integration.serving import Process, certificates, fabrics
from tests.waiting import until

#: Of each kind.
OBJECTS = 10_000
_STORED_NODES = 'rdma_webhook_facts_objects{resource="nodes"}'
_WAITED = 'rdma_webhook_facts_waits_total{arrived="false"}'
#: The priority of the replica and its clients, on a machine that others use; see sched(7).
_PRIORITY = 10
_LIST = "/api/v1/nodes?limit=10"
#: Loads of a replica at rest, and as many while nodes change.
_LOADS = 4


@dataclass
class Turn:
    """The figures of one process: seconds, milliseconds (99th percentiles), and MB."""

    ready: float
    listed: float
    listing: list[float]
    at_rest: list[float]
    events: list[float]
    #: Events per second that the API server took.
    rates: list[float]
    resident: float
    proportional: float

    @property
    def list_ratio(self) -> float:
        """The 99th percentile during the first list, divided by that at rest."""
        return median(self.listing) / median(self.at_rest)

    @property
    def event_ratio(self) -> float:
        """The same for events; each load is divided by the load at rest before it."""
        return median(busy / quiet for busy, quiet in zip(self.events, self.at_rest, strict=True))


@dataclass
class Token:
    """A token with which a list of nodes can be continued, and when that was tried."""

    cluster: Cluster
    value: str = ""
    began: float = field(default_factory=time.monotonic)
    #: Seconds since the token was given → the API server's answer.
    tried: dict[int, int] = field(default_factory=dict)

    def take(self) -> None:
        """Request the first page."""
        self.value = send(self.cluster, "GET", _LIST).object["metadata"]["continue"]
        self.began = time.monotonic()

    def use(self) -> None:
        """Request the second page."""
        code = send(self.cluster, "GET", f"{_LIST}&continue={self.value}").code
        self.tried[round(time.monotonic() - self.began)] = code


@dataclass
class LargeFigures:
    """Everything that was measured."""

    #: Seconds to create the nodes, and the namespaces; bytes of a node as the API server sends it.
    nodes: float
    namespaces: float
    size: int
    turns: list[Turn]
    #: Requests of the webhook in the first turn by FlowSchema, and lists by what answered them.
    queued: Mapping[str, int]
    lists: Mapping[str, int]
    token: Token


def measure_large(turns: int, objects: int, *, realtime: bool) -> LargeFigures:
    """Fill a cluster, and start a replica in it for each turn."""
    binary("vegeta")  # built before anything runs
    with running() as cluster, ExitStack() as frozen:
        kubeconfig = _identity(cluster)
        for program in ("kube-controller-manager", "kube-scheduler"):
            frozen.enter_context(cluster.processes.frozen(program))
        with progress.step(f"creating {objects:,} Nodes and {objects:,} Namespaces"):
            took = create(cluster, nodes(objects)), create(cluster, namespaces(objects))
        size = len(json.dumps(send(cluster, "GET", "/api/v1/nodes/gpu-0").object))
        token = Token(cluster)
        token.take()
        before = counts.queued(cluster), counts.lists(cluster)
        measured, after = [], before
        for number in range(turns):
            with progress.step(f"replica {number + 1} of {turns}"):
                measured.append(_turn(cluster, kubeconfig, objects, token.use, realtime=realtime))
            if not number:
                after = counts.queued(cluster), counts.lists(cluster)
        queued, lists = (_growth(*pair) for pair in zip(before, after, strict=True))
    return LargeFigures(*took, size, measured, queued, lists, token)


def _identity(cluster: Cluster) -> Path:
    """Give the shipped ServiceAccount its rights; return a kubeconfig with a token of it."""
    base = ROOT / "manifests" / "base"
    for file in ("namespace", "serviceaccount", "rbac", "flowschema"):
        cluster.kubectl("apply", f"--filename={base / f'{file}.yaml'}")
    command = ("create", "token", NAME, f"--namespace={NAME}", "--duration=24h")
    token = cluster.kubectl(*command).strip()
    cluster_entry = {
        "server": server(cluster.network),
        "certificate-authority": str(cluster.directory / "pki" / "ca.crt"),
    }
    written = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster_entry}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    kubeconfig = cluster.directory / "replica.kubeconfig"
    kubeconfig.write_text(json.dumps(written))
    return kubeconfig


def _turn(
    cluster: Cluster, kubeconfig: Path, objects: int, between: Callable[[], None], *, realtime: bool
) -> Turn:
    """Start a replica, and call it during its first list, at rest, and while nodes change."""
    folder = cluster.directory / f"replica-{time.monotonic_ns()}"
    folder.mkdir()
    tls, config = certificates(folder), fabrics(folder, FABRICS)
    ca = folder / "ca.crt"
    ca.write_bytes(tls.ca.certificate)
    changes = NodeChanges(cluster, folder, objects)
    given: dict[str, Any] = {"kubeconfig": str(kubeconfig)}
    with _priority(realtime=realtime):
        began = time.monotonic()
        with Process(tls, config, folder / "log", os.environ, **given) as replica:
            ready = time.monotonic() - began
            load(replica, ca)  # work that a process does only once is not measured
            listing = [*_while_it_lists(replica, ca)]
            assert listing, "the list ended before it was measured"
            until(lambda: (replica.metric(_STORED_NODES) or 0) >= objects)
            listed = time.monotonic() - began
            at_rest, events, rates = [], [], []
            for _ in range(_LOADS):
                between()
                at_rest.append(load(replica, ca).p99)
                with changes.going_on() as rate:
                    events.append(load(replica, ca).p99)
                rates.append(rate())
            between()
            waited = replica.metric(_WAITED)
            assert not waited, f"{waited:g} calls waited for a namespace: they measure that wait"
            memory = replica.memory() * 1.048576
            proportional = _proportional(replica.process.pid)
    return Turn(ready, listed, listing, at_rest, events, rates, memory, proportional)


def _while_it_lists(replica: Process, ca: Path) -> Iterator[float]:
    """Call `/mutate` again and again, and yield the figures from before the list was whole."""
    while True:
        p99 = load(replica, ca).p99
        if replica.metric(_STORED_NODES):
            return
        yield p99


@contextmanager
def _priority(*, realtime: bool) -> Iterator[None]:
    """Give real-time priority to the processes that are started here."""
    if not realtime:
        yield
        return
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_PRIORITY))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _proportional(pid: int) -> float:
    """Return the proportional set size of a process in MB; see proc_pid_smaps(5)."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise LookupError(f"process {pid} has no Pss")


def _growth(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return by how much counters have grown, the largest first."""
    grown = {key: count - before.get(key, 0) for key, count in after.items()}
    return dict(
        sorted(((key, count) for key, count in grown.items() if count), key=lambda pair: -pair[1])
    )


def large_rows(figures: LargeFigures, objects: int) -> list[Row]:
    """Return the rows of the table."""
    turns = figures.turns
    title = f"/mutate at {PER_SECOND}/s, p99"
    at_rest, listing, events, rate = (
        median(figure for turn in turns for figure in getattr(turn, name))
        for name in ("at_rest", "listing", "events", "rates")
    )
    resident = max(turn.resident for turn in turns)
    proportional = max(turn.proportional for turn in turns)
    scale = f"{objects:,} Nodes and {objects:,} Namespaces"
    return [
        Row(
            f"creating {objects:,} Nodes of {figures.size / 1000:.0f} kB / {objects:,} Namespaces",
            f"{figures.nodes:.0f} / {figures.namespaces:.0f} s",
        ),
        _seconds("start to ready", [turn.ready for turn in turns]),
        _seconds("start to the end of the first list of nodes", [turn.listed for turn in turns]),
        _ratio(
            f"{title}, first list / at rest ({listing:.1f} / {at_rest:.1f} ms)",
            [turn.list_ratio for turn in turns],
        ),
        _ratio(
            f"{title}, {rate:.0f} changes of nodes a second / at rest"
            f" ({events:.1f} / {at_rest:.1f} ms)",
            [turn.event_ratio for turn in turns],
        ),
        Row(
            f"memory, {scale}: resident, and its proportional share",
            f"{resident:.0f}, {proportional:.0f} MB",
            f"<= {MEMORY:.0f} MB",
            resident <= MEMORY,
        ),
        _counted("requests in the first turn by FlowSchema", figures.queued),
        _counted("lists of nodes in the first turn, answered by", figures.lists),
        _counted(
            "a token to continue the list, after so many seconds",
            {f"{seconds} s": code for seconds, code in figures.token.tried.items()},
        ),
    ]


def _seconds(title: str, figures: list[float]) -> Row:
    text = ", ".join(f"{figure:.1f}" for figure in figures)
    return Row(title, f"{text} s")


def _ratio(title: str, ratios: list[float]) -> Row:
    ratio = median(ratios)
    text = ", ".join(figure_text(figure, GOAL) for figure in ratios)
    return Row(title, text, f"<= {GOAL:g}", ratio <= GOAL)


def stolen() -> tuple[int, int]:
    """Return the time that the hypervisor kept from the machine, and all time; see proc_stat(5)."""
    times = [int(ticks) for ticks in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return times[7], sum(times)


def _counted(title: str, amounts: Mapping[str, int]) -> Row:
    return Row(title, ", ".join(f"{key}: {amount}" for key, amount in amounts.items()))
