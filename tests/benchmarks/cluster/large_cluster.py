"""A replica in a large cluster: its start, its memory, and what nodes cost those who create pods.

The API server and etcd are real, and hold 10,000 Nodes, which no kubelet runs, and 10,000
Namespaces. Controller manager and scheduler are frozen, so that they do not work on these. The
replica is a process beside the API server: its identity is the shipped ServiceAccount, with its
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
from tests.benchmarks.decide import FABRICS, Row
from tests.benchmarks.facts import MEMORY
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
MANY = 10_000
_KEPT = 'rdma_webhook_facts_objects{resource="nodes"}'
_WAITED = 'rdma_webhook_namespace_waits_total{came="false"}'
#: The priority of the replica and its clients, on a machine that others use; see sched(7).
_PRIORITY = 10
_LIST = "/api/v1/nodes?limit=10"
#: Loads of a replica at rest, and as many while nodes change.
_LOADS = 4


@dataclass
class Turn:
    """What one process has shown: seconds, milliseconds (99th percentiles), and MB."""

    ready: float
    listed: float
    listing: list[float]
    rest: list[float]
    events: list[float]
    #: Events per second that the API server took.
    rates: list[float]
    resident: float
    proportional: float

    @property
    def list_ratio(self) -> float:
        """The 99th percentile during the first list, divided by that at rest."""
        return median(self.listing) / median(self.rest)

    @property
    def event_ratio(self) -> float:
        """The same for events; each load is divided by the one at rest before it."""
        return median(one / rest for one, rest in zip(self.events, self.rest, strict=True))


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


def measure_large(turns: int, many: int, *, realtime: bool) -> LargeFigures:
    """Fill a cluster, and start a replica in it for each turn."""
    binary("vegeta")  # built before anything runs
    with running() as cluster, ExitStack() as frozen:
        kubeconfig = _identity(cluster)
        for program in ("kube-controller-manager", "kube-scheduler"):
            frozen.enter_context(cluster.processes.frozen(program))
        with progress.step(f"creating {many:,} Nodes and {many:,} Namespaces"):
            took = create(cluster, nodes(many)), create(cluster, namespaces(many))
        size = len(json.dumps(send(cluster, "GET", "/api/v1/nodes/gpu-0").object))
        token = Token(cluster)
        token.take()
        before = counts.queued(cluster), counts.lists(cluster)
        measured, after = [], before
        for number in range(turns):
            with progress.step(f"replica {number + 1} of {turns}"):
                measured.append(_turn(cluster, kubeconfig, many, token.use, realtime=realtime))
            if not number:
                after = counts.queued(cluster), counts.lists(cluster)
        queued, lists = (_more(*pair) for pair in zip(before, after, strict=True))
    return LargeFigures(*took, size, measured, queued, lists, token)


def _identity(cluster: Cluster) -> Path:
    """Give the shipped ServiceAccount its rights; return a kubeconfig with a token of it."""
    base = ROOT / "manifests" / "base"
    for file in ("namespace", "serviceaccount", "rbac", "flowschema"):
        cluster.kubectl("apply", f"--filename={base / f'{file}.yaml'}")
    asked = ("create", "token", NAME, f"--namespace={NAME}", "--duration=24h")
    token = cluster.kubectl(*asked).strip()
    where = {
        "server": server(cluster.network),
        "certificate-authority": str(cluster.directory / "pki" / "ca.crt"),
    }
    written = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": where}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    kubeconfig = cluster.directory / "replica.kubeconfig"
    kubeconfig.write_text(json.dumps(written))
    return kubeconfig


def _turn(
    cluster: Cluster, kubeconfig: Path, many: int, between: Callable[[], None], *, realtime: bool
) -> Turn:
    """Start a replica, and call it during its first list, at rest, and while nodes change."""
    folder = cluster.directory / f"replica-{time.monotonic_ns()}"
    folder.mkdir()
    tls, config = certificates(folder), fabrics(folder, FABRICS)
    ca = folder / "ca.crt"
    ca.write_bytes(tls.ca.certificate)
    changes = NodeChanges(cluster, folder, many)
    given: dict[str, Any] = {"kubeconfig": str(kubeconfig)}
    with _priority(realtime=realtime):
        began = time.monotonic()
        with Process(tls, config, folder / "log", os.environ, **given) as replica:
            ready = time.monotonic() - began
            load(replica, ca)  # what a process does only once is not measured
            listing = [*_while_it_lists(replica, ca)]
            assert listing, "the list ended before it was measured"
            until(lambda: (replica.metric(_KEPT) or 0) >= many)
            listed = time.monotonic() - began
            rest, events, rates = [], [], []
            for _ in range(_LOADS):
                between()
                rest.append(load(replica, ca).p99)
                with changes.going_on() as rate:
                    events.append(load(replica, ca).p99)
                rates.append(rate())
            between()
            waited = replica.metric(_WAITED)
            assert not waited, f"{waited:g} calls waited for a namespace: they measure that wait"
            memory = replica.memory() * 1.048576
            proportional = _proportional(replica.process.pid)
    return Turn(ready, listed, listing, rest, events, rates, memory, proportional)


def _while_it_lists(replica: Process, ca: Path) -> Iterator[float]:
    """Call `/mutate` again and again, and yield the figures from before the list was whole."""
    while True:
        found = load(replica, ca).p99
        if replica.metric(_KEPT):
            return
        yield found


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


def _more(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return by how much counters have grown, the largest first."""
    grown = {key: many - before.get(key, 0) for key, many in after.items()}
    return dict(
        sorted(((key, many) for key, many in grown.items() if many), key=lambda one: -one[1])
    )


def large_rows(figures: LargeFigures, many: int) -> list[Row]:
    """Return the rows of the table."""
    turns = figures.turns
    asked = f"/mutate at {PER_SECOND}/s, p99"
    rest, listing, events, rate = (
        median(one for turn in turns for one in getattr(turn, name))
        for name in ("rest", "listing", "events", "rates")
    )
    resident = max(turn.resident for turn in turns)
    proportional = max(turn.proportional for turn in turns)
    what = f"{many:,} Nodes and {many:,} Namespaces"
    return [
        Row(
            f"creating {many:,} Nodes of {figures.size / 1000:.0f} kB / {many:,} Namespaces",
            f"{figures.nodes:.0f} / {figures.namespaces:.0f} s",
            "none set",
            met=True,
        ),
        _seconds("start to ready", [turn.ready for turn in turns]),
        _seconds("start to the end of the first list of nodes", [turn.listed for turn in turns]),
        _ratio(
            f"{asked}, first list / at rest ({listing:.1f} / {rest:.1f} ms)",
            [turn.list_ratio for turn in turns],
        ),
        _ratio(
            f"{asked}, {rate:.0f} changes of nodes a second / at rest"
            f" ({events:.1f} / {rest:.1f} ms)",
            [turn.event_ratio for turn in turns],
        ),
        Row(
            f"memory, {what}: resident, and its proportional share",
            f"{resident:.0f}, {proportional:.0f} MB",
            f"<= {MEMORY:.0f} MB",
            resident <= MEMORY,
        ),
        _told("requests in the first turn by FlowSchema", figures.queued),
        _told("lists of nodes in the first turn, answered by", figures.lists),
        _told(
            "a token to continue the list, after so many seconds",
            {f"{seconds} s": code for seconds, code in figures.token.tried.items()},
        ),
    ]


def _seconds(what: str, found: list[float]) -> Row:
    told = ", ".join(f"{one:.1f}" for one in found)
    return Row(what, f"{told} s", "none set", met=True)


def _ratio(what: str, found: list[float]) -> Row:
    ratio = median(found)
    told = ", ".join(f"{one:.2f}" for one in found)
    return Row(what, told, f"<= {GOAL:g}", ratio <= GOAL)


def stolen() -> tuple[int, int]:
    """Return the time that the hypervisor kept from the machine, and all time; see proc_stat(5)."""
    times = [int(one) for one in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return times[7], sum(times)


def _told(what: str, found: Mapping[str, int]) -> Row:
    return Row(
        what, ", ".join(f"{key}: {many}" for key, many in found.items()), "none set", met=True
    )
