"""How many times a webhook was called: by the API server's metrics, and by our own."""

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
        with _OPENER.open(f"http://{cluster.network.gateway}:{_PORT}/{path}", timeout=5) as said:
            text: str = said.read().decode()
    except OSError:
        return None
    return text


def _sums(text: str, sample: str, label: str) -> dict[str, int]:
    """Sum a counter by the values of one of its labels."""
    sums: dict[str, int] = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            if one.name == sample:
                key = one.labels[label]
                sums[key] = sums.get(key, 0) + int(one.value)
    return sums
