"""Facts about a cluster, over HTTP; tests/e2e/live has the same with a real API server."""

from __future__ import annotations

import json
import os
import time
from base64 import b64decode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from certs.clock import MAX_PAUSE
from tests.integration.live_api import LiveApi
from tests.integration.serving import (
    Certificates,
    Process,
    Running,
    fabrics,
    pod,
    review,
)
from tests.unit.kube.cluster import (
    LIMIT_RANGES,
    NAMESPACES,
    Cluster,
    bookmark,
    limit_range,
    namespace,
)
from tests.waiting import until
from webhook.errors import ClusterError
from webhook.kube.api import LargePageError, StatusError
from webhook.kube.client import Client
from webhook.kube.informers import MAX_PAGE_BYTES, connect_reads
from webhook.kube.reads import HttpReads
from webhook.serve.sources import cluster as cluster_facts
from webhook.serve.waiting_requests import WaitingRequests

MAX: Any = {"max": {"memory": "1Gi"}}
#: Failures of the three watches together: enough for the pauses of each to grow.
TRIES = 12
WAITS = "rdma_webhook_facts_waits_total"
UNREACHABLE = r"^cannot reach the API server http://127\.0\.0\.1:\d+: "
TIMED_OUT = UNREACHABLE + "timed out$"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[LiveApi]:
    """Serve a cluster with one namespace."""
    cluster = Cluster()
    cluster.put(NAMESPACES, namespace("lab"))
    with LiveApi(tmp_path, cluster).serving() as served:
        yield served


@pytest.fixture
def reads(api: LiveApi) -> HttpReads:
    """Return a reader of that API server."""
    return HttpReads(Client(api.kubeconfig))


def keeps_limit(server: Running | Process, name: str = "lab") -> bool:
    """Send a review of a pod with a memory limit; return whether the limit stays."""
    manifest = pod()
    manifest["spec"]["containers"][0]["resources"]["limits"]["memory"] = "64Gi"
    answer = server.post(review(manifest, namespace=name)).response
    return b"limits/memory" not in b64decode(answer["patch"])


def test_decisions_follow_the_cluster(api: LiveApi, tls: Certificates, tmp_path: Path) -> None:
    """A pod keeps its limit while there is a LimitRange, and loses it once that is deleted."""
    with Running(tls, fabrics(tmp_path), kubeconfig=api.kubeconfig) as server:
        until(lambda: server.get("/readyz").status == 200)
        assert not keeps_limit(server)
        api.cluster.put(LIMIT_RANGES, limit_range(**MAX))
        took = until(lambda: keeps_limit(server))
        api.cluster.delete(LIMIT_RANGES, limit_range())
        until(lambda: not keeps_limit(server))
    print(f"a new LimitRange counted after {took * 1000:.0f} ms")  # noqa: T201 -- a figure


def test_a_pod_that_comes_before_its_namespace_waits_for_it(
    api: LiveApi, tls: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request is decided by the namespace's rules, once the watch has delivered them."""
    waiting = WaitingRequests(seconds=600)
    monkeypatch.setattr(cluster_facts, "WaitingRequests", lambda: waiting)
    config = fabrics(tmp_path)
    with Running(tls, config, kubeconfig=api.kubeconfig) as server, ThreadPoolExecutor() as pool:
        until(lambda: server.get("/readyz").status == 200)
        early = pool.submit(keeps_limit, server, "new")
        until(lambda: "new" in waiting._arrivals)
        assert not early.done()
        api.cluster.put(NAMESPACES, namespace("new"))
        assert early.result() is False
        assert _waits(server) == [1, 0]


def test_a_pod_whose_namespace_does_not_come_is_answered(
    api: LiveApi, tls: Certificates, tmp_path: Path
) -> None:
    """It is answered after 0.3 s; the limit stays, since the namespace's rules are not known."""
    with Running(tls, fabrics(tmp_path), kubeconfig=api.kubeconfig) as server:
        until(lambda: server.get("/readyz").status == 200)
        began = time.monotonic()
        assert keeps_limit(server, "never")
        assert time.monotonic() - began > 0.3
        assert _waits(server) == [0, 1]


def _waits(server: Running) -> list[float]:
    """Return how many requests waited for a namespace that came, and for one that did not."""
    return [
        server.metric(f'{WAITS}{{arrived="{arrived}"}}') or 0.0 for arrived in ("true", "false")
    ]


def test_an_outage_of_the_cluster_costs_nothing(
    api: LiveApi, tls: Certificates, tmp_path: Path
) -> None:
    """The server stays ready and decides by the last state, with few retries and no more memory."""
    api.cluster.put(LIMIT_RANGES, limit_range(**MAX))
    options = {"kubeconfig": str(api.kubeconfig)}
    with Process(tls, fabrics(tmp_path), tmp_path / "log", os.environ, **options) as server:
        before, began = _cost(server), time.monotonic()
        with api.outage():
            until(lambda: "still in use (" in server.get("/readyz").text)
            until(lambda: _cost(server)[0] - before[0] >= TRIES)
            assert (server.get("/readyz").status, keeps_limit(server)) == (200, True)
            after, seconds = _cost(server), time.monotonic() - began
            api.cluster.forget(LIMIT_RANGES)  # and the watch gets no event for it
        took = until(lambda: "still in use (" not in server.get("/readyz").text)
        api.cluster.put(NAMESPACES, namespace("other"))
        until(lambda: "2 namespaces" in server.get("/readyz").text)
    failures, cpu, memory = (late - early for late, early in zip(after, before, strict=True))
    print(  # noqa: T201 -- figures
        f"{seconds:.0f} s without: {failures:.0f} failures, {cpu:.2f} s of CPU, {memory:.1f} MiB; "
        f"heard again after {took:.1f} s"
    )
    # For each of the three watches: the first pauses grow; the longest are at least MAX_PAUSE / 2.
    assert failures <= 3 * (8 + 2 * seconds / MAX_PAUSE)
    assert memory < 8


def _cost(server: Process) -> tuple[float, float, float]:
    failures = sum(
        server.metric(f'rdma_webhook_facts_failures_total{{resource="{resource}"}}') or 0.0
        for resource in ("namespaces", "limitranges", "resourcequotas")
    )
    return failures, server.metric("process_cpu_seconds_total") or 0.0, server.memory()


def test_ten_thousand_namespaces(tls: Certificates, tmp_path: Path) -> None:
    """The server is ready with little memory, and a change counts as soon as in a small cluster."""
    cluster = Cluster()
    cluster.put(NAMESPACES, *(_large(f"team-{number}") for number in range(10_000)))
    with LiveApi(tmp_path, cluster).serving() as api:
        options = {"kubeconfig": str(api.kubeconfig)}
        with Process(tls, fabrics(tmp_path), tmp_path / "log", os.environ, **options) as server:
            cluster.put(LIMIT_RANGES, limit_range(space="team-77", **MAX))
            took = until(lambda: keeps_limit(server, "team-77"))
            memory = server.memory()
    print(  # noqa: T201 -- figures
        f"10,000 namespaces: ready after {server.took:.1f} s of processor time, {memory:.0f} MiB; "
        f"a new LimitRange counted after {took * 1000:.0f} ms"
    )
    assert memory < 150


def _large(name: str) -> dict[str, Any]:
    """Make a namespace as an API server returns it; most of its fields are not needed."""
    fields: dict[str, Any] = {f"f:field-{number}": {"f:nested": {}} for number in range(20)}
    managed = [{"manager": "kubectl", "operation": "Apply", "fieldsV1": fields}]
    return namespace(
        name,
        labels={"kubernetes.io/metadata.name": name, "rdma.lab/enable": "true"},
        annotations={"team.example.com/owner": "somebody"},
        managedFields=managed,
        uid=f"00000000-0000-0000-0000-{name}",
    )


def test_events_arrive_in_whatever_pieces(api: LiveApi, reads: HttpReads) -> None:
    """A line may arrive in several chunks, and a chunk may contain several lines."""
    with closing(reads.stream(NAMESPACES, {"watch": "true"}, 20.0)) as events:
        api.cluster.watch(NAMESPACES).send(
            b'{"type": ', b'"A"}\n{"type": "B"}\n', bookmark(7), None
        )
        assert [event["type"] for event in events] == ["A", "B", "BOOKMARK"]


def test_a_silent_watch_is_broken(api: LiveApi, reads: HttpReads) -> None:
    """A silent watch counts as broken: the other end may be gone without having closed it."""
    assert api.cluster.asked == []
    with (
        # On a busy machine, the watch may not even begin in time.
        pytest.raises(ClusterError, match=TIMED_OUT),
        closing(reads.stream(NAMESPACES, {"watch": "true"}, 0.1)) as events,
    ):
        list(events)


def test_a_watch_that_is_cut_is_broken(api: LiveApi, reads: HttpReads) -> None:
    """A watch that ends without its last chunk was cut off, which is an error."""
    with (
        closing(reads.stream(NAMESPACES, {"watch": "true"}, 20.0)) as events,
        api.outage(),
        pytest.raises(ClusterError, match=UNREACHABLE),
    ):
        list(events)


def test_refusals_have_their_code(api: LiveApi, reads: HttpReads) -> None:
    """Errors of lists and watches have their status code; 410 matters."""
    for ask in (
        lambda: reads.get(NAMESPACES, {"limit": "1"}),
        lambda: reads.stream(NAMESPACES, {"watch": "true"}, 60.0),
    ):
        api.cluster.failures.append(StatusError(410, "too old"))
        with pytest.raises(StatusError, match=r"^the API server answered 410: .*too old$") as error:
            ask()
        assert error.value.code == 410


def test_a_large_page_is_not_read(api: LiveApi, reads: HttpReads) -> None:
    """One byte too many makes it too large for a replica, unless it has a single object."""
    empty = {"metadata": {"resourceVersion": "1"}, "items": [""]}
    room = MAX_PAGE_BYTES - len(json.dumps(empty))
    limited = connect_reads(api.kubeconfig)
    for length, limit in ((room, 2), (room + 1, 1)):
        page = _answer(api, {**empty, "items": ["x" * length]})
        assert limited.get(NAMESPACES, {"limit": str(limit)}) == page
    page = _answer(api, {**empty, "items": ["x" * (room + 1)]})
    with pytest.raises(LargePageError, match=r"^a page of /api"):
        limited.get(NAMESPACES, {"limit": "2"})
    assert reads.get(NAMESPACES, {"limit": "2"}) == page  # in a command


def _answer(api: LiveApi, page: dict[str, Any]) -> dict[str, Any]:
    api.cluster.get = lambda *_: page  # type: ignore[method-assign]
    return page


@pytest.mark.parametrize("limit", ["1", "2"])
def test_a_page_that_is_cut_is_broken(api: LiveApi, limit: str) -> None:
    """It is an error of the connection, not of the answer."""
    api.cuts_answers = True
    with pytest.raises(ClusterError, match=UNREACHABLE):
        connect_reads(api.kubeconfig).get(NAMESPACES, {"limit": limit})


def test_an_answer_that_is_not_an_object_is_refused(api: LiveApi, reads: HttpReads) -> None:
    """An answer that is not an object is an error: what listens there is not an API server."""
    api.cluster.get = lambda *_: ["no", "object"]  # type: ignore[method-assign, assignment]
    with pytest.raises(
        ClusterError, match=r"^the API server's answer to /api/v1/namespaces is not"
    ):
        reads.get(NAMESPACES, {})
