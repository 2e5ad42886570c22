"""The number of the API server's calls of the webhook, by the metrics of both."""

from __future__ import annotations

import time
from collections import Counter
from typing import NamedTuple

from tests.cluster.install import Webhook, add_samples

WEBHOOK = "pods.rdma.lab"
_REQUESTS = "apiserver_admission_webhook_request_total"
#: Seconds without a call after which no further calls by others are expected.
_QUIET = 2.0


class Calls(NamedTuple):
    """The number of calls since the start of the API server and of the running replicas."""

    api_server: int
    ours: int


def calls(webhook: Webhook) -> Calls:
    """Count the calls up to now."""
    return Calls(sum(answers(webhook).values()), _answered(webhook))


def answers(webhook: Webhook) -> Counter[tuple[str, ...]]:
    """Return the API server's calls, by HTTP status code and by whether the pod was rejected."""
    text = webhook.read("/metrics")
    # Only these lines: the whole text has megabytes.
    lines = [line for line in text.splitlines() if line.startswith(_REQUESTS)]
    counts: Counter[tuple[str, ...]] = Counter()
    add_samples(counts, "\n".join(lines) + "\n", _REQUESTS, ("code", "rejected"), name=WEBHOOK)
    return counts


def settled_calls(webhook: Webhook) -> Calls:
    """Wait until there are no calls, and return the count: other tests may leave controllers."""
    while True:
        before = calls(webhook)
        time.sleep(_QUIET)
        after = calls(webhook)
        if before == after:
            return after


def _answered(webhook: Webhook) -> int:
    return webhook.counted("rdma_webhook_requests_total", "endpoint")["mutate",]
