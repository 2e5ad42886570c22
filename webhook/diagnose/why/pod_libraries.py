"""The libraries that move a pod's data between nodes: the verdict is theirs.

The status names them. What the pod carries now also shows what keeps NCCL off RDMA.
"""

from __future__ import annotations

from typing import NamedTuple

from webhook.diagnose.why.evidence import StatusAnnotation
from webhook.model.decision import Verdict
from webhook.model.names import enumerated


class PodLibraries(NamedTuple):
    """The libraries, as names and as a clause."""

    names: tuple[str, ...] = ()
    #: "" for NCCL alone, and if they are unknown.
    clause: str = ""


def pod_libraries(status: StatusAnnotation | None, verdict_now: Verdict | None) -> PodLibraries:
    """Return the libraries by the status, and by the verdict of what the pod carries now."""
    if status is None:
        return PodLibraries()
    named = tuple(filter(None, status.libraries.split(",")))
    if verdict_now is not None and verdict_now.libraries == (named or ("NCCL",)):
        return PodLibraries(verdict_now.libraries, verdict_now.libraries_clause)
    return PodLibraries(named, enumerated(named))
