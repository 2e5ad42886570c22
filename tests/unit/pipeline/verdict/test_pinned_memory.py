from __future__ import annotations

from typing import Any

import pytest

from tests.builders import context, gpu, pod
from tests.unit.pipeline.verdict.judging import judged, verdict_on
from webhook.decision.facts import PSA_ENFORCE, NamespaceFacts
from webhook.pod.manifest import PodManifest

UNKNOWN = ("unsure", "MemlockUnknown")
EQUIPPED = ("yes", "Equipped")


def secured(security: dict[str, Any], **spec: Any) -> PodManifest:
    """Make a pod whose container has this securityContext."""
    return pod(gpu(securityContext=security), **spec)


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (secured({"runAsUser": 1000}), "does not run as root"),
        (secured({"runAsNonRoot": True, "privileged": True}), "does not run as root"),
        (pod(hostUsers=False), "has a user namespace (hostUsers: false)"),
        (secured({"capabilities": {"drop": ["IPC_LOCK"]}}), "lacks IPC_LOCK"),
        (secured({"capabilities": {"add": ["ALL"], "drop": ["IPC_LOCK"]}}), "lacks IPC_LOCK"),
        (pod(annotations={"rdma.lab/skip": "ipc-lock"}), "lacks IPC_LOCK"),
    ],
    ids=("user", "privileged user", "user namespace", "dropped", "all but dropped", "skipped"),
)
def test_where_the_capability_does_not_help_the_nodes_decide(
    manifest: PodManifest, why: str
) -> None:
    """The message says why, and it is certain if it is known whether the nodes raise memlock."""
    assert judged(manifest) == UNKNOWN
    assert verdict_on(manifest).message == (
        f"trainer {why}: only nodes with memlock raised let it register memory"
    )
    assert judged(manifest, context(defaults={"memlock": "unlimited"})) == EQUIPPED
    limited = verdict_on(manifest, context(defaults={"memlock": "limited"}))
    assert (limited.rdma, limited.because.code) == ("no", "MemlockLimited")
    assert limited.message == f"trainer {why}, and the nodes limit memlock"


def test_an_annotation_may_raise_memlock() -> None:
    """It does so where the nodes run the NRI plugin, unless the user's own does not."""
    where, manifest = context(defaults={"memlock": "nri"}), secured({"runAsUser": 1000})
    assert judged(manifest, where) == EQUIPPED
    manifest["metadata"]["annotations"]["ulimits.nri.containerd.io/container.trainer"] = "[]"
    verdict = verdict_on(manifest, where)
    assert (verdict.rdma, verdict.because.code) == ("no", "MemlockLimited")
    assert verdict.message == "trainer does not run as root, and no annotation raises memlock"


def test_pod_security_may_refuse_the_capability() -> None:
    """Then a root container has none either."""
    space = NamespaceFacts(name="lab", labels={PSA_ENFORCE: "baseline"})
    assert judged(pod(), context(namespace=space)) == UNKNOWN


@pytest.mark.parametrize(
    "security",
    [
        {},
        {"runAsUser": 0, "runAsNonRoot": False},
        {"privileged": True},
        {"capabilities": {"add": ["ipc_lock"]}},
        {"capabilities": {"add": ["ALL"]}},
        {"capabilities": {"drop": ["ALL"]}},
    ],
    ids=("unset", "root", "privileged", "ipc_lock", "all", "all dropped"),
)
def test_root_with_the_capability_may_register_memory(security: dict[str, Any]) -> None:
    """A user that only the image names counts as root."""
    assert judged(secured(security)) == EQUIPPED
