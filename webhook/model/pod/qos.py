"""The QoS class of a pod, and what its containers request together."""

from __future__ import annotations

from collections.abc import Iterable

from webhook.errors import ShapeError
from webhook.model.pod.container import Container
from webhook.model.pod.pod import Pod
from webhook.model.pod.reading import Path, dotted
from webhook.model.quantity import equal, format_quantity, is_zero, resource_billionths

_GUARANTEED = ("cpu", "memory")


def is_guaranteed(pod: Pod) -> bool:
    """Return whether the QoS class is Guaranteed: all limits are set, and requests equal them.

    Source: kubernetes pkg/apis/core/v1/helper/qos, ComputePodQOS. If the pod has pod-level
    resources, only those count.
    """
    if not pod.resources:
        return all(_equal(container.limits, container.requests) for container in pod.containers)
    pod_requests = pod.requests
    effective = {
        name: summed_request(name, pod.containers)
        if pod_requests.get(name) is None
        else pod_requests[name]
        for name in _GUARANTEED
    }
    requests = {name: quantity for name, quantity in effective.items() if quantity is not None}
    return _equal(pod.limits, requests)


def summed_request(name: str, containers: Iterable[Container]) -> str | None:
    """Return the sum of the containers' requests; None if it is zero.

    The API server makes it the pod's request for CPU or memory if the pod has none.
    Source: kubernetes pkg/apis/core/v1/defaults.go, defaultPodRequests.
    """
    total = step = 0
    for container in containers:
        number = _request_or_limit(container, name)
        # Init containers run one after another, together with the sidecars started before them.
        if container.kind == "init":
            step = max(step, total + number)
        elif container.kind != "ephemeral":
            total += number
    largest = max(total, step)
    return format_quantity(largest) if largest else None


def _request_or_limit(container: Container, name: str) -> int:
    """Return a container's request, or else its limit, or else 0, in billionths."""
    for section, quantities in (("requests", container.requests), ("limits", container.limits)):
        quantity = quantities.get(name)
        if quantity is not None:
            return amount_at(quantity, (*container.path, "resources", section, name))
    return 0


def amount_at(value: object, path: Path) -> int:
    """Return the quantity at `path`, in billionths; raise ShapeError with the path if invalid."""
    try:
        return resource_billionths(value)
    except ValueError as error:
        raise ShapeError(f"{dotted(path)}: {error}") from error


def _equal(limits: dict[str, object], requests: dict[str, object]) -> bool:
    try:
        for name in _GUARANTEED:
            limit = limits.get(name)
            if is_zero(limit) or not equal(requests.get(name, limit), limit):
                return False
    except ValueError:
        return False
    return True
