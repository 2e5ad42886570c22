"""What the pods on each node have reserved of extended resources, as the scheduler counts it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from webhook.model.pod import at
from webhook.model.scheduler_requests import scheduler_requests

#: A pod in one of these phases has given its resources back.
_FINISHED = ("Succeeded", "Failed")


class Reservation(NamedTuple):
    """What a pod has reserved on its node: extended resource → how many."""

    node: str
    amounts: Mapping[str, int]


def reservation_of(pod: Any) -> Reservation | None:
    """Return what a pod has reserved; None if nothing. Raise ShapeError for what is not a pod."""
    node = at(pod, ("spec", "nodeName"))
    if not isinstance(node, str) or at(pod, ("status", "phase")) in _FINISHED:
        return None
    amounts = scheduler_requests(pod)
    return Reservation(node, amounts) if amounts else None


def reserved_on_nodes(reservations: Iterable[Reservation]) -> dict[str, dict[str, int]]:
    """Return node → resource → how many."""
    found: dict[str, dict[str, int]] = {}
    for node, amounts in reservations:
        total = found.setdefault(node, {})
        for name, many in amounts.items():
            total[name] = total.get(name, 0) + many
    return found
