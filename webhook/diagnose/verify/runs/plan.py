"""What a run measures, and how."""

from __future__ import annotations

from typing import NamedTuple

from webhook.diagnose.verify.expectation import PortRate
from webhook.diagnose.verify.runs.pairings import Round
from webhook.model.fabric import Fabric

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
