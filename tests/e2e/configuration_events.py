"""Events about the FabricConfiguration."""

from __future__ import annotations

import json
from typing import Any

from tests.cluster.cluster import Cluster
from tests.waiting import until

_PATH = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind=FabricConfiguration"


def events(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the Events about the object, of the last hour."""
    listed: list[dict[str, Any]] = json.loads(cluster.kubectl("get", "--raw", _PATH))["items"]
    return listed


def event_created(cluster: Cluster, reason: str, words: str = "") -> dict[str, Any]:
    """Wait for an Event with a reason and words in its message, and return it."""
    created: list[dict[str, Any]] = []

    def is_created() -> bool:
        created[:] = [
            event
            for event in events(cluster)
            if event["reason"] == reason and words in event["message"]
        ]
        return bool(created)

    until(is_created)
    return created[-1]


def delete_events(cluster: Cluster) -> None:
    """Delete the Events about the object, so that a test sees only its own."""
    path = _PATH.partition("?")[0]
    for event in events(cluster):
        name = event["metadata"]["name"]
        cluster.kubectl("delete", "--raw", f"{path}/{name}")
