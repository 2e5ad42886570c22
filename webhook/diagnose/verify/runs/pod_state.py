"""How far a pod has come, by its object."""

from __future__ import annotations

import json

from webhook.diagnose.verify.runs.pods import CONTAINER, NCCL_CONTAINER
from webhook.diagnose.verify.runs.run_cluster import Pod
from webhook.model.annotations import STATUS
from webhook.model.pod import at

#: Reasons of a waiting container that no waiting repairs.
_FINAL = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_LONGEST = 300
_OURS = (CONTAINER, NCCL_CONTAINER)


def rdma_of(pod: Pod) -> str | None:
    """Return whether a pod has RDMA, as the webhook wrote it; None if it was not called."""
    written = at(pod, ("metadata", "annotations", STATUS))
    if not isinstance(written, str):
        return None
    try:
        return str(at(json.loads(written), ("rdma",)) or "")
    except ValueError:
        return ""


def is_ready(pod: Pod) -> bool:
    """Return whether a pod is ready."""
    return any(
        one.get("type") == "Ready" and one.get("status") == "True" for one in _conditions(pod)
    )


def is_running(pod: Pod) -> bool:
    """Return whether the container of a pod runs, or has ended."""
    return has_ended(pod) or at(_container(pod), ("state", "running")) is not None


def has_ended(pod: Pod) -> bool:
    """Return whether the container of a pod has ended, or never starts."""
    terminated = at(_container(pod), ("state", "terminated")) is not None
    return terminated or str(at(pod, ("status", "phase"))) in ("Succeeded", "Failed")


def has_run(pod: Pod) -> bool:
    """Return whether a pod that has ended did start its container, so that it has a log."""
    return at(_container(pod), ("state", "terminated", "startedAt")) is not None


def was_killed_for_memory(pod: Pod) -> bool:
    """Return whether the kernel ended the container since memory was short."""
    return str(at(_container(pod), ("state", "terminated", "reason"))) == "OOMKilled"


def is_stuck(pod: Pod) -> bool:
    """Return whether a pod will not start, however long one waits."""
    return at(_container(pod), ("state", "waiting", "reason")) in _FINAL


def address_of(pod: Pod) -> str:
    """Return the address of a pod, "" if it has none yet."""
    return str(at(pod, ("status", "podIP")) or "")


def awaits(pod: Pod) -> str:
    """Say what a pod that has not started waits for, in one line; "" if nothing is known."""
    waiting = at(_container(pod), ("state", "waiting"))
    if isinstance(waiting, dict):
        words = [str(waiting.get("reason") or ""), str(waiting.get("message") or "")]
        return _line(": ".join(filter(None, words)))
    unscheduled = (
        one
        for one in _conditions(pod)
        if one.get("type") == "PodScheduled" and one.get("status") == "False"
    )
    return _line(str(next(unscheduled, {}).get("message") or ""))


def _conditions(pod: Pod) -> list[Pod]:
    found = at(pod, ("status", "conditions"))
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _container(pod: Pod) -> Pod:
    """Return the status of our container; others may have added containers of their own."""
    found = at(pod, ("status", "containerStatuses"))
    statuses = found if isinstance(found, list) else []
    return next((one for one in statuses if at(one, ("name",)) in _OURS), {})


def _line(words: str) -> str:
    return " ".join(words.split())[:_LONGEST]
