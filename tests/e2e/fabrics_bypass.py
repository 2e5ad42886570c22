"""Fabrics that are stored without a check, as by a restore of etcd, or a rollback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.fabrics import PATH
from tests.cluster.install import VALIDATION, Webhook
from tests.e2e.documents import Document
from tests.e2e.wire import Response, send
from tests.waiting import until

MERGE = "application/merge-patch+json"


@contextmanager
def unchecked(webhook: Webhook) -> Iterator[None]:
    """Turn off the check of fabrics during the block."""
    _check_only(webhook, {"matchLabels": {"rdma.lab/test": "none"}})
    try:
        # The API server takes a moment to read the selector.
        refused: list[Document] = [{"name": "a", "resources": [{"name": "rdma/a-b"}]}]
        until(lambda: patch_fabrics(webhook.cluster, refused, dry=True).code == 200)
        yield
    finally:
        _check_only(webhook, {})


def patch_fabrics(cluster: Cluster, fabrics: list[Document], *, dry: bool = False) -> Response:
    """Replace the list of fabrics."""
    path = f"{PATH}?dryRun=All" if dry else PATH
    return send(cluster, "PATCH", path, {"spec": {"fabrics": fabrics}}, MERGE)


def _check_only(webhook: Webhook, selector: dict[str, Any]) -> None:
    """Let the API server have only objects with these labels checked."""
    operation = {"op": "add", "path": "/webhooks/0/objectSelector", "value": selector}
    patch = ("--type=json", f"--patch={json.dumps([operation])}")
    webhook.kubectl("patch", VALIDATION, *patch)
