"""Pods are decided while nodes change, hundreds of times: none waits, and no change is missed."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

from tests.api_server import review_of
from tests.builders import H100, V100, container, fabrics, pod, quantities
from tests.server_state import configured, learn, use
from tests.unit.kube.cluster import NODES, Cluster, gone, node
from tests.unit.serve.client import JSON, Answer, Lines, request
from tests.unit.serve.sources.test_cluster_nodes import Server
from webhook.decide import decide
from webhook.kube import watched_resources
from webhook.model.facts import Facts
from webhook.model.nodes import Node, build_fabric_index
from webhook.serve.http.mutate import Mutate
from webhook.serve.metrics import Metrics
from webhook.serve.state import State
from webhook.serve.waiting_requests import WaitingRequests

EVENTS = 600
#: The number of the event after which a watch breaks, and events are lost.
LOST = 301
#: The nodes that change, and their states in turn: in one fabric, in the other, deleted.
NAMES = [f"n{number}" for number in range(10)]
PRODUCTS = ("Tesla-V100-SXM2", "NVIDIA-H100-80GB-HBM3", "")
#: Only a pod's node determines its fabric.
GPU = "nvidia.com/gpu"
CONFIGURATION = fabrics(
    *(replace(member, gpu_resources=frozenset({GPU})) for member in (V100, H100))
)
FACTS = Facts.from_objects([{"kind": "Namespace", "metadata": {"name": "lab"}}])


def equipped(name: str, product: str) -> dict[str, Any]:
    """Make a node with the resources of its product's fabric."""
    equipped_node = node(name, product, gpu="8", rail0="8")
    equipped_node["status"]["allocatable"]["rdma/v100"] = "63"
    return equipped_node


#: These stay, so that a decision depends on the pod's own node alone.
PERMANENT = [equipped(f"lasting-{number}", PRODUCTS[number]) for number in range(2)]


def review_on(name: str) -> bytes:
    """Write the review of a pod on this node."""
    manifest = pod(container(resources=quantities({GPU: "1"})), nodeName=name)
    return review_of(manifest)


def application(state: State) -> Mutate:
    """Make the application for pods."""
    return Mutate(state, Metrics(), Lines("error").log, decide)  # no test reads the lines


def expected(product: str) -> bytes:
    """Return the answer for a pod on a node of this product, by a state that has read the nodes."""
    items = [*PERMANENT, *([equipped("n0", product)] if product else [])]
    state = configured(CONFIGURATION, replace(FACTS, nodes=kept_nodes(items)))
    return application(state).answer(review_on("n0")).body


def kept_nodes(items: list[dict[str, Any]]) -> Mapping[str, Node]:
    """Return the stored fields of nodes."""
    project = watched_resources.NODES.project
    return {item["metadata"]["name"]: fields for item in items if (fields := project(item))}


def without_waiting(answering: Coroutine[Any, Any, Answer]) -> Answer:
    """Run until the answer is there; it may await nothing but the turns of others."""
    while True:
        try:
            awaited = answering.send(None)
        except StopIteration as done:
            answer: Answer = done.value
            return answer
        assert awaited is None, "the request waits for something"


class Rolling:
    """A server, and nodes that change one after another."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cluster.put(NODES, *PERMANENT)
        self.server = Server(self.cluster, configured=False)
        state = self.server.state
        learn(state, FACTS)
        state.waiting_requests = WaitingRequests(seconds=600)
        use(state, CONFIGURATION)
        self.app = application(state)
        self.products = dict.fromkeys(NAMES, "")
        self.answers: list[tuple[str, Answer]] = []

    def items(self) -> list[dict[str, Any]]:
        """Return the nodes as they are now."""
        changed = [equipped(*change) for change in self.products.items() if change[1]]
        return [*PERMANENT, *changed]

    def ask(self, name: str) -> Answer:
        """Decide a pod on this node, at once."""
        body = review_on(name)
        headers = [JSON, (b"content-length", b"%d" % len(body))]
        return without_waiting(request(self.app, "POST", "/mutate", body, headers=headers))

    def change(self) -> bool:
        """Change a node and decide a pod on it; return whether all events have been sent."""
        number = len(self.answers)
        name = NAMES[number % len(NAMES)]
        before = self.products[name]
        self.products[name] = PRODUCTS[(number // len(NAMES) + number) % len(PRODUCTS)]
        if self.products[name]:
            self.cluster.put(NODES, equipped(name, self.products[name]))
        elif before:
            self.cluster.delete(NODES, node(name))
        self.answers.append((name, self.ask(name)))
        return len(self.answers) in (LOST, EVENTS)

    def lose(self) -> bool:
        """Lose the watch, and the events of three nodes, with a deletion among them."""
        self.products.update(zip(NAMES, PRODUCTS, strict=False))
        self.cluster.forget(NODES, *self.items())
        self.cluster.watch(NODES).send(gone())
        return True

    def up_to_date(self) -> bool:
        """Return whether decisions use exactly the nodes that exist."""
        return self.server.fabric_index == build_fabric_index(
            kept_nodes(self.items()), CONFIGURATION
        )


def rolled() -> Rolling:
    """Change the nodes, and return when the last change is known."""
    rolling = Rolling()
    steps: list[Callable[[], bool]] = [
        lambda: rolling.server.watching() and rolling.up_to_date(),
        rolling.change,
        rolling.lose,
        lambda: len(rolling.cluster.streams[NODES]) == 2,
        rolling.change,
        rolling.up_to_date,
    ]
    rolling.server.run(*steps)
    return rolling


def test_no_decision_waits_fails_or_sees_half_of_a_change() -> None:
    """Each sees a present or past state of the pod's node; after the last event, the present one.

    Each state of a node has a different answer, so that no answer fits two states.
    """
    rolling = rolled()
    answers = {expected(product): product for product in PRODUCTS}
    assert len(answers) == len(PRODUCTS)
    assert len(rolling.answers) == EVENTS
    assert {answer.status for _, answer in rolling.answers} == {200}
    assert {body_for_any(answer.body, name) for name, answer in rolling.answers} <= {
        body_for_any(body, "n0") for body in answers
    }
    last = {name: rolling.app.answer(review_on(name)).body for name in NAMES}
    assert set(rolling.products.values()) == set(PRODUCTS)
    for name, product in rolling.products.items():
        assert body_for_any(last[name], name) == body_for_any(expected(product), "n0"), name


def body_for_any(body: bytes, name: str) -> str:
    """Return an answer without the name of the node, which some of its sentences contain."""
    response = json.loads(body)["response"]
    patch = b64decode(response.pop("patch")).decode()
    return json.dumps(response).replace(name, "NODE") + patch.replace(name, "NODE")
