"""The common part is the same for the pods of a workload, and has what a decision depends on."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.builders import container, fabric, fabrics, pod
from tests.siblings import sibling_of
from webhook.decide.common_part import common_part
from webhook.model.fabric import FabricEnv

CONFIGURATION = fabrics()
INDEX = "batch.kubernetes.io/job-completion-index"
TOKEN = "kube-api-access-7xkz2"
TOKEN_MOUNT = {"name": TOKEN, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
TOKEN_VOLUME = {"name": TOKEN, "projected": {"sources": []}}


def part_of(manifest: Any, *members: Any) -> Any:
    """Return the common part of a pod, by default for fabrics that set no index."""
    return common_part(manifest, fabrics(*members) if members else CONFIGURATION)


def field_env(name: str, path: str) -> dict[str, Any]:
    """Make a variable that reads a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def trainer(*env: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Make a container with these variables."""
    return container(env=list(env), **fields)


def indexed(index: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Make a pod with an index in its labels and its name."""
    manifest = pod(*containers or [container()], labels={"app": "a", INDEX: index}, **spec)
    manifest["metadata"] |= {"name": f"a-{index}", "generateName": f"a-{index}-"}
    return manifest


def job_pod() -> dict[str, Any]:
    """Make a pod as the Job controller and the API server do."""
    manifest = indexed(
        "0",
        trainer(
            field_env("JOB_COMPLETION_INDEX", f"metadata.labels['{INDEX}']"),
            {"name": "NODE_RANK", "value": "0"},
            {"name": "NCCL_DEBUG", "value": "INFO"},
            volumeMounts=[{"name": "data", "mountPath": "/data"}, TOKEN_MOUNT],
        ),
        hostname="a-0",
        subdomain="a",
        initContainers=[container("init", volumeMounts=[TOKEN_MOUNT]), container("bare")],
        volumes=[
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-a-0"}},
            TOKEN_VOLUME,
        ],
    )
    manifest["metadata"] |= {"uid": "0", "namespace": "lab", "ownerReferences": [{"uid": "1"}]}
    return manifest | {"status": {"phase": "Pending"}}


def test_pods_of_a_workload_have_one_part() -> None:
    """They differ in names, indexes and volumes; the part has what they share."""
    manifest = job_pod()
    before = deepcopy(manifest)
    common = part_of(manifest)
    assert part_of(sibling_of(manifest)) == common
    assert manifest == before
    assert common["metadata"] == {
        "labels": {"app": "a", INDEX: "0"},
        "annotations": before["metadata"]["annotations"],
        "namespace": "lab",
        "generateName": "0",
    }
    assert common.keys() == before.keys() - {"status"}
    assert common["spec"].keys() == before["spec"].keys() - {"hostname"}
    assert common["spec"]["subdomain"] == "a"


def test_nothing_is_removed_from_lists() -> None:
    """The operations of a patch contain the indexes of list items."""
    before, common = job_pod()["spec"], part_of(job_pod())["spec"]
    assert [volume.keys() for volume in common["volumes"]] == [
        volume.keys() for volume in before["volumes"]
    ]
    for field in ("containers", "initContainers"):
        for original, copied in zip(before[field], common[field], strict=True):
            assert original.keys() == copied.keys()
            for part in ("env", "volumeMounts"):
                assert len(original.get(part, [])) == len(copied.get(part, []))
    mounts = common["containers"][0]["volumeMounts"]
    assert mounts[0] == {"name": "data", "mountPath": "/data"}
    assert mounts[1]["name"] == common["volumes"][1]["name"] == "kube-api-access-*"
    assert common["initContainers"][0]["volumeMounts"][0]["name"] == "kube-api-access-*"


@pytest.mark.parametrize(
    ("name", "written", "replaced"),
    [
        ("RANK", "7", "0"),
        ("RANK", "mlx5_7", "mlx5_7"),
        ("LWS_LEADER_ADDRESS", "p4d-a-3.p4d-a-3.lab", "p4d-a-0.p4d-a-0.lab"),
        (
            "TF_CONFIG",
            '{"task":{"type":"worker","index":12}}',
            '{"task":{"type":"worker","index":0}}',
        ),
        (
            "TF_CONFIG",  # with enableDynamicWorker
            '{"cluster":{"worker":{"7":"a-worker-7"}},"task":{"type":"worker","index":7}}',
            '{"cluster":{"worker":{"7":"a-worker-7"}},"task":{"type":"worker","index":0}}',
        ),
        ("WORLD_SIZE", "7", "7"),
    ],
)
def test_variables_with_an_index(name: str, written: str, replaced: str) -> None:
    """Only the index is replaced, and only in variables that controllers write."""
    (common,) = part_of(pod(trainer({"name": name, "value": written})))["spec"]["containers"]
    assert common["env"] == [{"name": name, "value": replaced}]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            pod(trainer({"name": "RANK", "value": "1"}, command=["train", "--rank=$RANK"])),
            pod(trainer({"name": "RANK", "value": "2"}, command=["train", "--rank=$RANK"])),
        ),
        (
            pod(trainer({"name": "RANK", "value": "1"}, {"name": "A", "value": "$(RANK)"})),
            pod(trainer({"name": "RANK", "value": "2"}, {"name": "A", "value": "$(RANK)"})),
        ),
        *(
            (
                indexed("1", trainer(*variables)),
                indexed("2", trainer(*variables)),
            )
            for variables in (
                [field_env("NCCL_IB_DISABLE", f"metadata.labels['{INDEX}']")],
                [
                    field_env("RANK", f"metadata.labels['{INDEX}']"),
                    {"name": "NCCL_IB_DISABLE", "value": "$(RANK)"},
                ],
                [
                    field_env("RANK", f"metadata.labels['{INDEX}']"),
                    field_env("A", f"metadata.labels['{INDEX}']"),
                ],
            )
        ),
    ],
    ids=["command", "variable", "decisive", "expanded", "two variables"],
)
def test_an_index_that_may_decide_stays(first: Any, second: Any) -> None:
    """It stays if the container refers to its variable, or if another variable reads it."""
    assert part_of(first) != part_of(second)


def test_a_name_that_a_variable_reads_stays() -> None:
    """But a name that is not generated yet cannot be read."""
    named = pod(trainer(field_env("NCCL_IB_HCA", "metadata.name")))
    named["metadata"] |= {"name": "a-1", "generateName": ""}
    assert part_of(named)["metadata"]["name"] == "a-1"
    named["metadata"]["generateName"] = "a-"
    assert "name" not in part_of(named)["metadata"]
    assert "name" not in part_of(indexed("1"))["metadata"]
    other = pod(trainer(field_env("NODE", "spec.nodeName")))
    other["metadata"]["name"] = "a-1"
    assert "name" not in part_of(other)["metadata"]


def test_a_variable_that_the_site_sets_stays() -> None:
    """The decision compares the pod's value with the site's."""
    site = fabric(env=FabricEnv(site_variables=(("RANK", "0"),)))
    manifest = pod(trainer({"name": "RANK", "value": "1"}))
    assert part_of(manifest, site)["spec"]["containers"] == manifest["spec"]["containers"]
    assert part_of(manifest)["spec"]["containers"] != manifest["spec"]["containers"]


@pytest.mark.parametrize(
    ("volumes", "mounts"),
    [
        ([TOKEN_VOLUME], [{**TOKEN_MOUNT, "mountPath": "/dev/shm"}]),
        ([TOKEN_VOLUME, {**TOKEN_VOLUME, "name": "kube-api-access-bbbbb"}], [TOKEN_MOUNT]),
        ([{"name": TOKEN, "emptyDir": {}}], [TOKEN_MOUNT]),
        (
            [{**TOKEN_VOLUME, "name": "kube-api-access-7xkz2b"}],
            [{**TOKEN_MOUNT, "name": "kube-api-access-7xkz2b"}],
        ),
        ([{**TOKEN_VOLUME, "name": 7}, "volume"], [TOKEN_MOUNT]),
        ([], [TOKEN_MOUNT]),
    ],
    ids=["mounted elsewhere", "two", "no token", "another name", "wrong types", "none"],
)
def test_volumes_of_the_user_keep_their_names(volumes: Any, mounts: Any) -> None:
    """Only the volume that the API server adds is renamed, where it adds it."""
    spec = pod(container(volumeMounts=mounts), volumes=volumes)["spec"]
    common = part_of({"metadata": {}, "spec": spec})["spec"]
    assert common == spec


def test_mounts_of_a_wrong_type_stay() -> None:
    """They are not renamed, even if the pod has a volume for the token."""
    containers = [container(volumeMounts=7), container(volumeMounts=[7, TOKEN_MOUNT])]
    common = part_of(pod(*containers, volumes=[TOKEN_VOLUME]))["spec"]["containers"]
    assert common[0]["volumeMounts"] == 7
    assert common[1]["volumeMounts"] == [7, {**TOKEN_MOUNT, "name": "kube-api-access-*"}]


@pytest.mark.parametrize(
    "changed",
    [
        {"metadata": None},
        {"spec": []},
        {"spec": {"containers": {}}},
        {"spec": {"containers": [7]}},
    ],
)
def test_an_unusual_pod_is_its_own_part(changed: dict[str, Any]) -> None:
    """The decision rejects it, with its own values in the message."""
    manifest = pod(container()) | changed
    assert part_of(manifest) is manifest


@pytest.mark.parametrize(
    "env",
    [{}, "A=1", [7], [{"name": ["RANK"]}], [{"name": "RANK", "value": 1}], [{"value": "1"}]],
)
def test_variables_of_a_wrong_type_stay(env: Any) -> None:
    """The decision names their place."""
    manifest = pod(container(env=env))
    assert part_of(manifest)["spec"]["containers"] == manifest["spec"]["containers"]


def test_a_name_that_a_variable_beside_one_without_a_name_reads_stays() -> None:
    """The API server rejects such a pod only after the call."""
    env: list[Any] = [
        {},
        field_env("A", "metadata.name"),
        field_env("B", f"metadata.labels['{INDEX}']"),
    ]
    manifest = indexed("0", container(env=env))
    del manifest["metadata"]["generateName"]
    common = part_of(manifest)["metadata"]
    assert (common["name"], common["labels"]) == ("a-0", manifest["metadata"]["labels"])


def test_a_container_that_is_nested_too_deeply_stays() -> None:
    """No JSON can be written of it, so whether a command refers to the variable is not known."""
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"a": deep}
    manifest = indexed("0", trainer({"name": "NODE_RANK", "value": "0"}, x=deep))
    assert part_of(manifest)["spec"] == manifest["spec"]


def test_labels_and_volumes_of_a_wrong_type_stay() -> None:
    """A value that is no string stays as well."""
    manifest = pod(container(), volumes={})
    manifest["metadata"] = {"labels": [], "annotations": {INDEX: 7, "job-name": "a-7"}}
    common = part_of(manifest)
    assert common["metadata"] == {"labels": [], "annotations": {INDEX: 7, "job-name": "0"}}
    assert common["spec"]["volumes"] == {}
    claim = {"name": "c", "persistentVolumeClaim": {"claimName": 7}}
    assert part_of(pod(container(), volumes=[claim]))["spec"]["volumes"] == [claim]


def test_a_long_annotation_is_no_index() -> None:
    """All annotations together may have 256 KiB, so the size of one may decide what has room."""
    key = "leaderworkerset.sigs.k8s.io/leader-name"
    for name, expected in (("a" * 63, "0"), ("a" * 64, "a" * 64)):
        part = part_of(pod(container(), annotations={key: name}))
        assert part["metadata"]["annotations"][key] == expected


def test_a_volume_of_the_tokens_name_that_reads_a_resource() -> None:
    """Its name is in the reason why a memory limit stays, so it is not replaced."""
    field = {"path": "m", "resourceFieldRef": {"containerName": "c", "resource": "limits.memory"}}
    sources = [{"configMap": {}}, {"downwardAPI": {"items": [{"path": "n"}, field]}}]
    volume = {"name": TOKEN, "projected": {"sources": sources}}
    part = part_of(pod(container(volumeMounts=[TOKEN_MOUNT]), volumes=[volume]))
    assert part["spec"]["volumes"] == [volume]
    odd = {"name": TOKEN, "projected": {"sources": [{"downwardAPI": {"items": 1}}, 2]}}
    assert part_of(pod(container(), volumes=[odd]))["spec"]["volumes"] != [odd]
    volumes = [volume, {**TOKEN_VOLUME, "name": "kube-api-access-zzzzz"}]
    assert part_of(pod(container(), volumes=volumes))["spec"]["volumes"][0] == volume
