from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.builders import READY, fabrics
from tests.server_state import prepared, use
from tests.unit.kube.cluster import NODES, Cluster, gone, node, refused
from tests.unit.serve.client import Lines
from tests.unit.serve.sources.stepping import PAUSE, run_steps
from webhook.errors import ClusterError
from webhook.kube import watched_resources
from webhook.kube.informers import Informers
from webhook.model.facts import Facts, NamespaceFacts
from webhook.model.nodes import FabricIndex, build_fabric_index
from webhook.serve.metrics import Metrics
from webhook.serve.sources import cluster as cluster_nodes
from webhook.serve.sources.cluster import ClusterNodes
from webhook.serve.sources.source import STALE
from webhook.serve.state import ConfigurationApplied, ConfigurationLearned, NamespacesChanged, State

VOLTA = "Tesla-V100-SXM2"
HOME = frozenset({"v100-ib"})


class Server:
    """A state that follows the nodes of a cluster in memory."""

    def __init__(self, cluster: Cluster, *, configured: bool = True) -> None:
        self.cluster = cluster
        self.now = 1000.0
        self.lines = Lines()
        self.metrics = Metrics()
        self.state = State()
        if configured:
            use(self.state, fabrics())
        informers = Informers(
            lambda: cluster,
            lambda: iter([PAUSE] * 10_000),
            lambda: self.now,
            [watched_resources.NODES],
        )
        self.nodes = ClusterNodes(informers, self.state, self.metrics, pause=0.0)

    def run(self, *steps: Callable[[], bool]) -> None:
        """Run until each of the conditions has become true, in this order."""
        run_steps(self.nodes, steps)

    @property
    def fabric_index(self) -> FabricIndex:
        """The index that decisions use."""
        assert self.state.snapshot.current_configuration is not None
        return self.state.snapshot.current_configuration.fabric_index

    def knows(self, *names: str) -> bool:
        """Return whether decisions use exactly these nodes, by name."""
        return set(names) == set(self.fabric_index.by_node)

    def poll(self) -> list[str]:
        """Do what the server does every second; return the logged messages."""
        if self.nodes.poll():
            self.nodes.apply(self.metrics, self.lines.log)
        return [line["msg"] for line in self.lines.read()]

    def watching(self) -> bool:
        """Return whether the watch is open."""
        return bool(self.cluster.streams)


def equipped(*names: str) -> Cluster:
    """Make a cluster of nodes with V100s."""
    cluster = Cluster()
    cluster.put(NODES, *(node(name, VOLTA, v100="8") for name in names))
    return cluster


def test_nodes_become_evidence_once_their_list_is_whole() -> None:
    """Half of them could mislead. The server is ready without them."""
    cluster = equipped("a", "b", "c")
    cluster._page = 1
    server = Server(cluster)
    page, resume, get = threading.Event(), threading.Event(), cluster.get

    def slow(path: str, query: Any) -> Any:
        if query.get("continue") == "2":
            page.set()
            resume.wait(20)
        return get(path, query)

    cluster.get = slow  # type: ignore[method-assign]
    assert server.nodes.check() == ("nodes", True, "not read yet")

    def go_on() -> bool:
        assert server.knows()
        assert server.nodes.check() == ("nodes", True, "not read yet")
        resume.set()
        return True

    server.run(page.is_set, go_on, lambda: server.knows("a", "b", "c"))
    assert server.fabric_index.offering == {"nvidia.com/v100": {"v100-ib": 8}}
    assert server.nodes.check().detail == "3 nodes, last update 0 s ago"
    assert server.poll() == ["nodes synced"]
    assert server.poll() == []


@pytest.mark.parametrize("code", [403, 404])
def test_nodes_that_may_not_be_read_are_unknown(code: int) -> None:
    """A site may leave the right out: the server is ready, and decides without nodes' resources."""
    cluster = equipped("a")
    cluster.failures += [refused(code)] * 10_000
    server = Server(cluster)
    server.run(lambda: "none known" in server.nodes.check().detail)
    assert server.fabric_index == FabricIndex()
    problem = f"nodes: the API server answered {code}: no"
    assert server.nodes.check() == ("nodes", True, f"none known ({problem})")
    assert "nodes not current" in server.poll()


def test_an_api_server_without_an_answer_does_not_make_unready() -> None:
    """The line has the reason."""
    cluster = Cluster()
    cluster.failures += [ClusterError("cannot reach it")] * 10_000
    server = Server(cluster)
    server.run(lambda: "cannot reach it" in server.nodes.check().detail)
    expected = "not read yet (nodes: cannot reach it)"
    assert server.nodes.check() == ("nodes", True, expected)
    assert server.knows()


def test_nodes_come_change_and_go() -> None:
    """Each change reaches the decisions; the index before it is not changed."""
    cluster = equipped("a")
    server = Server(cluster)
    fabric_indexes: list[FabricIndex] = []

    def add() -> bool:
        fabric_indexes.append(server.fabric_index)
        cluster.put(NODES, node("b", VOLTA, v100="4"))
        return True

    def change() -> bool:
        cluster.put(NODES, node("a", "NVIDIA-H100-X", h100="8"))
        return True

    def remove() -> bool:
        cluster.delete(NODES, node("a"))
        return True

    server.run(
        lambda: server.knows("a") and server.watching(),
        add,
        lambda: server.knows("a", "b"),
        change,
        lambda: server.fabric_index.by_node["a"] == frozenset({"h100-roce"}),
        remove,
        lambda: server.knows("b"),
    )
    assert fabric_indexes[0].by_node == {"a": HOME}
    assert server.fabric_index.inhabited_fabrics == HOME


def test_nodes_stay_during_an_outage_of_the_api_server() -> None:
    """The line has their age; they stay in use, and are never a reason to be unready."""
    cluster = equipped("a")
    server = Server(cluster)

    def leave() -> bool:
        cluster.failures += [ClusterError("cannot reach it")] * 10_000
        cluster.watch(NODES).send(gone())
        return True

    server.run(
        lambda: server.knows("a") and server.watching(),
        leave,
        lambda: "cannot reach it" in server.nodes.check().detail,
    )
    server.now += STALE + 1
    assert server.nodes.check() == (
        *("nodes", True),
        "1 node, last update 181 s ago; still in use (nodes: cannot reach it)",
    )
    assert server.knows("a")
    assert server.poll() == ["nodes synced", "nodes not current", "nodes stale"]
    heard = "rdma_webhook_facts_last_contact_timestamp_seconds"
    assert server.metrics.registry.get_sample_value(heard, {"resource": "nodes"})


def test_a_heartbeat_makes_no_index() -> None:
    """Ten thousand kubelets report every few minutes; no stored field changes."""
    cluster = equipped("a")
    server = Server(cluster)
    fabric_indexes: list[FabricIndex] = []

    def beat() -> bool:
        fabric_indexes.append(server.fabric_index)
        for number in range(100):
            item = node("a", VOLTA, v100="8")
            item["status"]["conditions"] = [{**READY[0], "lastHeartbeatTime": number}]
            cluster.put(NODES, item)
        cluster.put(NODES, node("b"))
        return True

    server.run(
        lambda: server.knows("a") and server.watching(), beat, lambda: server.knows("a", "b")
    )
    assert fabric_indexes[0] is not server.fabric_index
    assert server.nodes._informers.reflectors[0].object_count == 2


def test_a_hundred_changes_a_second_cost_few_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are built in another thread, with pauses; the last has all changes."""
    cluster = equipped("a")
    server = Server(cluster)
    server.nodes._pause = 0.05
    threads: list[str] = []

    def counted(*given: Any) -> FabricIndex:
        threads.append(threading.current_thread().name)
        return build(*given)

    build = build_fabric_index
    monkeypatch.setattr(cluster_nodes, "build_fabric_index", counted)

    def burst() -> bool:
        for number in range(500):
            cluster.put(NODES, node(f"n{number}", VOLTA, v100="8"))
        return True

    server.run(
        lambda: server.knows("a") and server.watching(),
        burst,
        lambda: len(server.fabric_index.by_node) == 501,
    )
    assert 2 <= len(threads) < 100
    assert "MainThread" not in threads


def test_an_upcoming_configuration_gets_new_nodes_too() -> None:
    """This holds before and after its use begins: it was prepared with the older nodes."""
    server = Server(equipped("a"))
    coming = prepared(replace(fabrics(), config_hash="ba9876543210"))
    server.state.send(ConfigurationLearned(coming))

    def use_it() -> bool:
        server.state.send(ConfigurationApplied(coming))
        return True

    server.run(lambda: server.knows("a"), use_it)
    snapshot = server.state.snapshot
    assert snapshot.current_configuration is not None
    assert snapshot.current_configuration.compiled is coming.compiled
    assert snapshot.current_configuration.nodes is snapshot.facts.nodes
    assert server.knows("a")
    assert server.poll() == ["nodes synced"]


def test_a_configuration_prepared_with_older_nodes_gets_the_newer() -> None:
    """No node has to change for it; until then, decisions use the older nodes."""
    server = Server(equipped("a"))
    late = prepared(replace(fabrics(), config_hash="ba9876543210"))

    def use_it() -> bool:
        server.state.send(ConfigurationApplied(late))
        assert server.knows()
        assert "nodes synced" in server.poll()
        return True

    server.run(lambda: server.knows("a") and server.watching(), use_it, lambda: server.knows("a"))
    assert server.state.snapshot.current_configuration is not None
    assert server.state.snapshot.current_configuration.compiled is late.compiled
    assert server.poll() == []


def test_an_upcoming_configuration_with_older_nodes_gets_the_newer() -> None:
    """No node has to change for it: it has the nodes before it is in use."""
    server = Server(equipped("a"))
    late = prepared(replace(fabrics(), config_hash="ba9876543210"))

    def announce() -> bool:
        server.state.send(ConfigurationLearned(late))
        return True

    def caught_up() -> bool:
        server.poll()
        snapshot = server.state.snapshot
        return snapshot.upcoming["ba9876543210"].nodes is snapshot.facts.nodes

    server.run(lambda: server.knows("a") and server.watching(), announce, caught_up)
    assert server.state.snapshot.upcoming["ba9876543210"].fabric_index == server.fabric_index


def test_nodes_come_before_the_configuration() -> None:
    """They count as soon as there are fabrics."""
    server = Server(equipped("a"), configured=False)
    server.run(lambda: bool(server.state.snapshot.facts.nodes))
    use(server.state, fabrics())
    assert server.knows("a")


def test_namespaces_and_nodes_are_independent() -> None:
    """Changes of one do not remove the other."""
    server = Server(equipped("a"))
    lab = NamespaceFacts(name="lab", labels={"x": "y"})
    server.state.send(NamespacesChanged(Facts(namespaces={"lab": lab}, unlisted_is_unknown=True)))
    server.run(lambda: server.knows("a"))
    assert server.state.snapshot.facts.namespace("lab") == lab
    assert list(server.state.snapshot.facts.nodes) == ["a"]


def test_a_defect_is_logged_and_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next change is still used."""
    cluster = equipped("a")
    server = Server(cluster)
    build, broken = build_fabric_index, [ValueError("secret")]

    def once(*given: Any) -> FabricIndex:
        if broken:
            raise broken.pop()
        return build(*given)

    monkeypatch.setattr(cluster_nodes, "build_fabric_index", once)

    def add() -> bool:
        cluster.put(NODES, node("b"))
        return True

    server.run(lambda: not broken and server.watching(), add, lambda: server.knows("a", "b"))
    assert server.poll() == ["nodes synced", "internal error"]
    assert server.metrics.registry.get_sample_value("rdma_webhook_internal_errors_total") == 1
