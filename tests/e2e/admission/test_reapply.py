"""A second `kubectl apply` of a bare pod's file, client-side and server-side."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests.cluster.cluster import Cluster
from tests.e2e.admission.conftest import Webhooks
from tests.e2e.admission.pods import pod, trainer
from tests.e2e.documents import Document

LARGE = {"memory": "64Gi"}
NICE: Document = {"securityContext": {"capabilities": {"add": ["SYS_NICE"]}}}
LAUNCHER: Document = {"command": ["mpirun", "--allow-run-as-root", "-np", "2", "python", "t.py"]}
KEEP = {"rdma.lab/memory-limit": "keep"}
COMPLETE: Document = {"securityContext": {"capabilities": {"add": ["SYS_NICE", "IPC_LOCK"]}}}
WITH_FLAG: Document = {"command": ["mpirun", "-mca", "coll_hcoll_enable", "0", "python", "t.py"]}

FORBIDDEN = "is invalid: spec: Forbidden: pod updates may not change fields other than "
#: Files that the webhook changes, by pod name: the container, and an excerpt of the rejection.
CHANGED = {
    "limit": (trainer(LARGE), '"memory": "64Gi"'),
    "capabilities": (trainer() | NICE, '"IPC_LOCK"'),
    "command": (trainer() | LAUNCHER, "coll_hcoll_enable"),
}
#: Files that the webhook only adds to: the container, and the pod's annotations.
ADDED = {
    "nothing": (trainer(), {}),
    "variables": (trainer() | {"env": [{"name": "A", "value": "b"}]}, {}),
    "request": (trainer(requests=LARGE), {}),
    "limit-kept": (trainer(LARGE), KEEP),
    "capabilities-complete": (trainer() | COMPLETE, {}),
    "command-complete": (trainer() | WITH_FLAG, {}),
    "capabilities-left": (trainer() | NICE, {"rdma.lab/skip": "ipc-lock"}),
    "command-left": (trainer() | LAUNCHER, {"rdma.lab/skip": "hcoll"}),
}

both_sides = pytest.mark.parametrize("side", ["client", "server"])


def _manifest(name: str, container: Document, annotations: Mapping[str, str]) -> str:
    """Write a pod that no node accepts."""
    nowhere = {"example.com/nowhere": "true"}
    manifest = pod("plain", container, annotations=dict(annotations), nodeSelector=nowhere)
    manifest["metadata"]["name"] = name
    return json.dumps(manifest)


def _twice(cluster: Cluster, side: str, manifests: list[str]) -> str:
    """Apply them twice; return kubectl's second output."""
    apply = ("apply", f"--server-side={str(side == 'server').lower()}", "--filename=-")
    documents = "\n---\n".join(manifests)
    cluster.kubectl(*apply, input=documents)
    return cluster.kubectl(*apply, input=documents, check=False)


@both_sides
def test_changed_fields_cannot_be_changed_back(
    cluster: Cluster, webhooks: Webhooks, side: str
) -> None:
    """The file restates the changed fields, and pods are immutable: the API server rejects it."""
    assert webhooks
    manifests = [
        _manifest(f"{name}-{side}", container, {}) for name, (container, _) in CHANGED.items()
    ]
    refusals = _twice(cluster, side, manifests).split("Error from server (Invalid): ")[1:]
    for refusal, (name, (_, excerpt)) in zip(refusals, CHANGED.items(), strict=True):
        assert f'Pod "{name}-{side}" {FORBIDDEN}' in refusal
        assert excerpt in refusal.partition(FORBIDDEN)[2]


@both_sides
def test_added_fields_do_not_matter(cluster: Cluster, webhooks: Webhooks, side: str) -> None:
    """Fields that the file does not mention stay as they are in the cluster."""
    assert webhooks
    manifests = [_manifest(f"{name}-{side}", *case) for name, case in ADDED.items()]
    printed = _twice(cluster, side, manifests).splitlines()
    passed = ("unchanged", "configured") if side == "client" else ("serverside-applied",)
    for line, name in zip(printed, ADDED, strict=True):
        assert line in {f"pod/{name}-{side} {how}" for how in passed}
    text = cluster.kubectl("get", "pod", f"nothing-{side}", "-n", "admission-plain", "-o", "json")
    stored = json.loads(text)
    assert "rdma.lab/status" in stored["metadata"]["annotations"]
    assert stored["spec"]["containers"][0]["resources"]["limits"]["rdma/rdma_v100"] == "1"


@both_sides
def test_a_file_as_preview_writes_it_can_be_applied_again(
    cluster: Cluster, webhooks: Webhooks, side: str
) -> None:
    """`preview -o yaml` contains all changes of the webhook, so applying it changes nothing."""
    command = ("preview", "-", "-o", "yaml", "-c", str(webhooks["informed"].config))
    written = subprocess.run(
        [sys.executable, "-m", "webhook", *command],
        input=_manifest(f"previewed-{side}", trainer(LARGE) | NICE | LAUNCHER, {}),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "IPC_LOCK" in written
    assert FORBIDDEN not in _twice(cluster, side, [written])


def test_replacing_makes_it_anew(cluster: Cluster, webhooks: Webhooks) -> None:
    """`kubectl replace --force` deletes and creates the pod, which then has all changes again."""
    assert webhooks
    manifest = _manifest("replaced", trainer(LARGE), {})
    cluster.kubectl("apply", "--filename=-", input=manifest)
    printed = cluster.kubectl("replace", "--force", "--filename=-", input=manifest)
    assert "pod/replaced replaced" in printed
