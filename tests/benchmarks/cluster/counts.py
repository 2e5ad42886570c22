"""Counts and durations of requests: by the API server's metrics and our own."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.cluster import Cluster

#: The port of our health and metrics.
_PORT = 8080
#: Does not use a proxy that the environment may name.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def calls(cluster: Cluster) -> dict[str, int]:
    """Return the API server's calls of each webhook since its start, by the webhook's name."""
    text = cluster.kubectl("get", "--raw", "/metrics")
    return _whole(_sums(text, "apiserver_admission_webhook_request_total", "name"))


class Durations(NamedTuple):
    """The API server's histogram of the calls of a webhook: their number, and their seconds."""

    calls: int
    seconds: float

    def since(self, before: Durations) -> Durations:
        """Return what was added after `before`."""
        return Durations(self.calls - before.calls, self.seconds - before.seconds)

    @property
    def mean(self) -> float:
        """The milliseconds of a call."""
        return 1000 * self.seconds / self.calls


def durations(cluster: Cluster) -> dict[str, Durations]:
    """Return how long the API server's calls of each webhook took since its start.

    A call includes writing the review and applying the patch, but not the matchConditions.
    """
    text = cluster.kubectl("get", "--raw", "/metrics")
    histogram = "apiserver_admission_webhook_admission_duration_seconds"
    seconds = _sums(text, f"{histogram}_sum", "name")
    numbers = _sums(text, f"{histogram}_count", "name")
    return {name: Durations(int(numbers[name]), seconds[name]) for name in numbers}


def answered(cluster: Cluster) -> int:
    """Return how many reviews our webhook has answered."""
    text = ours(cluster, "metrics")
    assert text is not None
    return int(_sums(text, "rdma_webhook_requests_total", "endpoint").get("mutate", 0))


def ours(cluster: Cluster, path: str) -> str | None:
    """Return our webhook's answer on this path; None if it is not a success."""
    try:
        with _OPENER.open(f"http://{cluster.network.gateway}:{_PORT}/{path}", timeout=5) as answer:
            text: str = answer.read().decode()
    except OSError:
        return None
    return text


def queued(cluster: Cluster) -> dict[str, int]:
    """Return how many requests the API server has let through by each FlowSchema."""
    text = cluster.kubectl("get", "--raw", "/metrics")
    return _whole(_sums(text, "apiserver_flowcontrol_dispatched_requests_total", "flow_schema"))


def lists(cluster: Cluster) -> dict[str, int]:
    """Return how many lists of nodes were answered from the API server's cache, and by etcd."""
    text = cluster.kubectl("get", "--raw", "/metrics")
    return {
        source: int(_sums(text, f"apiserver_{sample}_list_total", "resource").get("nodes", 0))
        for source, sample in (("cache", "cache"), ("etcd", "storage"))
    }


def _sums(text: str, name: str, label: str) -> dict[str, float]:
    """Sum a metric by the values of one of its labels."""
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == name:
                key = sample.labels[label]
                sums[key] = sums.get(key, 0.0) + sample.value
    return sums


def _whole(sums: Mapping[str, float]) -> dict[str, int]:
    return {key: int(value) for key, value in sums.items()}
