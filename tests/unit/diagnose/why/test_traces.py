"""What each mutation leaves on a pod, whatever the configuration."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.why.pods import Item, pod_in_cluster
from webhook.decide.mutations import MUTATIONS
from webhook.decide.mutations.nvlink.remap import wrapping
from webhook.diagnose.why.traces import TRACES
from webhook.model.pod import Pod


def test_all_mutations_but_one_leave_a_trace() -> None:
    """`memory-limit` only removes something."""
    names = [mutation.name for mutation in MUTATIONS if mutation.name != "memory-limit"]
    assert sorted(TRACES) == sorted(names)


def pod_with(annotations: Item | None = None, spec: Item | None = None, **container: Any) -> Pod:
    """Return a pod with a container that does nothing, and one with these fields."""
    containers = [{"name": "side"}, {"name": "main", **container}]
    return Pod(pod_in_cluster(annotations or {}, spec={"containers": containers, **(spec or {})}))


def requesting(*names: str) -> Pod:
    """Return a pod whose container requests resources."""
    amounts = dict.fromkeys(names, "1")
    return pod_with(resources={"limits": amounts, "requests": amounts})


def mounting(volume: str) -> Pod:
    """Return a pod whose container mounts a volume."""
    return pod_with(volumeMounts=[{"name": volume, "mountPath": "/x"}])


LEFT = [
    ("ipc-lock", pod_with(securityContext={"capabilities": {"add": ["IPC_LOCK"]}})),
    ("ipc-lock", pod_with(securityContext={"privileged": True})),
    ("ipc-lock", pod_with({"ulimits.noderesource.dev/container.main": "RLIMIT_MEMLOCK"})),
    ("rdma-resources", requesting("rdma/a")),
    ("rdma-resources", requesting("acme.com/ib")),
    ("rdma-resources", requesting("nvidia.com/hostdev")),
    ("rdma-resources", requesting("nvidia.com/h100", "nvidia.com/rail0")),
    ("claims", pod_with(resources={"claims": [{"name": "x"}]})),
    ("networks", pod_with({"k8s.v1.cni.cncf.io/networks": "a"})),
    ("env", pod_with(env=[{"name": "A", "value": "b"}])),
    ("config-files", mounting("rdma-lab-nccl-conf")),
    ("hcoll", pod_with(env=[{"name": "OMPI_MCA_coll_hcoll_enable", "value": "0"}])),
    ("nvlink", pod_with(command=[*wrapping(1), "train"])),
    ("shared-memory", mounting("rdma-lab-shm")),
    ("placement", pod_with(spec={"nodeSelector": {"a": "b"}})),
]


@pytest.mark.parametrize(
    ("mutation", "pod"), LEFT, ids=[f"{number} {name}" for number, (name, _) in enumerate(LEFT)]
)
def test_a_trace_that_is_left(mutation: str, pod: Pod) -> None:
    """One container suffices."""
    assert TRACES[mutation].is_left(pod)


@pytest.mark.parametrize("mutation", TRACES)
def test_a_trace_that_is_gone(mutation: str) -> None:
    """A container with a GPU and a volume of its own shows nothing."""
    gpu = {"limits": {"nvidia.com/v100": "1"}, "requests": {"nvidia.com/v100": "1"}}
    mounts = [{"name": "data", "mountPath": "/data"}]
    assert not TRACES[mutation].is_left(pod_with(resources=gpu, volumeMounts=mounts))
