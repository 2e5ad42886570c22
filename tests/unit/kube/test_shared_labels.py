from __future__ import annotations

import gc

import orjson

from tests.unit.kube.cluster import node
from webhook.kube import watched_resources
from webhook.kube.watched_resources import NODES, SharedLabels


def test_they_are_a_mapping() -> None:
    """They equal the original dict, in both directions."""
    labels = {"a": "1", "b": "2"}
    shared = SharedLabels.of(labels)
    assert shared == labels
    assert labels == shared
    assert (shared["a"], shared.get("b"), shared.get("c"), shared.get("c", "3")) == (
        *("1", "2", None, "3"),
    )
    assert ("a" in shared, "c" in shared, len(shared), list(shared)) == (True, False, 2, ["a", "b"])


def test_other_values_or_names_are_other_labels() -> None:
    """This holds with and without shared names."""
    labels = SharedLabels.of({"a": "1", "b": "2"})
    assert labels == SharedLabels.of({"a": "1", "b": "2"})
    assert labels == SharedLabels.of({"b": "2", "a": "1"})
    assert labels != SharedLabels.of({"a": "1", "b": "3"})
    assert labels != SharedLabels.of({"a": "1", "c": "2"})
    assert labels != {"a": "1"}


def test_names_and_equal_values_are_kept_once() -> None:
    """Each JSON document has its own strings; unused names are forgotten."""
    labels_of_nodes = [
        SharedLabels.of(orjson.loads(b'{"example.org/one":"a value","example.org/two":"%d"}' % n))
        for n in range(3)
    ]
    assert len({id(labels._names) for labels in labels_of_nodes}) == 1
    assert len({id(labels["example.org/one"]) for labels in labels_of_nodes}) == 1
    names = ("example.org/one", "example.org/two")
    assert names in watched_resources._SHARED
    labels_of_nodes.clear()
    gc.collect()
    assert names not in watched_resources._SHARED


def test_a_heartbeat_is_not_a_change_of_a_node() -> None:
    """Images, conditions, annotations and versions do not count; labels and resources do."""
    before = NODES.project(node("a", "Tesla-V100", v100="8"))
    beat = node("a", "Tesla-V100", v100="8")
    beat["metadata"] |= {"resourceVersion": "7", "annotations": {"x": "y"}, "managedFields": [{}]}
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
    beat["status"] |= {"conditions": [ready], "images": [{"names": ["a"]}]}
    beat["status"]["allocatable"] |= {"cpu": "64", "ephemeral-storage": "1"}
    assert NODES.project(beat) == before
    assert NODES.project(node("a", "Tesla-V100", v100="7")) != before
    assert NODES.project(node("a", "Tesla-A100", v100="8")) != before
    ready["status"] = "Unknown"
    assert NODES.project(beat) != before


def test_equal_amounts_and_availabilities_are_kept_once() -> None:
    """A tainted pool may have thousands of nodes; each document has its own strings."""
    taint = {"key": "example.org/pool", "effect": "NoSchedule"}
    written = orjson.dumps({**node("a"), "spec": {"taints": [taint]}})
    first, second = NODES.project(orjson.loads(written)), NODES.project(orjson.loads(written))
    assert first is not None
    assert second is not None
    assert first.availability.taint_keys == ("example.org/pool",)
    assert first.availability is second.availability
    assert first.resources is second.resources
