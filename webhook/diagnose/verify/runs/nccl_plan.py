"""What a run of nccl-tests measures, and how."""

from __future__ import annotations

from typing import NamedTuple

from webhook.model.fabric import Fabric

#: Seconds in which a collective of some GiB ends on a slow network, NCCL's start included.
_LIMIT = 600


class NcclPlan(NamedTuple):
    """A run, as it was asked for."""

    #: The value of the label on all that it creates, and the name of the MPIJob.
    name: str
    fabric: Fabric
    nodes: tuple[str, ...]
    #: GPUs of each node, by the name of their resource; a rank has one GPU.
    gpus: int
    gpu_resource: str
    image: str
    #: A program of nccl-tests: a name on the PATH, or a path.
    test: str
    #: The largest message, as nccl-tests writes sizes: 1G.
    largest: str
    #: Seconds in which the workers must be ready.
    patience: float
    pull_secrets: tuple[str, ...] = ()
    #: Tolerations as in a pod.
    tolerations: tuple[dict[str, str], ...] = ()

    @property
    def ranks(self) -> int:
        """How many ranks there are in all."""
        return self.gpus * len(self.nodes)

    @property
    def limit(self) -> int:
        """Seconds after which mpirun is ended."""
        return _LIMIT
