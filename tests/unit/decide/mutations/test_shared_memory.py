from typing import Any

import pytest

from tests.builders import container, defaulted, pod
from tests.unit.decide.mutations.alone import codes, outcome_lines, run
from webhook.decide.mutations.shared_memory import MUTATION
from webhook.model.annotations import UserAnnotations
from webhook.model.fabric import Fabric

FABRIC = Fabric(name="v100-ib", shared_memory="16Gi")
VOLUME = {"name": "rdma-lab-shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}}
MOUNT = {"name": "rdma-lab-shm", "mountPath": "/dev/shm"}


def test_every_target_gets_the_same_volume() -> None:
    """The containers of a pod share the volume, as they share the node's memory."""
    draft = run(MUTATION, pod(container("a"), container("b")), fabric=FABRIC)
    assert outcome_lines(draft) == ["a applied Added", "b applied Added"]
    assert draft.pod["spec"]["volumes"] == [VOLUME]
    assert [app["volumeMounts"] for app in draft.pod["spec"]["containers"]] == [[MOUNT], [MOUNT]]


def test_other_volumes_and_mounts_stay_in_front() -> None:
    """The user's lists are only appended to."""
    user_mount = {"name": "data", "mountPath": "/data"}
    draft = run(
        MUTATION,
        pod(container(volumeMounts=[user_mount]), volumes=[{"name": "data"}]),
        fabric=FABRIC,
    )
    assert draft.ops == [
        {"op": "add", "path": "/spec/volumes/-", "value": VOLUME},
        {"op": "add", "path": "/spec/containers/0/volumeMounts/-", "value": MOUNT},
    ]


def test_a_second_decision_finds_it_there() -> None:
    """Nothing is left to do, and there is no new outcome."""
    first = run(MUTATION, pod(container("a"), container("b")), fabric=FABRIC)
    second = run(MUTATION, defaulted(first.pod), fabric=FABRIC)
    assert (second.ops, outcome_lines(second)) == ([], ["a already Present", "b already Present"])
    assert codes(second) == codes(first) == []


def test_a_container_added_later_gets_the_same_volume() -> None:
    """Another webhook's sidecar may have become a target between two calls."""
    first = run(MUTATION, pod(container("a")), fabric=FABRIC)
    first.pod["spec"]["containers"].append(container("b"))
    second = run(MUTATION, defaulted(first.pod), fabric=FABRIC)
    assert outcome_lines(second) == ["a already Present", "b applied Added"]
    assert second.pod["spec"]["volumes"] == [VOLUME]


@pytest.mark.parametrize("path", ["/dev/shm", "/dev/shm/", "dev//shm"])
def test_a_mount_of_the_user_stays(path: str) -> None:
    """Any mount there stays, however its path is written."""
    mounts = [{"name": "shm", "mountPath": path}]
    manifest = pod(container("a", volumeMounts=mounts), container("b"), volumes=[{"name": "shm"}])
    draft = run(MUTATION, manifest, fabric=FABRIC)
    assert outcome_lines(draft) == ["a skipped OwnSharedMemory", "b applied Added"]


@pytest.mark.parametrize("fabric", [None, Fabric(name="v100-ib")])
def test_without_a_size_nothing_is_done(fabric: Fabric | None) -> None:
    """The site sets the size; the webhook does not guess it."""
    assert outcome_lines(run(MUTATION, pod(container()), fabric=fabric)) == [
        "skipped NotConfigured"
    ]


def test_the_nodes_own_shared_memory_stays() -> None:
    """With hostIPC, a volume would hide the host's shared memory that the pod requested."""
    draft = run(MUTATION, pod(container(), hostIPC=True), fabric=FABRIC)
    assert outcome_lines(draft) == ["skipped HostIPC"]


def test_nvlink_between_pods_excludes_it() -> None:
    """NCCL compares st_dev of /dev/shm; also if nvlink is skipped, so that both calls agree."""
    draft = run(MUTATION, pod(container()), fabric=FABRIC, annotations=UserAnnotations(nvlink=True))
    assert outcome_lines(draft) == ["skipped NVLinkRequested"]


@pytest.mark.parametrize(
    "source", [{"emptyDir": {}}, {"hostPath": {"path": "/dev/shm"}}, {}, {"emptyDir": None}]
)
def test_a_volume_of_the_user_with_our_name_stays(source: dict[str, Any]) -> None:
    """It is not a memory volume, so a mount would not give the fabric's shared memory."""
    manifest = pod(container("a", volumeMounts=[MOUNT]), container("b"))
    manifest["spec"]["volumes"] = [{"name": "rdma-lab-shm", **source}]
    draft = run(MUTATION, manifest, fabric=FABRIC)
    assert outcome_lines(draft) == ["a skipped OwnSharedMemory", "b skipped VolumeNameTaken"]
