from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import fabrics
from tests.server_state import configured
from tests.unit.kube.cluster import (
    LIMIT_RANGES,
    NAMESPACES,
    Cluster,
    gone,
    limit_range,
    namespace,
)
from tests.unit.serve.client import Lines
from tests.unit.serve.sources.stepping import PAUSE, run_steps
from webhook.errors import ClusterError
from webhook.kube.informers import Informers
from webhook.model.facts import NamespaceFacts
from webhook.model.node_availability import Availability
from webhook.model.nodes import Node
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.sources.cluster import ClusterFacts, fact_sources
from webhook.serve.sources.source import STALE
from webhook.serve.state import Snapshot, State
from webhook.serve.waiting_requests import WaitingRequests


class Server:
    """A state that follows a cluster in memory."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.now = 1000.0
        self.lines = Lines()
        self.metrics = Metrics()
        self.state = configured(fabrics())
        informers = Informers(lambda: cluster, lambda: iter([PAUSE] * 10_000), lambda: self.now)
        self.facts = ClusterFacts(informers, self.state, self.metrics)

    def run(self, *steps: Callable[[], bool]) -> None:
        """Run until each of the conditions has become true, in this order."""
        run_steps(self.facts, steps)

    def poll(self) -> list[str]:
        """Do what the server does every second; return the logged messages."""
        if self.facts.poll():
            self.facts.apply(self.metrics, self.lines.log)
        return [line["msg"] for line in self.lines.read()]

    def synced(self) -> bool:
        """Return whether all lists have been used and all watches are open."""
        return self.facts.synced and len(self.cluster.streams) == 3

    def knows(self, name: str) -> NamespaceFacts:
        """Return the facts of a namespace that a decision would see."""
        return self.state.snapshot.facts.namespace(name)

    def metric(self, name: str, resource: str = "namespaces") -> float | None:
        """Return a watch's metric."""
        labels = {"resource": resource}
        return self.metrics.registry.get_sample_value(f"rdma_webhook_facts_{name}", labels)


def test_ready_as_soon_as_all_lists_are_there() -> None:
    """Until then no namespace is known: a namespace without its rules would mislead."""
    cluster = Cluster()
    cluster.put(NAMESPACES, namespace("lab"))
    cluster.put(LIMIT_RANGES, limit_range(max={"memory": "1Gi"}))
    server = Server(cluster)
    before = server.facts.check()
    assert (before.ready, before.detail) == (False, "some lists have not been read yet")
    assert server.knows("lab") == NamespaceFacts(name="lab", is_loaded=False)
    waits = server.state.waiting_requests
    assert waits is None

    server.run(server.synced)
    after = server.facts.check()
    assert (after.ready, after.detail) == (True, "1 namespace, last update 0 s ago")
    assert server.knows("lab").memory_limit_rejection == "LimitRange sizes sets max.memory"
    assert server.knows("other").is_loaded is False
    assert isinstance(server.state.waiting_requests, WaitingRequests)
    assert server.poll() == ["facts synced"]
    assert server.poll() == []


def test_a_refused_list_keeps_it_unready() -> None:
    """If RBAC lacks a kind, the line in `/readyz` names it."""
    cluster = Cluster()
    server = Server(cluster)
    refused = ClusterError("the API server answered 403: forbidden")
    get = cluster.get

    def without_quotas(path: str, query: dict[str, str]) -> dict[str, object]:
        if path.endswith("quotas"):
            raise refused
        return get(path, query)

    cluster.get = without_quotas  # type: ignore[method-assign, assignment]
    server.run(lambda: len(cluster.streams) == 2, lambda: "quotas" in server.facts.check().detail)
    check = server.facts.check()
    assert (check.ready, check.detail) == (False, f"resourcequotas: {refused}")
    assert server.poll() == ["facts not current"]


def test_a_change_becomes_a_new_snapshot() -> None:
    """The previous snapshot does not change, for requests that still use it."""
    cluster = Cluster()
    cluster.put(NAMESPACES, namespace("lab"))
    server = Server(cluster)
    baseline = {"pod-security.kubernetes.io/enforce": "baseline"}

    def change() -> bool:
        snapshots.append(server.state.snapshot)
        cluster.put(NAMESPACES, namespace("lab", labels=baseline))
        return True

    snapshots: list[Snapshot] = []
    server.run(
        server.synced,
        change,
        lambda: server.knows("lab").enforced_pod_security == "baseline",
    )
    (before,) = snapshots
    after = server.state.snapshot
    assert before.facts.namespace("lab").enforced_pod_security == ""
    assert after.current_configuration is before.current_configuration


def test_facts_stay_during_an_outage_of_the_api_server() -> None:
    """It stays ready, with the reason in its line; the log has a line at the start and the end."""
    cluster = Cluster()
    cluster.put(NAMESPACES, namespace("lab"))
    server = Server(cluster)
    logged: list[str] = []

    def leave() -> bool:
        logged.extend(server.poll())
        cluster.failures += [ClusterError("cannot reach it")] * 1000
        for path in cluster.streams:
            cluster.watch(path).send(gone())
        return True

    def problem() -> bool:
        return "cannot reach it" in server.facts.check().detail

    def come_back() -> bool:
        assert server.facts.check().ready
        assert server.knows("lab").is_loaded
        logged.extend(server.poll())
        cluster.failures.clear()
        return True

    def current() -> bool:
        return all(
            reflector.list_count > 1 and not reflector.problem
            for reflector in server.facts._informers.reflectors
        )

    server.run(server.synced, leave, problem, come_back, current)
    logged.extend(server.poll())
    assert [message for message in logged if message != "facts not current"] == [
        "facts synced",
        "facts current",
    ]
    assert "facts not current" in logged
    assert (server.metric("failures_total") or 0) > 0
    assert (server.metric("lists_total") or 0) >= 2


def test_old_facts_are_logged_and_stay_in_use() -> None:
    """There is one warning after the bound; the metric is the time of the last contact."""
    server = Server(Cluster())
    server.run(server.synced)
    assert server.poll() == ["facts synced"]
    last_contact = server.metric("last_contact_timestamp_seconds")
    server.now += STALE + 1
    later = server.metric("last_contact_timestamp_seconds")

    assert server.poll() == ["facts stale"]
    assert server.poll() == []
    assert server.facts.check().ready
    assert last_contact is not None
    assert later is not None
    assert last_contact - later == pytest.approx(STALE + 1, abs=1.0)
    assert server.metric("objects") == 0


def test_a_defect_is_counted_and_logged_by_its_type() -> None:
    """An object with a shape that no API server sends does not end the watch."""
    cluster = Cluster()
    cluster.put(NAMESPACES, {"metadata": {"name": "lab", "labels": "hunter2"}})
    server = Server(cluster)
    server.run(lambda: "internal error" in server.facts.check().detail)
    assert server.facts.check().ready is False
    assert server.poll() == ["facts not current", "internal error"]
    assert server.metrics.registry.get_sample_value("rdma_webhook_internal_errors_total") == 1


@pytest.mark.parametrize(
    ("options", "environment", "watched"),
    [
        (ServeOptions(), {}, False),
        (ServeOptions(), {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, True),
        (ServeOptions(kubeconfig=Path("config")), {}, True),
        (ServeOptions(watch=False), {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, False),
        (ServeOptions(dev=True), {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, False),
    ],
)
def test_when_facts_are_watched(
    options: ServeOptions, environment: dict[str, str], watched: bool
) -> None:
    """It watches in a cluster or with a kubeconfig, unless disabled; else it is ready without."""
    state = State()
    sources = fact_sources(options, state, Metrics(), environment)
    kinds = ["ClusterFacts", "ClusterClaims", "ClusterNodes"]
    assert [type(source).__name__ for source in sources] == kinds * watched
    assert len(state.probes) == 2 * watched


def test_a_file_of_facts_is_used_and_nothing_is_watched(tmp_path: Path) -> None:
    """Its namespaces and its nodes count, even in a cluster."""
    file = tmp_path / "facts.yaml"
    file.write_text(
        "kind: Namespace\nmetadata: {name: lab, labels: {a: b}}\n"
        "---\nkind: Node\nmetadata: {name: n1, labels: {c: d}}\n"
    )
    state = State()
    options = ServeOptions(facts=file)
    assert fact_sources(options, state, Metrics(), {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) == ()
    facts = state.snapshot.facts
    assert facts.namespace("lab") == NamespaceFacts(name="lab", labels={"a": "b"})
    never_ready = Availability(reported=False)
    expected = Node(labels={"c": "d"}, resources={}, availability=never_ready)
    assert facts.nodes == {"n1": expected}
    assert state.waiting_requests is None
