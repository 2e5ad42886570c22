"""A workload of each kind of controller, and short ways to see what it adds to the pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.pod.manifest import PodManifest, at
from webhook.workloads.controllers import live_pods
from webhook.workloads.templates import templates_of


def template(name: str = "main", **container: Any) -> dict[str, Any]:
    """Make a pod template that has opted in, with one container that has an image."""
    return {
        "metadata": {"annotations": {"rdma.lab/enable": "true"}},
        "spec": {"containers": [{"name": name, "image": "x", **container}]},
    }


def workload(
    kind: str, spec: Mapping[str, Any], *, name: str = "job", **metadata: Any
) -> dict[str, Any]:
    """Make an object; `kind` is "GROUP/VERSION KIND" as in the table of controllers."""
    api_version, _, word = kind.rpartition(" ")
    return {
        "apiVersion": api_version,
        "kind": word,
        "metadata": {"name": name, "namespace": "lab", **metadata},
        "spec": dict(spec),
    }


def lives(value: dict[str, Any]) -> list[PodManifest]:
    """Return the pods that the controller makes of all templates in an object."""
    return [live.pod for found in templates_of(value) for live in live_pods(found)]


def first(value: dict[str, Any]) -> dict[str, Any]:
    """Return the first container of the only pod."""
    (pod,) = lives(value)
    found: dict[str, Any] = pod["spec"]["containers"][0]
    return found


def labels(pod: PodManifest) -> dict[str, str]:
    """Return the pod's labels."""
    return at(pod, ("metadata", "labels")) or {}


def env(container: Mapping[str, Any]) -> dict[str, Any]:
    """Return a container's literal variables by name; None for the others."""
    return {one["name"]: one.get("value") for one in container.get("env", [])}


def mounts(container: Mapping[str, Any]) -> list[str]:
    """List the paths where the container mounts something."""
    return [one["mountPath"] for one in container.get("volumeMounts", [])]
