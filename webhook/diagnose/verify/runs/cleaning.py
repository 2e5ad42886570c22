"""Delete the pods of a run, or of all runs, and wait until they are gone."""

from __future__ import annotations

from collections.abc import Callable

from webhook.diagnose.verify.runs.run_cluster import Pod, RunPods
from webhook.errors import ClusterError
from webhook.model.facts import key_of
from webhook.model.pod import at

#: Seconds: a pod ends after one, unless its kubelet does not answer.
PATIENCE = 60.0
_CLEANING_PAUSE = 0.5


def remove_pods(
    pods: RunPods,
    selector: str,
    rest: Callable[[float], object],
    now: Callable[[], float],
) -> list[Pod]:
    """Delete all pods with these labels, and return them once none is left.

    `rest` waits for some seconds. Raises ClusterError if they do not go, or the API server does not
    answer.
    """
    deadline = now() + PATIENCE
    found: dict[tuple[str, str], Pod] = {}
    while there := pods.list(selector):
        for pod in there:
            found.setdefault(key_of(pod), pod)
            if at(pod, ("metadata", "deletionTimestamp")) is None:
                pods.delete(pod)
        if now() > deadline:
            raise ClusterError(_stuck(there))
        rest(_CLEANING_PAUSE)
    return list(found.values())


def _stuck(there: list[Pod]) -> str:
    names = ", ".join(key_of(pod)[1] for pod in there)
    nodes = ", ".join(dict.fromkeys(str(at(pod, ("spec", "nodeName"))) for pod in there))
    return (
        f"these pods were deleted, but are still there after {PATIENCE:g} s: {names}; "
        f"check whether the kubelet answers on {nodes}"
    )
