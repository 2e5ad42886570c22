"""What a run needs of a cluster, and of the process that it runs in.

`webhook.kube.pods` implements `RunPods` over HTTP; tests have their own implementation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from webhook.diagnose.verify.run_report import NodePair

Pod = dict[str, Any]


class RunPods(Protocol):
    """Pods; RefusedError if the API server rejects a request, ClusterError if it is silent."""

    def create(self, pod: Pod) -> Pod:
        """Create a pod, and return it as the API server stored it."""

    def list(self, selector: str) -> list[Pod]:
        """Return the pods with these labels."""

    def delete(self, pod: Pod) -> None:
        """Delete a pod; one that is gone is no error."""

    def log(self, name: str, container: str) -> str:
        """Return the log of a container."""


class PodProblem(NamedTuple):
    """Why a pod has no RDMA, or does not start, and what to do."""

    code: str
    because: str
    remedy: str


class RunSite(NamedTuple):
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
