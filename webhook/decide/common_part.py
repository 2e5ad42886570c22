"""The common part of a pod: what it has in common with the other pods of its workload.

The pods of a Job differ in their names, in their indexes, and in the volume that the API server
adds for the token. No decision depends on these, so `common_part` replaces them, and one decision
serves all of the pods. The structure stays: no list item or key is removed, since the operations of
a patch contain indexes, and the limits count entries.

The law: the decision on the common part is the decision on the pod. It holds since no rule reads
what is replaced here; the fuzzer checks it (`tests/fuzz/laws/mutations.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import orjson

from webhook.model.fabric import CompiledConfiguration
from webhook.model.json import Json, JsonObject
from webhook.model.names import MAX_LABEL_LENGTH
from webhook.model.pod import CONTAINER_FIELDS, PodManifest
from webhook.model.pod.environment import field_path

#: The value of what differs.
_ANY = "0"
#: Labels and annotations that controllers write, with the index of the pod, of its group or of its
#: Job, or with a name or hash that contains one. Sources: Kubernetes, pkg/controller/job and
#: pkg/controller/statefulset; training-operator, pkg/controller.v1/common; JobSet, api/jobset;
#: LeaderWorkerSet, api/leaderworkerset; Volcano, pkg/controllers/job.
_INDEXED = frozenset(
    {
        *("batch.kubernetes.io/job-completion-index", "batch.kubernetes.io/job-name"),
        *("batch.kubernetes.io/controller-uid", "job-name", "controller-uid"),
        *("apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name"),
        "controller-revision-hash",
        "training.kubeflow.org/replica-index",
        *("jobset.sigs.k8s.io/job-index", "jobset.sigs.k8s.io/job-key"),
        *("jobset.sigs.k8s.io/job-global-index", "jobset.sigs.k8s.io/job-group-index"),
        *("leaderworkerset.sigs.k8s.io/worker-index", "leaderworkerset.sigs.k8s.io/group-index"),
        *("leaderworkerset.sigs.k8s.io/group-key", "leaderworkerset.sigs.k8s.io/subgroup-index"),
        *("leaderworkerset.sigs.k8s.io/subgroup-key", "leaderworkerset.sigs.k8s.io/leader-name"),
        "volcano.sh/task-index",
    }
)
#: Variables that controllers set to the pod's index, or to a text that contains it. Each pattern
#: matches the index.
_NUMBER, _OF_LEADER, _OF_TASK = r"^\d{1,9}$", r"(?<=-)\d{1,9}(?=\.)", r'(?<="index":)\d{1,9}(?=\})'
_INDEXED_VARIABLES = {
    "JOB_COMPLETION_INDEX": _NUMBER,
    "LWS_LEADER_ADDRESS": _OF_LEADER,
    "LWS_WORKER_INDEX": _NUMBER,
    "NODE_RANK": _NUMBER,
    "PET_NODE_RANK": _NUMBER,
    "RANK": _NUMBER,
    "TF_CONFIG": _OF_TASK,
    "VC_TASK_INDEX": _NUMBER,
    "VK_TASK_INDEX": _NUMBER,
}
_PATTERNS = {name: re.compile(index) for name, index in _INDEXED_VARIABLES.items()}
_AS_WORD = {name: re.compile(rb"\b%s\b" % name.encode()) for name in _INDEXED_VARIABLES}
#: A volume of the admission plugin ServiceAccount, and where it is mounted (Kubernetes,
#: plugin/pkg/admission/serviceaccount; the letters are those of apimachinery's rand.String).
_TOKEN_VOLUME = re.compile(r"kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}")
_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 -- no secret
#: No user can write this name, since it is no DNS label.
_TOKEN_NAME = "kube-api-access-*"  # noqa: S105 -- no secret
_FIELD = re.compile(r"metadata\.(?:(name)|(?:labels|annotations)\['(.+)'\])")


def common_part(pod: PodManifest, configuration: CompiledConfiguration) -> PodManifest:
    """Return the common part of a pod; the pod itself if its shape is unusual. Never raises.

    The result shares all but the replaced values with the pod, and nobody edits it.
    """
    metadata, spec = pod.get("metadata"), pod.get("spec")
    if metadata.__class__ is not dict or spec.__class__ is not dict:
        return pod
    read_keys: set[str] = set()
    containers = _containers(spec, _replaceable_variables(configuration), read_keys)
    if containers is None:
        return pod
    return {
        **{key: value for key, value in pod.items() if key != "status"},
        "metadata": _metadata(metadata, read_keys),
        "spec": _spec(spec, containers),
    }


@lru_cache(maxsize=2)
def _replaceable_variables(configuration: CompiledConfiguration) -> frozenset[str]:
    """Return the variables whose indexes may be replaced: no fabric sets them, so no call did."""
    return frozenset(_INDEXED_VARIABLES).difference(
        name for fabric in configuration.fabrics.values() for name, _ in fabric.env.site_variables
    )


def _metadata(metadata: JsonObject, read_keys: set[str]) -> JsonObject:
    """Return the metadata with the same labels and annotations, and without names and times."""
    part: JsonObject = {}
    for field in ("labels", "annotations"):
        if field in metadata:
            part[field] = _without_indexes(metadata[field], read_keys)
    if "namespace" in metadata:
        part["namespace"] = metadata["namespace"]
    if metadata.get("generateName"):  # only its presence counts: the name is not known yet
        part["generateName"] = _ANY
    elif _NAME in read_keys:
        part["name"] = metadata.get("name")
    return part


#: Stands for the pod's name in a set of keys of labels and annotations.
_NAME = ""


def _without_indexes(texts: Json, read_keys: set[str]) -> Json:
    """Return labels or annotations with `_ANY` instead of indexes that nothing reads.

    A longer annotation is no index, and stays: the size of all annotations is limited.
    """
    if texts.__class__ is not dict or _INDEXED.isdisjoint(texts):
        return texts
    replaced = _INDEXED - read_keys
    return {
        key: _ANY if key in replaced and _is_short(value) else value for key, value in texts.items()
    }


def _is_short(value: Json) -> bool:
    return value.__class__ is str and len(value) <= MAX_LABEL_LENGTH


def _containers(
    spec: JsonObject, variables: frozenset[str], read_keys: set[str]
) -> dict[str, list[JsonObject]] | None:
    """Return the containers by field, without indexes in `env`; None if a shape is unusual.

    Add the keys of the metadata that their variables read to `read_keys`.
    """
    containers: dict[str, list[JsonObject]] = {}
    for field in CONTAINER_FIELDS:
        items = spec.get(field)
        if items is None:
            continue
        if items.__class__ is not list:
            return None
        containers[field] = copies = []
        for container in items:
            if container.__class__ is not dict:
                return None
            env = container.get("env")
            copies.append(_container(container, env, variables, read_keys) if env else container)
    return containers


def _container(
    container: JsonObject, env: Json, variables: frozenset[str], read_keys: set[str]
) -> JsonObject:
    """Return a container whose `env` has no indexes, unless something refers to the variable."""
    env_names = _names_in(env)
    if env_names is None:
        read_keys.update((*_INDEXED, _NAME))  # it may read any of them
        return container
    unread_variables = _unread_variables(container, env_names, variables)
    for item in env:
        if "valueFrom" in item and item["name"] not in unread_variables:
            read_keys.update(_keys_read_by(item["valueFrom"]))
    if not unread_variables:
        return container
    part = list(env)
    for name in unread_variables:
        position = env_names.index(name)
        part[position] = _without_index(env[position])
    return {**container, "env": part}


def _names_in(env: Json) -> list[str] | None:
    """Return the names of the variables, None if one has none."""
    if env.__class__ is not list or {*map(type, env)} != {dict}:
        return None
    names = [variable.get("name") for variable in env]
    return names if {*map(type, names)} == {str} else None


def _unread_variables(
    container: JsonObject, env_names: list[str], variables: frozenset[str]
) -> set[str]:
    """Return the variables with an index that occur only once in a container: where `env` sets it.

    A command or another variable that names one may depend on its value.
    """
    indexed = variables.intersection(env_names)
    if not indexed:
        return set()
    written = json_of(container)
    return {name for name in indexed if _occurs_once(name, written)}


def json_of(node: JsonObject) -> bytes:
    """Return a pod, or a part of one, as JSON; b"" if it is nested too deeply for that."""
    try:
        return orjson.dumps(node)
    except orjson.JSONEncodeError:
        return b""


def _occurs_once(name: str, written: bytes) -> bool:
    """Return whether a word occurs once in a text that contains it."""
    return written.count(name.encode()) == 1 or len(_AS_WORD[name].findall(written)) == 1


def _without_index(item: JsonObject) -> JsonObject:
    name, value = item["name"], item.get("value")
    return {**item, "value": _PATTERNS[name].sub(_ANY, value)} if value.__class__ is str else item


def _keys_read_by(source: Json) -> Iterator[str]:
    """Yield the label, annotation or name that a `valueFrom` reads."""
    match = _FIELD.fullmatch(field_path(source))
    if match is not None:
        yield match[2] or _NAME


def _spec(spec: JsonObject, containers: dict[str, list[JsonObject]]) -> JsonObject:
    """Return the spec with these containers, without the host name and the names of volumes."""
    part = {**spec, **containers}
    part.pop("hostname", None)
    volumes = spec.get("volumes")
    if volumes.__class__ is list and volumes:
        token = _token_of(volumes, containers)
        part["volumes"] = [_volume(volume, token) for volume in volumes]
        if token:
            for field, items in containers.items():
                part[field] = [_mounting_any(container, token) for container in items]
    return part


def _token_of(volumes: list[Json], containers: dict[str, list[JsonObject]]) -> str:
    """Return the name of the volume for the token, "" if it is not what the API server adds."""
    names = [
        volume["name"]
        for volume in volumes
        if volume.__class__ is dict
        and "projected" in volume
        and volume.get("name").__class__ is str
        and _TOKEN_VOLUME.fullmatch(volume["name"])
        and not _reads_resource(volume)
    ]
    if len(names) != 1:
        return ""
    return "" if any(_mounts_elsewhere(names[0], c) for c in _flat(containers)) else names[0]


def _reads_resource(volume: JsonObject) -> bool:
    """Return whether a projected volume may read a resource.

    The messages of the mutation `memory-limit` may then have the volume's name.
    """
    written = json_of(volume)
    return not written or b"resourceFieldRef" in written


def _flat(containers: dict[str, list[JsonObject]]) -> Iterator[JsonObject]:
    for items in containers.values():
        yield from items


def _mounts_elsewhere(token: str, container: JsonObject) -> bool:
    """Return whether a container mounts this volume in a way that the API server does not."""
    mounts = container.get("volumeMounts")
    return mounts.__class__ is list and any(
        mount.__class__ is dict
        and mount.get("name") == token
        and mount.get("mountPath") != _TOKEN_PATH
        for mount in mounts
    )


def _volume(volume: Json, token: str) -> Json:
    """Return a volume without the name of the token's volume, and of its PersistentVolumeClaim."""
    if volume.__class__ is not dict:
        return volume
    if token and volume.get("name") == token:
        return {**volume, "name": _TOKEN_NAME}
    source = volume.get("persistentVolumeClaim")
    if source.__class__ is dict and source.get("claimName").__class__ is str:
        return {**volume, "persistentVolumeClaim": {**source, "claimName": _ANY}}
    return volume


def _mounting_any(container: JsonObject, token: str) -> JsonObject:
    """Return a container that mounts the token's volume by the name that all pods have."""
    mounts = container.get("volumeMounts")
    if mounts.__class__ is not list:
        return container
    renamed = [
        {**mount, "name": _TOKEN_NAME}
        if mount.__class__ is dict and mount.get("name") == token
        else mount
        for mount in mounts
    ]
    return {**container, "volumeMounts": renamed}
