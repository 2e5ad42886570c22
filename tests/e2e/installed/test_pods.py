"""A pod that opts in is patched, scheduled to a node with RDMA, and started with all changes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.node import NAME as REAL
from tests.e2e.documents import Document
from tests.e2e.installed.space import Space

#: The number of CAP_IPC_LOCK, capabilities(7).
IPC_LOCK = 14
#: The files in a container, by version of cgroups, with their content if there is no limit.
_UNLIMITED = {
    "/sys/fs/cgroup/memory.max": {"max"},
    # Version 1 rounds its largest number down to whole pages.
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": {str(2**63 - 4096)},
}
#: Sleeps like the image's own command; but it mentions sshd, like the command of a worker for sshd.
SSHD = ["/bin/sh", "-c", "/usr/sbin/sshd -t; exec sleep infinity"]
CONF = "/etc/nccl.conf"


@pytest.fixture(scope="module")
def bare_node(cluster: Cluster) -> Iterator[str]:
    """Make a fake node with V100s but without RDMA."""
    (name,) = cluster.fake_nodes(1, {"rdma": "none"}, {"nvidia.com/v100": "64"})
    yield name
    cluster.kubectl("delete", "node", name)


@pytest.fixture(scope="module")
def pods(space: Space, bare_node: str, a100_node: str) -> Iterator[dict[str, Document]]:
    """Create pods that all prefer the node without RDMA; return them once scheduled."""
    assert a100_node != bare_node
    wish = {"matchExpressions": [{"key": "rdma", "operator": "In", "values": ["none"]}]}
    preferred = [{"weight": 100, "preference": wish}]
    liking = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    documents = {
        "v100": space.pod("v100", "nvidia.com/v100", affinity=liking),
        "a100": space.pod("a100", "nvidia.com/a100", affinity=liking),
        "sshd": space.pod("sshd", "nvidia.com/v100", affinity=liking, container={"command": SSHD}),
        "plain": space.pod("plain", "nvidia.com/v100", {}, affinity=liking),
    }
    space.create(*documents.values())
    for name in documents:
        space.kubectl("wait", "--for=condition=PodScheduled", f"pod/{name}", "--timeout=300s")
    yield {name: space.get(name) for name in documents}
    space.delete(*documents)


def test_the_rdma_resource_chooses_the_node(
    pods: dict[str, Document], bare_node: str, a100_node: str
) -> None:
    """Each lands where its GPU type has RDMA; the same pod without the annotation does not."""
    nodes = {name: pod["spec"]["nodeName"] for name, pod in pods.items()}
    assert nodes == {"v100": REAL, "sshd": REAL, "a100": a100_node, "plain": bare_node}
    rdma = {
        name: [key for key in pod["spec"]["containers"][0]["resources"]["limits"] if "rdma" in key]
        for name, pod in pods.items()
    }
    assert rdma == {
        "v100": ["rdma/rdma_v100"],
        "sshd": ["rdma/rdma_v100"],
        "a100": ["rdma/rdma_a100"],
        "plain": [],
    }


def test_the_kubelet_starts_the_patched_pod(space: Space, pods: dict[str, Document]) -> None:
    """In the container, IPC_LOCK is effective, the fabric's env is set, and memory is unlimited."""
    assert "v100" in pods
    space.wait_until_started("v100")
    rank = json.loads(space.inside("v100", "rank"))
    assert int(rank["capEff"], 16) >> IPC_LOCK & 1
    # The first = is part of the value: exactly these devices, not all with that prefix.
    assert rank["env"]["NCCL_IB_HCA"] == "=mlx5_0,mlx5_1"
    assert rank["env"]["NCCL_SOCKET_IFNAME"] == "eth0"
    assert rank["env"]["NCCL_DEBUG"] == "WARN"
    assert rank["env"]["OMPI_MCA_coll_hcoll_enable"] == "0"
    assert _memory(space, "v100")
    requests = pods["v100"]["spec"]["containers"][0]["resources"]["requests"]
    assert requests["memory"] == "64Mi"  # the request stays


def test_a_pod_that_did_not_opt_in_has_no_change(space: Space, pods: dict[str, Document]) -> None:
    """The same pod without the annotation has no changes, so the checks above can fail."""
    document = space.pod("without", "nvidia.com/v100", {}, nodeName=REAL)
    space.create(document)
    space.wait_until_started("without")
    rank = json.loads(space.inside("without", "rank"))
    assert not int(rank["capEff"], 16) >> IPC_LOCK & 1
    assert not [name for name in rank["env"] if name.startswith("NCCL_")]
    assert rank["ncclConf"] is None
    assert not _memory(space, "without")
    space.delete("without")
    assert pods


def test_nccl_conf_reads_as_the_env_does(space: Space, pods: dict[str, Document]) -> None:
    """For ranks that sshd starts, /etc/nccl.conf has what their environment lacks."""
    assert "sshd" in pods
    space.wait_until_started("sshd")
    rank = json.loads(space.inside("sshd", "rank"))
    lines = rank["ncclConf"].splitlines()
    assert sorted(lines) == sorted(
        f"{name}={value}" for name, value in rank["env"].items() if name.startswith("NCCL_")
    )
    assert "NCCL_IB_HCA==mlx5_0,mlx5_1" in lines
    printed = space.inside("sshd", "sh", "-c", f"stat -c %U:%a {CONF}; touch {CONF} || echo no")
    assert printed.endswith("no\n")


def _memory(space: Space, pod: str) -> bool:
    """Return whether a container's memory is unlimited, by its own cgroup."""
    script = " || ".join(f"cat {file}" for file in _UNLIMITED)
    limit = space.inside(pod, "sh", "-c", f"({script}) 2>/dev/null").strip()
    assert limit.isdigit() or limit == "max", limit
    return any(limit in values for values in _UNLIMITED.values())
