from __future__ import annotations

from dataclasses import replace

from tests.builders import fabrics
from tests.server_state import configured, use
from tests.unit.serve.client import Lines
from webhook.model.facts import Facts
from webhook.model.node_availability import AVAILABLE, CORDON, Availability
from webhook.model.nodes import Node
from webhook.serve.metrics import FabricNodeCounts, Metrics
from webhook.serve.sources.fabric_node_counter import FabricNodeCounter, node_counts
from webhook.serve.state import ConfigurationMissing, State

V100 = {"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB"}


def node(availability: Availability = AVAILABLE, **resources: int) -> Node:
    """Make a node of the fabric v100-ib: `gpu` is its number of GPUs, `rdma` of RDMA devices."""
    names = {"gpu": "nvidia.com/v100", "rdma": "rdma/v100"}
    offered = {names[key]: value for key, value in resources.items()}
    return Node(labels=V100, resources=offered, availability=availability)


def series(metrics: Metrics, name: str) -> dict[str, float]:
    """Return fabric → value of a metric."""
    return {
        sample.labels["fabric"]: sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == f"rdma_webhook_fabric_{name}"
    }


def test_nodes_of_each_fabric_are_counted() -> None:
    """A node without the RDMA resource counts as one of the nodes, a cordoned node does not."""
    cordoned = node(Availability((CORDON,)), gpu=8)
    nodes = {"n1": node(gpu=8, rdma=2), "n2": node(gpu=8), "n3": node(gpu=4), "n4": cordoned}
    source, metrics = FabricNodeCounter(configured(fabrics(), Facts(nodes=nodes))), Metrics()
    assert source.poll()
    source.apply(metrics, Lines().log)
    assert series(metrics, "nodes") == {"v100-ib": 3, "h100-roce": 0}
    assert series(metrics, "nodes_without_resource") == {"v100-ib": 2, "h100-roce": 0}
    assert series(metrics, "nodes_unavailable") == {"v100-ib": 1, "h100-roce": 0}


def test_a_fabric_is_counted_only_while_it_is_in_use() -> None:
    """The series of a removed fabric vanish, and all of them without a configuration."""
    state = configured(fabrics(), Facts(nodes={"n1": node(gpu=8, rdma=2)}))
    source, metrics, log = FabricNodeCounter(state), Metrics(), Lines().log
    assert source.poll()
    source.apply(metrics, log)
    before = fabrics()
    used = replace(before, fabrics={"v100-ib": before.fabrics["v100-ib"]}, config_hash="other")
    use(state, used)
    assert source.poll()
    source.apply(metrics, log)
    assert series(metrics, "nodes") == {"v100-ib": 1}
    state.send(ConfigurationMissing("it was deleted"))
    assert source.poll()
    source.apply(metrics, log)
    assert series(metrics, "nodes") == series(metrics, "nodes_without_resource") == {}


def test_nodes_are_counted_once() -> None:
    """Without a change of nodes or fabrics there is nothing to count."""
    source = FabricNodeCounter(configured(fabrics(), Facts(nodes={"n1": node(gpu=8)})))
    assert source.poll()
    assert not source.poll()


def test_unknown_nodes_are_not_counted_as_zero() -> None:
    """A replica that may not list nodes would otherwise report that each fabric has none."""
    assert node_counts(None) == {}
    assert node_counts(configured(fabrics()).snapshot.current_configuration) == {}
    assert not FabricNodeCounter(State()).poll()
    nodes = {"other": Node(labels={}, resources={}, availability=AVAILABLE)}
    current = configured(fabrics(), Facts(nodes=nodes)).snapshot.current_configuration
    assert node_counts(current) == dict.fromkeys(
        ("v100-ib", "h100-roce"), FabricNodeCounts(0, 0, 0)
    )
