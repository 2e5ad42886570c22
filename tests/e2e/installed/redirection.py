"""The API server asks another Service about configurations, as if no replica answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.install import VALIDATION, Webhook


@contextmanager
def redirected(webhook: Webhook, name: str) -> Iterator[None]:
    """Have the API server call another Service, as if no replica answered."""
    path = "/webhooks/0/clientConfig/service/name"

    def call(service: str) -> None:
        patch = [{"op": "replace", "path": path, "value": service}]
        change = ("--type=json", f"--patch={json.dumps(patch)}")
        webhook.cluster.kubectl("patch", VALIDATION, *change)

    call(name)
    try:
        yield
    finally:
        call("rdma-webhook")
