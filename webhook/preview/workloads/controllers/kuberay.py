"""KubeRay: RayCluster, RayJob, RayService (ray.io), whose first containers run `ray start`.

Source: ray-project/kuberay v1.4.2, ray-operator/controllers/ray/common/pod.go
(DefaultHeadPodTemplate, DefaultWorkerPodTemplate, BuildPod, labelPod, setContainerEnvVars,
addEmptyDir). RayClusterFleet and RayClusterReplicaSet of vllm-project/aibrix
(orchestration.aibrix.ai/v1alpha1) make RayClusters, so KubeRay makes their pods, too.

Left out, since no decision reads them: probes, ports, the storage of a fault-tolerant head, service
accounts. Environment variables of the operator may
turn parts of it off (ENABLE_INIT_CONTAINER_INJECTION); its defaults are assumed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from webhook.decide.draft import Draft
from webhook.model.pod import at, items, mapping, strings
from webhook.model.quantity import whole
from webhook.preview.workloads.controllers.workload import (
    CONTAINERS,
    FIRST,
    INIT_CONTAINERS,
    Controller,
    Live,
    Workload,
    add_env,
    add_labels,
    add_mount,
    has_containers,
    of_pod,
    variables,
    word,
)

_HEAD, _WORKERS = "headGroupSpec", "workerGroupSpecs"
_OVERWRITE = "ray.io/overwrite-container-cmd"
_BASH = ["/bin/bash", "-c", "--"]
_PORT = "6379"
_TAGS = "kuberay_version=v1.4.2;kuberay_crd=RayCluster"
_SMALL = {"cpu": "200m", "memory": "256Mi"}
_OF_AUTOSCALER = {"cpu": "500m", "memory": "512Mi"}
_SHM = "/dev/shm"  # noqa: S108 -- a mount point in a pod, not a file of this process


def _live(workload: Workload) -> tuple[Live, ...]:
    node = _node_type(workload)
    if not node or not has_containers(workload.pod):
        return (Live(workload.pod),)
    draft = Draft(workload.pod)
    if node == "worker":
        _add_wait(draft, _head_of(workload))
    add_labels(draft, _labels(workload, node))
    if node == "head" and _autoscales(workload):
        _add_autoscaler(draft)
    _mount_shm(draft)
    command = _ray_start(workload, node)
    if at(workload.value, ("metadata", "annotations", _OVERWRITE)) == "true":
        draft.set(("metadata", "annotations", _OVERWRITE), "true")
    else:
        _start_ray(draft, command)
    _add_variables(draft, node, _head_of(workload), command)
    return (Live(draft.pod),)


def _node_type(workload: Workload) -> str:
    where = workload.where
    if where[-2:] == (_HEAD, "template"):
        return "head"
    return "worker" if where[-3:-2] == (_WORKERS,) and where[-1:] == ("template",) else ""


def _group(workload: Workload) -> Any:
    return at(workload.value, workload.where[:-1])


def _head_of(workload: Workload) -> str:
    return f"{workload.name}-head-svc.{workload.namespace}.svc.cluster.local"


def _labels(workload: Workload, node: str) -> dict[str, str]:
    """Return the labels; the user's own win, except those three that KubeRay selects by."""
    own = mapping(workload.pod, ("metadata", "labels"))
    name = workload.name
    group = "headgroup" if node == "head" else word(_group(workload), ("groupName",))
    fixed = {"ray.io/node-type": node, "ray.io/group": group, "ray.io/cluster": name}
    free = {
        "ray.io/is-ray-node": "yes",
        "ray.io/identifier": f"{name}-{node}",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    return fixed | {key: value for key, value in free.items() if key not in own}


def _autoscales(workload: Workload) -> bool:
    return at(workload.value, (*workload.where[:-2], "enableInTreeAutoscaling")) is True


def _add_wait(draft: Draft, head: str) -> None:
    """Add the init container that waits for the head; it has a copy of the worker's variables."""
    first = at(draft.pod, FIRST)
    wait = {
        "name": "wait-gcs-ready",
        "image": first.get("image"),
        "command": [*_BASH],
        "args": [f"until ray health-check --address {head}:{_PORT}; do sleep 5; done"],
        "resources": {"limits": {**_SMALL}, "requests": {**_SMALL}},
    }
    copied = {key: first[key] for key in ("env", "volumeMounts", "securityContext") if key in first}
    draft.append(INIT_CONTAINERS, {**wait, **copied})


def _add_autoscaler(draft: Draft) -> None:
    command = "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME)"
    draft.append(
        CONTAINERS,
        {
            "name": "autoscaler",
            "image": at(draft.pod, (*FIRST, "image")),
            "command": [*_BASH],
            "args": [command],
            "resources": {"limits": {**_OF_AUTOSCALER}, "requests": {**_OF_AUTOSCALER}},
        },
    )


def _mount_shm(draft: Draft) -> None:
    mounts = items(draft.pod, (*FIRST, "volumeMounts"))
    if all(one.get("mountPath") != _SHM for one in mounts):
        resources = at(draft.pod, (*FIRST, "resources"))
        size = at(resources, ("limits", "memory")) or at(resources, ("requests", "memory"))
        source = {"medium": "Memory", **({"sizeLimit": size} if size else {})}
        add_mount(draft, FIRST, {"name": "shared-mem", "emptyDir": source}, _SHM)


def _ray_start(workload: Workload, node: str) -> str:
    params = at(_group(workload), ("rayStartParams",))
    resources = at(workload.pod, (*FIRST, "resources"))
    address = "" if node == "head" else f"{_head_of(workload)}:{_PORT}"
    return ray_start(params if isinstance(params, dict) else {}, resources, head=address)


def _start_ray(draft: Draft, command: str) -> None:
    """Let bash run the user's words, joined, and then `ray start`, unless they start Ray."""
    words = [word for field in ("command", "args") for word in strings(draft.pod, (*FIRST, field))]
    own = "".join(f" {word} " for word in words)
    if "ray start" not in own:
        generated = f"ulimit -n 65536; {command}"
        draft.set((*FIRST, "command"), [*_BASH])
        draft.set((*FIRST, "args"), [f"{own} && {generated}" if own else generated])


def _add_variables(draft: Draft, node: str, head: str, command: str) -> None:
    of_head = variables(FQ_RAY_IP=head, RAY_IP=head.partition(".")[0])
    for index, _ in enumerate(items(draft.pod, INIT_CONTAINERS)):
        add_env(draft, (*INIT_CONTAINERS, index), of_head)
    host = "127.0.0.1" if node == "head" else head
    known = [one.get("name") for one in items(draft.pod, (*FIRST, "env"))]
    tags = {"RAY_USAGE_STATS_EXTRA_TAGS": _TAGS} if node == "head" else {}
    unless_there = variables(
        RAY_PORT=_PORT,
        RAY_ADDRESS=f"{host}:{_PORT}",
        RAY_USAGE_STATS_KUBERAY_IN_USE="1",
        **tags,
        RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE="1",
    )
    add_env(
        draft,
        FIRST,
        [
            *(of_head if node == "worker" else []),
            of_pod("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']"),
            of_pod("RAY_CLOUD_INSTANCE_ID", "metadata.name"),
            of_pod("RAY_NODE_TYPE_NAME", "metadata.labels['ray.io/group']"),
            *variables(KUBERAY_GEN_RAY_START_CMD=command),
            *(one for one in unless_there if one["name"] not in known),
        ],
    )


KUBERAY = Controller(
    name="KubeRay",
    kinds=frozenset(
        {
            "ray.io/v1 RayCluster",
            "ray.io/v1 RayJob",
            "ray.io/v1 RayService",
            "ray.io/v1alpha1 RayCluster",
            "ray.io/v1alpha1 RayJob",
            "ray.io/v1alpha1 RayService",
            "orchestration.aibrix.ai/v1alpha1 RayClusterFleet",
            "orchestration.aibrix.ai/v1alpha1 RayClusterReplicaSet",
        }
    ),
    adds="`ray.io/*` labels (`ray.io/node-type`: head or worker), `RAY_*` variables, the "
    "`ray start` command after the container's own, a mount at /dev/shm, the workers' init "
    "container wait-gcs-ready, the head's autoscaler",
    live=_live,
)


# The command that KubeRay generates to start Ray in a container.
#
# Source: ray-project/kuberay v1.4.2, ray-operator/controllers/ray/common/pod.go
# (setMissingRayStartParams, generateRayStartCommand, convertParamMap). Left out: the resources of
# other accelerators (`neuron_cores`, `TPU`).

_GPU = re.compile(r".*gpu|.*nvidia\.com/mig-\d+g\.\d+gb")
#: Options with a value that may be true or false; the others of this form are switches.
_NO_SWITCHES = frozenset({"log-color", "include-dashboard"})


def ray_start(given: Mapping[str, Any], resources: Any, *, head: str) -> str:
    """Return the command for `rayStartParams` and the container's resources.

    `head` is the address that a worker connects to; "" for the head itself.
    """
    ours = {"address": head} if head else {"dashboard-host": "0.0.0.0"}  # noqa: S104 -- a pod's
    ports = {"metrics-export-port": "8080", "dashboard-agent-listen-port": "52365"}
    amounts = dict(_amounts(resources))
    params = {**ours, **ports, **amounts, **given, "block": "true"}
    flags = "".join(_flag(name, word(params, (name,))) for name in sorted(params))
    return f"ray start {'' if head else '--head '}{flags}"


def _flag(name: str, value: str) -> str:
    if value.lower() not in ("true", "false") or name in _NO_SWITCHES:
        return f" --{name}={value} "
    return f" --{name} " if value.lower() == "true" else ""


def _amounts(resources: Any) -> list[tuple[str, str]]:
    limits = mapping(resources, ("limits",))
    cpus = _whole(at(limits, ("cpu",))) or _whole(at(resources, ("requests", "cpu")))
    gpus = [_whole(limits[name]) for name in sorted(limits) if _GPU.fullmatch(name)]
    found = [
        ("num-cpus", cpus),
        ("memory", _whole(at(limits, ("memory",)))),
        ("num-gpus", next(filter(None, gpus), 0)),
    ]
    return [(name, str(number)) for name, number in found if number]


def _whole(quantity: Any) -> int:
    """Return the quantity as a whole number; 0 for one that the API server refuses."""
    try:
        return whole(quantity or 0)
    except ValueError:
        return 0
