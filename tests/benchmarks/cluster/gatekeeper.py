"""Gatekeeper's mutation: a general webhook in Go, with a mutator for each operation of our patch.

It has none that removes a field, so the memory limit stays.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.benchmarks.cluster.modes import GATEKEEPER, Document
from tests.benchmarks.cluster.servers import until
from tests.cluster.binaries import binary, module_dir
from tests.cluster.cluster import Cluster
from tests.cluster.kinds import install_kinds
from tests.cluster.namespaces import INSIDE

_NAMESPACE = "gatekeeper-system"
#: It runs as a process on the node, but its reports need a pod as their owner: with a name that no
#: pod has (its flag --debug-use-fake-pod), the garbage collector deletes them, and it writes them
#: again, all the time. This pod is never scheduled.
_POD: Document = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"namespace": _NAMESPACE, "name": "gatekeeper"},
    "spec": {
        "schedulerName": "none",
        "containers": [{"name": "manager", "image": "gatekeeper"}],
    },
}
_CONTAINER = "spec.containers[name: *]"
_PODS = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}], "namespaces": [GATEKEEPER.namespace]}
_VERSIONS = [{"groups": [""], "versions": ["v1"], "kinds": ["Pod"]}]


def start_gatekeeper(cluster: Cluster, files: Path, patch: list[Document]) -> None:
    """Start it with the folder's `tls.crt` and `tls.key`, and wait until it uses its mutators."""
    install_kinds(cluster, str(module_dir("gatekeeper") / "charts/gatekeeper/crds"))
    cluster.kubectl("create", "namespace", _NAMESPACE)  # where it reports on its mutators
    cluster.kubectl("apply", "--filename=-", input=json.dumps(_POD))
    flags = [
        f"--host={cluster.network.gateway}",
        f"--port={GATEKEEPER.port}",
        f"--cert-dir={INSIDE / files.relative_to(cluster.directory)}",
        "--disable-cert-rotation",
        "--operation=mutation-webhook",
        "--operation=mutation-controller",
        "--health-addr=0",
        "--log-level=WARNING",
    ]
    environ = {
        "KUBECONFIG": str(cluster.kubeconfig),
        "POD_NAMESPACE": _NAMESPACE,
        "POD_NAME": _POD["metadata"]["name"],
    }
    started = cluster.start("gatekeeper", [binary("gatekeeper"), *flags], environ)
    mutators = _mutators(patch)
    listed = {"apiVersion": "v1", "kind": "List", "items": mutators}
    cluster.kubectl("apply", "--filename=-", input=json.dumps(listed))
    until(lambda: _used(cluster) == len(mutators), started.tail)


def without_memory_limit(pod: Document) -> Document:
    """Return a pod that it changed, with the field removed that it cannot remove."""
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    del limits["memory"]
    return pod


def _used(cluster: Cluster) -> int:
    """Return how many mutators are in use, by its reports."""
    reports = ("get", "mutatorpodstatuses", "--namespace", _NAMESPACE, "--output=json")
    parsed = json.loads(cluster.kubectl(*reports))
    return sum(report["status"].get("enforced", False) for report in parsed["items"])


def _mutators(patch: list[Document]) -> list[Document]:
    """Return the mutators; they are applied in the order of their names."""
    return [
        {"metadata": {"name": f"{number:02}"}, **_mutator(operation)}
        for number, operation in enumerate(patch)
        if operation["op"] != "remove"
    ]


def _mutator(operation: Document) -> Document:
    """Return the mutator of an operation that adds a field."""
    value = operation["value"]
    part, *path = (name.replace("~1", "/") for name in operation["path"].split("/")[1:])
    if part == "metadata":
        return _document("AssignMetadata", f"{part}.{_quoted(path)}", value)
    if path[-1] == "-":  # of the variables
        location, value = f"env[name: {value['name']}].value", value["value"]
    else:
        location = _quoted(path[2:])
    return _document("Assign", f"{_CONTAINER}.{location}", value, applyTo=_VERSIONS)


def _quoted(path: list[str]) -> str:
    return ".".join(map(json.dumps, path))


def _document(kind: str, location: str, value: object, **fields: object) -> Document:
    parameters = {"assign": {"value": value}}
    spec = {"match": _PODS, "location": location, "parameters": parameters, **fields}
    return {"apiVersion": "mutations.gatekeeper.sh/v1", "kind": kind, "spec": spec}
