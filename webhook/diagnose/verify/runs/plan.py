"""The plan of a run: its nodes, rounds and tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from webhook.diagnose.verify.results import NodePair, PortRate
from webhook.kube.objects import Manifest, NodeRecord
from webhook.model.fabric import CompiledConfiguration, Fabric
from webhook.model.facts import Facts, key_of
from webhook.model.finding import Finding
from webhook.model.names import natural_key
from webhook.model.nodes import Node as NodeFacts

# The nodes of a cluster that can measure a fabric, and the reasons why others cannot.


class FabricNodes(NamedTuple):
    """The nodes of a cluster, in natural order: node-2 before node-10."""

    usable: tuple[str, ...]
    #: Each other node of the fabric → the reason why it cannot measure.
    obstacles: Mapping[str, str]
    #: The names of all nodes of the cluster.
    all_names: frozenset[str]


def fabric_nodes(
    manifests: Iterable[Manifest], configuration: CompiledConfiguration, fabric: Fabric
) -> FabricNodes:
    """Return the nodes that belong to a fabric, offer its RDMA resources, and accept pods."""
    listed = {key_of(manifest)[1]: {**manifest, "kind": "Node"} for manifest in manifests}
    facts = Facts.from_objects(listed.values())
    fabrics_by_node = facts.fabric_index(configuration).by_node
    usable: list[str] = []
    obstacles: dict[str, str] = {}
    for name in sorted(listed, key=natural_key):
        if fabric.name not in fabrics_by_node[name]:
            continue
        if reason := _obstacle(NodeRecord.model_validate(listed[name]), facts.nodes[name], fabric):
            obstacles[name] = reason
        else:
            usable.append(name)
    return FabricNodes(tuple(usable), obstacles, frozenset(listed))


def _obstacle(node: NodeRecord, facts: NodeFacts, fabric: Fabric) -> str:
    """Return why a node of the fabric cannot measure, "" if it can."""
    if not node.status.is_ready:
        return "is not ready"
    if node.spec.unschedulable:
        return "is cordoned"
    missing = [
        resource.name for resource in fabric.resources if resource.name not in facts.resources
    ]
    return f"offers no {', '.join(missing)}" if missing else ""


# The pairs of nodes, in rounds: in a round, a node is in at most one pair.
#
# A node in two pairs at the same time would share its links between them.

#: Pairs that measure at the same time.
Round = tuple[NodePair, ...]


def ring_rounds(nodes: Sequence[str]) -> list[Round]:
    """Pair each node with the next one, and the last one with the first: two or three rounds.

    Every node sends and receives. Two nodes are one pair.
    """
    successors = [*nodes[1:], nodes[0]]
    pairs = [NodePair(client, server) for client, server in zip(nodes, successors, strict=True)]
    if len(nodes) == 2:  # noqa: PLR2004 -- a pair
        return [(pairs[0],)]
    even, odd = tuple(pairs[::2]), tuple(pairs[1::2])
    if len(nodes) % 2:
        # The last pair ends where the first one begins.
        return [even[:-1], odd, even[-1:]]
    return [even, odd]


def all_pair_rounds(nodes: Sequence[str]) -> list[Round]:
    """Pair each node with all the others, once.

    This is the circle method of round-robin tournaments: one node stays, the others move by one
    seat, so that n nodes need n - 1 rounds, or n if their number is odd.
    """
    seats: list[int | None] = [*range(len(nodes)), *([None] if len(nodes) % 2 else [])]
    rounds: list[Round] = []
    for _ in range(len(seats) - 1):
        half = len(seats) // 2
        facing = zip(seats[:half], reversed(seats[half:]), strict=True)
        pairs = [
            sorted((seat, facing_seat))
            for seat, facing_seat in facing
            if seat is not None and facing_seat is not None
        ]
        rounds.append(tuple(NodePair(nodes[client], nodes[server]) for client, server in pairs))
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return rounds


#: Seconds that a program of perftest may take in addition: to connect, to register memory.
_TEST_OVERHEAD = 30
#: HCAs of a node if the fabric does not name them; no known node has more for its GPUs.
_MAX_HCAS = 16


class RunPlan(NamedTuple):
    """The plan of a run: nodes, rounds, tests and limits."""

    #: The value of the label on all objects that the run creates.
    name: str
    fabric: Fabric
    nodes: tuple[str, ...]
    #: One after another; the pairs of a round are measured at the same time.
    rounds: tuple[Round, ...]
    image: str
    #: The rate of each port; None if unknown.
    rate: PortRate | None
    #: Programs of perftest.
    tests: tuple[str, ...]
    #: The duration of each test.
    seconds: int
    #: Seconds until a pod of a pair must have started.
    start_timeout: float
    #: RDMA devices that each pod requests; None leaves that to the fabric.
    devices: int | None = None
    pull_secrets: tuple[str, ...] = ()
    #: Tolerations as in a pod.
    tolerations: tuple[dict[str, str], ...] = ()

    @property
    def program_timeout(self) -> int:
        """Seconds after which a program without a result is terminated."""
        return self.seconds + _TEST_OVERHEAD

    @property
    def pair_timeout(self) -> int:
        """Seconds that all tests of a pair may take once both pods run."""
        return self.program_timeout * len(self.tests) * (len(self.fabric.hcas) or _MAX_HCAS)

    @property
    def pair_count(self) -> int:
        """The number of pairs."""
        return sum(map(len, self.rounds))


# The requirements of a run on a cluster, and on its own process.
#
# `webhook.kube.pods` implements `RunPods` over HTTP; tests have their own implementation.


class RunPods(Protocol):
    """The pods of a namespace.

    Raises StatusError if the API server rejects a request, ClusterError if it is silent.
    """

    def create(self, pod: Manifest) -> Manifest:
        """Create a pod, and return it as the API server stored it."""

    def list(self, selector: str) -> list[Manifest]:
        """Return the pods with these labels."""

    def delete(self, pod: Manifest) -> None:
        """Delete a pod; a pod that no longer exists is not an error."""

    def log(self, name: str, container: str) -> str:
        """Return the log of a container."""


class RunEnvironment(NamedTuple):
    """The environment of a run: pods, clock and outputs."""

    pods: RunPods
    #: Explains why the pod of this name has no RDMA, or does not start; None if unknown.
    explain: Callable[[str], Finding | None]
    #: Takes a message on the progress of a pair, or of the whole run.
    report_progress: Callable[[NodePair | None, str], None]
    #: Takes the log of a pair.
    save_log: Callable[[NodePair, str], None]
    #: Waits for some seconds; returns True, immediately, if the run must end.
    wait_for_end: Callable[[float], bool]
    #: Returns the seconds of a monotonic clock.
    now: Callable[[], float]
