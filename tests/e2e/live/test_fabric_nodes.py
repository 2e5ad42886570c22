"""Nodes of a real cluster that take no pods: in the status, with kubectl, and with `fabrics`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.install import A100, PRODUCT, Webhook
from tests.cluster.kwok import FAKE
from tests.e2e.documents import apply
from tests.e2e.live.lab import ChangingNamespace
from tests.e2e.live.test_fabric_status import status
from tests.e2e.live.test_nodes import RESOURCE, verdict
from tests.waiting import until

FABRIC = "a100-ib"
#: The fake node is tainted, so that only pods of tests run there.
NOTE = f"1 node has the taint {FAKE}, so only pods that tolerate it run there ({{node}})"
NO_NODE = "no node of the fabric takes pods"
PRESSURE = "node.kubernetes.io/disk-pressure"
NEVER_READY = "never-ready"


def row(webhook: Webhook) -> dict[str, Any]:
    """Return the status of the fabric whose only node is fake; {} before there is one."""
    rows = status(webhook).get("fabrics", ())
    return next((row for row in rows if row["name"] == FABRIC), {})


def expect(webhook: Webhook, nodes: int, unavailable: int, *problems: str) -> dict[str, Any]:
    """Wait until the status has these numbers of nodes and these problems; return its row."""
    current: dict[str, Any] = {}

    def has_come() -> bool:
        current.clear()
        current.update(row(webhook))
        counts = (current.get("nodes"), current.get("unavailableNodes"))
        return counts == (nodes, unavailable) and current["problems"] == [*problems]

    until(has_come, lambda: current)
    return current


def printed(webhook: Webhook) -> tuple[int, str]:
    """Return the exit code and the output of `rdma-webhook fabrics`."""
    kubeconfig = f"--kubeconfig={webhook.cluster.kubeconfig}"
    command = [sys.executable, "-m", "webhook", "fabrics", kubeconfig]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout


@contextmanager
def cordoned(cluster: Cluster, node: str) -> Iterator[None]:
    """Cordon a node."""
    cluster.kubectl("cordon", node)
    try:
        yield
    finally:
        cluster.kubectl("uncordon", node)


@contextmanager
def pressed(cluster: Cluster, node: str) -> Iterator[None]:
    """Let a node report that its disk is full, so that the node controller taints it."""

    def report(state: str) -> None:
        status = {"conditions": [{"type": "DiskPressure", "status": state}]}
        patch = json.dumps({"status": status})
        cluster.kubectl("patch", "node", node, "--subresource=status", f"--patch={patch}")

    report("True")
    try:
        yield
    finally:
        report("False")


@contextmanager
def lacking(cluster: Cluster, node: str) -> Iterator[None]:
    """Let the device plugin of a node lose its devices."""
    cluster.advertise({**A100, RESOURCE: "0"}, node)
    try:
        yield
    finally:
        cluster.advertise(A100, node)


@contextmanager
def never_ready(cluster: Cluster, _node: str) -> Iterator[None]:
    """Add a node of the fabric that no kubelet runs."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NEVER_READY, "labels": PRODUCT},
    }
    apply(cluster, node)
    cluster.advertise(A100, NEVER_READY)
    try:
        yield
    finally:
        cluster.kubectl("delete", "node", NEVER_READY, "--wait=false")


@contextmanager
def dedicated(cluster: Cluster, node: str) -> Iterator[None]:
    """Taint a node, as a site does for nodes of one team, and as clouds do for nodes with GPUs."""
    cluster.kubectl("taint", "node", node, "dedicated=ml:NoSchedule", "nvidia.com/a100:NoSchedule")
    try:
        yield
    finally:
        cluster.kubectl("taint", "node", node, "dedicated-", "nvidia.com/a100-")


@pytest.fixture(autouse=True)
def _healthy(webhook: Webhook, a100_node: str) -> Iterator[None]:
    """Begin and end with a fabric whose node takes pods."""
    webhook.cluster.skip_if_existing("nodes that nobody runs")
    notes = [NOTE.format(node=a100_node)]
    for step in ("begin", "end"):
        until(lambda: expect(webhook, 1, 0)["notes"] == notes)
        if step == "begin":
            yield


CHANGES = [
    pytest.param(cordoned, (0, 1), [NO_NODE, "1 node is cordoned ({node})"], id="cordoned"),
    pytest.param(
        pressed, (0, 1), [NO_NODE, f"1 node has the taint {PRESSURE} ({{node}})"], id="pressure"
    ),
    pytest.param(never_ready, (1, 1), [f"1 node is not ready ({NEVER_READY})"], id="never ready"),
    pytest.param(lacking, (1, 0), [f"no node offers {RESOURCE}"], id="lost resource"),
]


@pytest.mark.parametrize(("change", "counts", "problems"), CHANGES)
def test_a_node_that_takes_no_pods_is_named(
    webhook: Webhook, a100_node: str, change: Any, counts: tuple[int, int], problems: list[str]
) -> None:
    """It adds nothing to the fabric, whose status and whose line of `fabrics` have the reason."""
    named = [problem.format(node=a100_node) for problem in problems]
    with change(webhook.cluster, a100_node):
        current = expect(webhook, *counts, *named)
        code, text = printed(webhook)
    nodes, unavailable = counts
    assert current["gpus"] == nodes * int(A100["nvidia.com/a100"])
    assert code == 1
    lines = " ".join(text.split())
    assert all(f"{FABRIC}: {problem} [" in lines for problem in named), text
    shown = f"{nodes} of {nodes + unavailable}" if unavailable else str(nodes)
    assert f"{FABRIC} {shown} nvidia.com/a100: {current['gpus']} " in lines


def test_kubectl_counts_the_nodes_that_take_pods(webhook: Webhook, a100_node: str) -> None:
    """The column of `kubectl get fabrics` has one node less while it is cordoned."""

    def column() -> int:
        heading, fabrics = webhook.cluster.kubectl("get", "fabrics").splitlines()
        place = heading.index("NODES")
        return int(fabrics[place:].split()[0])

    before = column()
    with cordoned(webhook.cluster, a100_node):
        expect(webhook, 0, 1, NO_NODE, f"1 node is cordoned ({a100_node})")
        assert column() == before - 1


def test_a_taint_is_a_note(webhook: Webhook, a100_node: str) -> None:
    """Nodes of one team take its pods; the taint of a GPU is not worth a note."""
    note = f"1 node has the taint dedicated, so only pods that tolerate it run there ({a100_node})"
    with dedicated(webhook.cluster, a100_node):
        until(lambda: note in row(webhook)["notes"])
        current = expect(webhook, 1, 0)
        _, text = printed(webhook)
    assert current["notes"] == [note, NOTE.format(node=a100_node)]
    assert f"· {FABRIC}: {note}" in " ".join(text.split())


def test_a_cordon_is_in_the_verdict(lab: ChangingNamespace, a100_node: str) -> None:
    """The node still offers the resource, and the cordon passes, so it is not certain."""
    until(lambda: verdict(lab)[0] == "yes")
    with cordoned(lab.webhook.cluster, a100_node):
        expect(lab.webhook, 0, 1, NO_NODE, f"1 node is cordoned ({a100_node})")
        until(lambda: {verdict(lab) for _ in range(10)} == {("unsure", "NodesUnavailable")})
    until(lambda: verdict(lab)[0] == "yes")
