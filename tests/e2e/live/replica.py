"""One replica, called at its own address, which works even while the API server is down."""

from __future__ import annotations

import http.client
import json
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from tests.cluster.install import NAME, Webhook, add_samples


class Cost(NamedTuple):
    """The resources that a replica has used since its start."""

    failures: int
    cpu_seconds: float
    resident_bytes: float


@dataclass(frozen=True)
class Replica:
    """A running replica."""

    name: str
    address: str

    def get(self, path: str) -> tuple[int, str]:
        """Get a page of its health port; return status and answer."""
        with closing(http.client.HTTPConnection(self.address, 8080, timeout=60)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def cost(self) -> Cost:
        """Read the resources that it has used."""
        text = self.get("/metrics")[1]
        return Cost(
            sum(_samples(text, "rdma_webhook_facts_failures_total").values()),
            _number(text, "process_cpu_seconds_total"),
            _number(text, "process_resident_memory_bytes"),
        )

    def metric(self, name: str) -> float:
        """Read a metric without labels."""
        return _number(self.get("/metrics")[1], name)


def replicas(webhook: Webhook) -> list[Replica]:
    """Return the running replicas."""
    pods = json.loads(webhook.read(f"/api/v1/namespaces/{NAME}/pods"))["items"]
    return [
        Replica(pod["metadata"]["name"], pod["status"]["podIP"])
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
    ]


def _samples(text: str, name: str) -> Counter[tuple[str, ...]]:
    counts: Counter[tuple[str, ...]] = Counter()
    add_samples(counts, text, name, ("resource",))
    return counts


def _number(text: str, name: str) -> float:
    (line,) = (line for line in text.splitlines() if line.startswith(f"{name} "))
    return float(line.rpartition(" ")[2])
