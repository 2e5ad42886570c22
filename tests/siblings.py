"""A sibling of a pod: another pod of the same workload, as its controller would make it."""

from __future__ import annotations

import re
from typing import Any

_INDEXES = re.compile(r"(job-completion|pod|worker|group|replica|job)-index$|pod-name$")
_VARIABLES = {
    *("JOB_COMPLETION_INDEX", "NODE_RANK", "RANK", "PET_NODE_RANK", "LWS_WORKER_INDEX"),
    *("VC_TASK_INDEX", "VK_TASK_INDEX"),
}
_TOKEN = re.compile(r"kube-api-access-\w{5}")


def sibling_of(pod: Any) -> Any:
    """Return a copy of anything like a pod, with other names and indexes."""
    if pod.__class__ is not dict:
        return pod
    sibling = dict(pod)
    if pod.get("metadata").__class__ is dict:
        sibling["metadata"] = _metadata(pod["metadata"])
    if pod.get("spec").__class__ is dict:
        sibling["spec"] = {**_renamed(pod["spec"]), "hostname": "web-8"}
    return sibling


def _metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    sibling = {**metadata, "uid": "e4", "resourceVersion": "7"}
    for field in metadata.keys() & {"name", "generateName"}:
        if metadata[field].__class__ is str and metadata[field]:
            sibling[field] = f"{metadata[field]}8"
    for field in metadata.keys() & {"labels", "annotations"}:
        if metadata[field].__class__ is dict:
            sibling[field] = {
                key: "8" if value.__class__ is str and _INDEXES.search(key) else value
                for key, value in metadata[field].items()
            }
    return sibling


def _renamed(node: Any) -> Any:
    """Return the value with another token volume, other claims and other indexes in `env`."""
    if node.__class__ is list:
        return [_renamed(member) for member in node]
    if node.__class__ is not dict:
        return node
    sibling = {key: _renamed(value) for key, value in node.items()}
    name, value = sibling.get("name"), sibling.get("value")
    if name.__class__ is str and _TOKEN.fullmatch(name):
        sibling["name"] = "kube-api-access-zzzzz"
    if name.__class__ is str and name in _VARIABLES and value.__class__ is str and value.isdigit():
        sibling["value"] = "8"
    if sibling.get("claimName").__class__ is str:
        sibling["claimName"] = "data-web-8"
    return sibling
