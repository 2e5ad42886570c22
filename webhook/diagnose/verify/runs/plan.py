"""What a run measures, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from webhook.diagnose.verify.results import NodePair, PortRate
from webhook.kube.objects import Manifest, Node
from webhook.model.fabric import Fabric, Fabrics
from webhook.model.facts import Facts, key_of
from webhook.model.inventory import natural_key
from webhook.model.nodes import Node as NodeFacts

# Which nodes of a cluster can measure a fabric, and why the others cannot.


class FabricNodes(NamedTuple):
    """The nodes of a cluster, sorted as people count: node-2 before node-10."""

    fit: tuple[str, ...]
    #: Each other node that belongs to the fabric → why it cannot measure.
    unfit: Mapping[str, str]
    #: All nodes of the cluster.
    known: frozenset[str]


def fabric_nodes(items: Iterable[Manifest], fabrics: Fabrics, fabric: Fabric) -> FabricNodes:
    """Tell which nodes belong to a fabric, offer its RDMA resources, and take pods."""
    listed = {key_of(item)[1]: {**item, "kind": "Node"} for item in items}
    facts = Facts.from_objects(listed.values())
    homes = facts.inventory(fabrics).by_node
    fit: list[str] = []
    unfit: dict[str, str] = {}
    for name in sorted(listed, key=natural_key):
        if fabric.name not in homes[name]:
            continue
        if why := _obstacle(Node.model_validate(listed[name]), facts.nodes[name], fabric):
            unfit[name] = why
        else:
            fit.append(name)
    return FabricNodes(tuple(fit), unfit, frozenset(listed))


def _obstacle(node: Node, facts: NodeFacts, fabric: Fabric) -> str:
    """Say why a node of the fabric cannot measure, "" if it can."""
    if not node.status.is_ready:
        return "is not ready"
    if node.spec.unschedulable:
        return "is cordoned"
    missing = [one.name for one in fabric.resources if one.name not in facts.resources]
    return f"offers no {', '.join(missing)}" if missing else ""


# Which nodes measure with which, in rounds: in a round, a node is in one pair at most.
#
# A node that is in two pairs at a time would share its links between them.

#: Pairs that measure at the same time.
Round = tuple[NodePair, ...]


def ring_rounds(nodes: Sequence[str]) -> list[Round]:
    """Pair each node with the next one, and the last one with the first: two or three rounds.

    Every node sends and receives. Two nodes are one pair.
    """
    after = [*nodes[1:], nodes[0]]
    pairs = [NodePair(client, server) for client, server in zip(nodes, after, strict=True)]
    if len(nodes) == 2:  # noqa: PLR2004 -- a pair
        return [(pairs[0],)]
    even, odd = tuple(pairs[::2]), tuple(pairs[1::2])
    if len(nodes) % 2:
        # The last pair ends where the first one begins.
        return [even[:-1], odd, even[-1:]]
    return [even, odd]


def all_pair_rounds(nodes: Sequence[str]) -> list[Round]:
    """Pair each node with every other one, once.

    By the circle method of round-robin tournaments: one node stays, the others move on by one seat,
    so that n nodes need n - 1 rounds, or n if their number is odd.
    """
    seats: list[int | None] = [*range(len(nodes)), *([None] if len(nodes) % 2 else [])]
    rounds: list[Round] = []
    for _ in range(len(seats) - 1):
        half = len(seats) // 2
        facing = zip(seats[:half], reversed(seats[half:]), strict=True)
        pairs = [
            sorted((one, other)) for one, other in facing if one is not None and other is not None
        ]
        rounds.append(tuple(NodePair(nodes[client], nodes[server]) for client, server in pairs))
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return rounds


#: Seconds that a program of perftest may take beside measuring: to connect, to register memory.
_AROUND = 30
#: HCAs of a node, where the fabric does not name them; no known machine has more for its GPUs.
_MOST_HCAS = 16


class RunPlan(NamedTuple):
    """A run, as it was asked for."""

    #: The value of the label on all that it creates.
    name: str
    fabric: Fabric
    nodes: tuple[str, ...]
    rounds: tuple[Round, ...]
    image: str
    #: What each port should reach; None if that is not known.
    rate: PortRate | None
    #: Programs of perftest.
    tests: tuple[str, ...]
    #: For which each test measures.
    seconds: int
    #: Seconds in which a pod of a pair must start.
    patience: float
    #: RDMA devices that each pod requests; None leaves that to the fabric.
    devices: int | None = None
    pull_secrets: tuple[str, ...] = ()
    #: Tolerations as in a pod.
    tolerations: tuple[dict[str, str], ...] = ()

    @property
    def limit(self) -> int:
        """Seconds after which a program has no result."""
        return self.seconds + _AROUND

    @property
    def longest(self) -> int:
        """Seconds that all tests of a pair may take once both pods run."""
        return self.limit * len(self.tests) * (len(self.fabric.hcas) or _MOST_HCAS)

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return sum(map(len, self.rounds))


# What a run needs of a cluster, and of the process that it runs in.
#
# `webhook.kube.pods` implements `RunPods` over HTTP; tests have their own implementation.


class RunPods(Protocol):
    """Pods; RefusedError if the API server rejects a request, ClusterError if it is silent."""

    def create(self, pod: Manifest) -> Manifest:
        """Create a pod, and return it as the API server stored it."""

    def list(self, selector: str) -> list[Manifest]:
        """Return the pods with these labels."""

    def delete(self, pod: Manifest) -> None:
        """Delete a pod; one that is gone is no error."""

    def log(self, name: str, container: str) -> str:
        """Return the log of a container."""


class PodProblem(NamedTuple):
    """Why a pod has no RDMA, or does not start, and what to do."""

    code: str
    because: str
    remedy: str


class RunEnvironment(NamedTuple):
    """Where a run happens."""

    pods: RunPods
    #: Explains a pod, by its name, that has no RDMA or does not start; None if it cannot.
    explain: Callable[[str], PodProblem | None]
    #: Takes what happens, of a pair or of the whole run.
    tell: Callable[[NodePair | None, str], None]
    #: Takes the log of a pair.
    keep: Callable[[NodePair, str], None]
    #: Waits for some seconds; returns True, at once, if the run is to end.
    pause: Callable[[float], bool]
    #: Seconds of a clock that never jumps.
    now: Callable[[], float]
