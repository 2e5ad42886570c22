from typing import Any

import pytest

from webhook.errors import ShapeError
from webhook.model.container import (
    clean,
    infiniband_volumes,
    mount_at,
    mount_over,
    mounted_path,
    volume_named,
)

PATH = ("spec", "containers", 0)


def pod(*mount_paths: Any, volumes: Any = None) -> dict[str, Any]:
    """Make a pod with one container that mounts a volume at each path."""
    mounts = [{"name": f"v{index}", "mountPath": path} for index, path in enumerate(mount_paths)]
    return {"spec": {"containers": [{"volumeMounts": mounts}], "volumes": volumes}}


@pytest.mark.parametrize(
    "written",
    [
        "/dev/shm",
        "/dev/shm/",
        "//dev//shm",
        "dev/shm",
        "/dev/./shm",
        "/dev/x/../shm",
        "./dev/shm/.",
    ],
)
def test_a_mount_is_found_however_its_path_is_written(written: str) -> None:
    """A relative path counts as absolute, as in the kubelet, and is cleaned as in containerd."""
    assert mount_at(pod("/a", written), PATH, "/dev/shm") == {"name": "v1", "mountPath": written}


@pytest.mark.parametrize("written", ["/dev", "/dev/shm/x", "/dev/shmem", "/", "/x/dev/shm", ""])
def test_a_mount_elsewhere_is_none_there(written: str) -> None:
    """A mount on a directory above or below a path is not a mount at that path."""
    assert mount_at(pod(written), PATH, "/dev/shm") is None


@pytest.mark.parametrize(
    ("written", "above"),
    [
        ("/etc", "/etc"),
        ("/etc/", "/etc"),
        ("etc", "/etc"),
        ("/", "/"),
        ("/etc/nccl.conf", None),
        ("/etc/nccl.conf.d", None),
        ("/et", None),
        ("/etc/nccl", None),
    ],
)
def test_a_directory_above_hides_the_file(written: str, above: str | None) -> None:
    """A volume at /etc hides the image's /etc, and our file would be written into that volume."""
    assert mount_over(pod("/data", written), PATH, "/etc/nccl.conf") == above


def test_clean_keeps_one_leading_slash() -> None:
    """POSIX keeps two leading slashes; Go's filepath.Clean does not."""
    written = ("//a", "/", "", "a/..", "/a//b/")
    assert [clean(path) for path in written] == ["/a", "/", "/", "/", "/a/b"]


def test_volumes_are_found_by_name() -> None:
    """Volumes are looked up by name, which is unique in a pod."""
    volumes = [{"name": "a"}, {"name": "b", "emptyDir": {}}]
    assert volume_named(pod(volumes=volumes), "b") == volumes[1]
    assert volume_named(pod(volumes=volumes), "c") is None
    assert volume_named(pod(), "a") is None


def test_a_wrong_type_is_named_with_its_place() -> None:
    """The API server would reject it with a worse message."""
    with pytest.raises(ShapeError, match=r"^spec.containers\[0\].volumeMounts\[0\].mountPath must"):
        mount_at(pod(7), PATH, "/dev/shm")
    with pytest.raises(ShapeError, match=r"^spec.volumes must be a list"):
        volume_named(pod(volumes={}), "a")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/dev/infiniband", "/dev/infiniband"),
        ("/dev/infiniband/", "/dev/infiniband"),
        ("/dev/infiniband/uverbs0", "/dev/infiniband/uverbs0"),
        ("/dev", "/dev"),
        ("/dev/infiniband2", ""),
        ("/dev/shm", ""),
        (None, ""),
    ],
    ids=repr,
)
def test_devices_may_be_shown_by_the_nodes_path(path: Any, found: str) -> None:
    """The container must mount the volume, which is of type hostPath."""
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "v0", "hostPath": {"path": path}}]
    shown = infiniband_volumes(pod(volumes=volumes))
    assert shown == ({"v0": found} if found else {})
    assert mounted_path(pod("/anywhere"), PATH, shown) == found
    assert mounted_path(pod(), PATH, shown) == ""
