import re
from typing import Any

import pytest

from webhook.errors import ShapeError
from webhook.model.pod import Pod
from webhook.model.pod.volumes import clean

PATH = ("spec", "containers", 0)


def pod(*mount_paths: Any, volumes: Any = None) -> Pod:
    """Make a pod with one container that mounts a volume at each path."""
    mounts = [{"name": f"v{index}", "mountPath": path} for index, path in enumerate(mount_paths)]
    return Pod({"spec": {"containers": [{"volumeMounts": mounts}], "volumes": volumes}})


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
def test_a_mount_matches_in_any_spelling_of_its_path(written: str) -> None:
    """A relative path counts as absolute, as in the kubelet, and is cleaned as in containerd."""
    assert pod("/a", written).container(PATH).mount_at("/dev/shm") == {
        "name": "v1",
        "mountPath": written,
    }


@pytest.mark.parametrize("written", ["/dev", "/dev/shm/x", "/dev/shmem", "/", "/x/dev/shm", ""])
def test_a_mount_elsewhere_is_none_there(written: str) -> None:
    """A mount on a directory above or below a path is not a mount at that path."""
    assert pod(written).container(PATH).mount_at("/dev/shm") is None


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
    assert pod("/data", written).container(PATH).mounted_parent("/etc/nccl.conf") == above


def test_clean_keeps_a_single_leading_slash() -> None:
    """POSIX keeps two leading slashes; Go's filepath.Clean does not."""
    written = ("//a", "/", "", "a/..", "/a//b/")
    assert [clean(path) for path in written] == ["/a", "/", "/", "/", "/a/b"]


def test_volumes_are_looked_up_by_name() -> None:
    """Volumes are looked up by name, which is unique in a pod."""
    volumes = [{"name": "a"}, {"name": "b", "emptyDir": {}}]
    second = pod(volumes=volumes).volume("b")
    assert second is not None
    assert (second.manifest, second.path) == (volumes[1], ("spec", "volumes", 1))
    assert pod(volumes=volumes).volume("c") is None
    assert pod().volume("a") is None


def test_a_wrong_type_is_named_with_its_place() -> None:
    """The API server would reject it with a worse message."""
    with pytest.raises(ShapeError, match=r"^spec.containers\[0\].volumeMounts\[0\].mountPath must"):
        pod(7).container(PATH).mount_at("/dev/shm")
    with pytest.raises(ShapeError, match=r"^spec.volumes must be a list"):
        pod(volumes={}).volume("a")


@pytest.mark.parametrize(
    ("path", "device_path"),
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
def test_devices_may_be_shown_by_the_nodes_path(path: Any, device_path: str) -> None:
    """The container must mount the volume, which is of type hostPath."""
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "v0", "hostPath": {"path": path}}]
    device_volumes = pod(volumes=volumes).infiniband_volumes
    assert device_volumes == ({"v0": device_path} if device_path else {})
    mounting = pod("/anywhere").container(PATH).mounted_volumes(device_volumes)
    assert list(mounting) == (["v0"] if device_path else [])
    assert list(pod().container(PATH).mounted_volumes(device_volumes)) == []


@pytest.mark.parametrize(
    ("volume", "place"),
    [
        ({"downwardAPI": {"items": "x"}}, "spec.volumes[1].downwardAPI.items"),
        ({"projected": {"sources": 3}}, "spec.volumes[1].projected.sources"),
        (
            {"projected": {"sources": [{}, {"downwardAPI": {"items": [7]}}]}},
            "spec.volumes[1].projected.sources[1].downwardAPI.items[0]",
        ),
    ],
    ids=str,
)
def test_a_list_of_the_wrong_type_is_named_with_its_volume(
    volume: dict[str, Any], place: str
) -> None:
    """A pod may have many volumes."""
    two = Pod({"spec": {"volumes": [{"name": "other"}, {"name": "info", **volume}]}})
    (read,) = two.volumes("downwardAPI", "projected")
    with pytest.raises(ShapeError, match=re.escape(place)):
        list(read.projected_item_lists())
