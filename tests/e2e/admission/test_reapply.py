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
from tests.e2e.asking import Document

LARGE = {"memory": "64Gi"}
NICE: Document = {"securityContext": {"capabilities": {"add": ["SYS_NICE"]}}}
LAUNCHER: Document = {"command": ["mpirun", "--allow-run-as-root", "-np", "2", "python", "t.py"]}
KEEP = {"rdma.lab/memory-limit": "keep"}
BOTH: Document = {"securityContext": {"capabilities": {"add": ["SYS_NICE", "IPC_LOCK"]}}}
WITH_FLAG: Document = {"command": ["mpirun", "-mca", "coll_hcoll_enable", "0", "python", "t.py"]}

FORBIDDEN = "is invalid: spec: Forbidden: pod updates may not change fields other than "
#: What the webhook changes of a file, by pod name: the container, and what the rejection shows.
CHANGED = {
    "limit": (trainer(LARGE), '"memory": "64Gi"'),
    "capabilities": (trainer() | NICE, '"IPC_LOCK"'),
    "command": (trainer() | LAUNCHER, "coll_hcoll_enable"),
}
#: What the webhook only adds to: the container, and the pod's annotations.
ADDED = {
    "nothing": (trainer(), {}),
    "variables": (trainer() | {"env": [{"name": "A", "value": "b"}]}, {}),
    "request": (trainer(requests=LARGE), {}),
    "limit-kept": (trainer(LARGE), KEEP),
    "capabilities-complete": (trainer() | BOTH, {}),
    "command-complete": (trainer() | WITH_FLAG, {}),
    "capabilities-left": (trainer() | NICE, {"rdma.lab/skip": "ipc-lock"}),
    "command-left": (trainer() | LAUNCHER, {"rdma.lab/skip": "hcoll"}),
}

both_sides = pytest.mark.parametrize("side", ["client", "server"])


def _manifest(name: str, container: Document, annotations: Mapping[str, str]) -> str:
    """Write a pod that no node accepts."""
    nowhere = {"example.com/nowhere": "true"}
    made = pod("plain", container, annotations=dict(annotations), nodeSelector=nowhere)
    made["metadata"]["name"] = name
    return json.dumps(made)


def _twice(cluster: Cluster, side: str, manifests: list[str]) -> str:
    """Apply them twice; return kubectl's second output."""
    apply = ("apply", f"--server-side={str(side == 'server').lower()}", "--filename=-")
    many = "\n---\n".join(manifests)
    cluster.kubectl(*apply, input=many)
    return cluster.kubectl(*apply, input=many, check=False)


@both_sides
def test_what_we_changed_of_a_file_cannot_be_changed_back(
    cluster: Cluster, webhooks: Webhooks, side: str
) -> None:
    """The file restates what was changed, and pods are immutable, so the API server rejects it."""
    assert webhooks
    wanted = [_manifest(f"{name}-{side}", one, {}) for name, (one, _) in CHANGED.items()]
    refusals = _twice(cluster, side, wanted).split("Error from server (Invalid): ")[1:]
    for said, (name, (_, shown)) in zip(refusals, CHANGED.items(), strict=True):
        assert f'Pod "{name}-{side}" {FORBIDDEN}' in said
        assert shown in said.partition(FORBIDDEN)[2]


@both_sides
def test_what_we_only_added_does_not_matter(
    cluster: Cluster, webhooks: Webhooks, side: str
) -> None:
    """Fields that the file does not mention stay as they are in the cluster."""
    assert webhooks
    wanted = [_manifest(f"{name}-{side}", *one) for name, one in ADDED.items()]
    said = _twice(cluster, side, wanted).splitlines()
    passed = ("unchanged", "configured") if side == "client" else ("serverside-applied",)
    for line, name in zip(said, ADDED, strict=True):
        assert line in {f"pod/{name}-{side} {how}" for how in passed}
    shown = cluster.kubectl("get", "pod", f"nothing-{side}", "-n", "admission-plain", "-o", "json")
    found = json.loads(shown)
    assert "rdma.lab/status" in found["metadata"]["annotations"]
    assert found["spec"]["containers"][0]["resources"]["limits"]["rdma/rdma_v100"] == "1"


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
    said = cluster.kubectl("replace", "--force", "--filename=-", input=manifest)
    assert "pod/replaced replaced" in said
