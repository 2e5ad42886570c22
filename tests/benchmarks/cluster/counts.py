"""Counts of requests: of a webhook, by the API server's metrics and our own, and of ours to it."""

from __future__ import annotations

import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.cluster import Cluster

#: The port of our health and metrics.
_PORT = 8080
#: Does not use a proxy that the environment may name.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def calls(cluster: Cluster) -> dict[str, int]:
    """Return the API server's calls of each webhook since its start, by the webhook's name."""
    text = cluster.kubectl("get", "--raw", "/metrics")
    return _sums(text, "apiserver_admission_webhook_request_total", "name")


def answered(cluster: Cluster) -> int:
    """Return how many reviews our webhook has answered."""
    text = ours(cluster, "metrics")
    assert text is not None
    return _sums(text, "rdma_webhook_requests_total", "endpoint").get("mutate", 0)


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
    return _sums(text, "apiserver_flowcontrol_dispatched_requests_total", "flow_schema")


def lists(cluster: Cluster) -> dict[str, int]:
    """Return how many lists of nodes were answered from the API server's cache, and by etcd."""
    text = cluster.kubectl("get", "--raw", "/metrics")
    return {
        source: _sums(text, f"apiserver_{sample}_list_total", "resource", "nodes").get("nodes", 0)
        for source, sample in (("cache", "cache"), ("etcd", "storage"))
    }


def _sums(text: str, name: str, label: str, only: str = "") -> dict[str, int]:
    """Sum a counter by the values of one of its labels; `only`: by this value alone."""
    sums: dict[str, int] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == name and only in ("", sample.labels[label]):
                key = sample.labels[label]
                sums[key] = sums.get(key, 0) + int(sample.value)
    return sums
