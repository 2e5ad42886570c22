"""KubeRay: RayCluster, RayJob, RayService (ray.io), whose first containers run `ray start`.

Source: ray-project/kuberay v1.4.2, ray-operator/controllers/ray/common/pod.go
(DefaultHeadPodTemplate, DefaultWorkerPodTemplate, BuildPod, labelPod, setContainerEnvVars,
addEmptyDir). RayClusterFleet and RayClusterReplicaSet of vllm-project/aibrix
(orchestration.aibrix.ai/v1alpha1) make RayClusters, so KubeRay makes their pods, too.

Left out, since no decision reads them: probes, ports, the storage of a fault-tolerant head, service
accounts. The operator's environment variables may turn parts of it off
(ENABLE_INIT_CONTAINER_INJECTION); its defaults are assumed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field

from webhook.decide.draft import Draft
from webhook.kube.records import Flag, LenientObject
from webhook.model.pod import fields_or_empty, read_mapping
from webhook.model.quantity import to_integer
from webhook.preview.workloads.controllers.workload import (
    CONTAINERS,
    INIT_CONTAINERS,
    MAIN_CONTAINER,
    Controller,
    ControllerPod,
    Resources,
    TemplateContainer,
    Workload,
    add_env,
    add_labels,
    add_mount,
    containers_in,
    pod_field_variable,
    variables,
)
from webhook.preview.workloads.objects import (
    MappingOrEmpty,
    ObjectMetadata,
    TextOrDefault,
    scalar_text,
)

_HEAD, _WORKERS = "headGroupSpec", "workerGroupSpecs"
_OVERWRITE = "ray.io/overwrite-container-cmd"
_BASH = ["/bin/bash", "-c", "--"]
_PORT = "6379"
_TAGS = "kuberay_version=v1.4.2;kuberay_crd=RayCluster"
_INIT_RESOURCES = {"cpu": "200m", "memory": "256Mi"}
_COPIED_FIELDS = ("env", "volumeMounts", "securityContext")
_AUTOSCALER_RESOURCES = {"cpu": "500m", "memory": "512Mi"}
_SHM = "/dev/shm"  # noqa: S108 -- a mount point in a pod, not a file of this process


class _ClusterSpec(LenientObject):
    enable_in_tree_autoscaling: Flag = False


class _Group(LenientObject):
    group_name: TextOrDefault = ""
    ray_start_params: MappingOrEmpty = Field(default_factory=dict)


def _pods_of(workload: Workload) -> tuple[ControllerPod, ...]:
    node_type, main_container = _node_type(workload), workload.main_container
    if not node_type or main_container is None:
        return (ControllerPod(workload.pod),)
    draft, group = Draft(workload.pod), _Group.model_validate(workload.values_above_template[-1])
    if node_type == "worker":
        _add_wait(draft, main_container, _head_address(workload))
    add_labels(draft, _labels(workload, node_type, group))
    if (
        node_type == "head"
        and _ClusterSpec.model_validate(
            workload.values_above_template[-2]
        ).enable_in_tree_autoscaling
    ):
        _add_autoscaler(draft, main_container)
    _mount_shm(draft, main_container)
    address = "" if node_type == "head" else f"{_head_address(workload)}:{_PORT}"
    command = ray_start(group.ray_start_params, main_container.resources, head_address=address)
    if workload.annotations.get(_OVERWRITE) == "true":
        draft.set(("metadata", "annotations", _OVERWRITE), "true")
    else:
        _start_ray(draft, main_container, command)
    _add_variables(draft, main_container, node_type, _head_address(workload), command)
    return (ControllerPod(draft.pod),)


def _node_type(workload: Workload) -> str:
    template_path = workload.template_path
    if template_path[-2:] == (_HEAD, "template"):
        return "head"
    return (
        "worker"
        if template_path[-3:-2] == (_WORKERS,) and template_path[-1:] == ("template",)
        else ""
    )


def _head_address(workload: Workload) -> str:
    return f"{workload.name}-head-svc.{workload.namespace}.svc.cluster.local"


def _labels(workload: Workload, node_type: str, group: _Group) -> dict[str, str]:
    """Return the labels; the user's come first, except for the three that KubeRay selects by."""
    user_labels = ObjectMetadata.of(workload.pod).labels
    name = workload.name
    group_name = "headgroup" if node_type == "head" else group.group_name
    fixed = {"ray.io/node-type": node_type, "ray.io/group": group_name, "ray.io/cluster": name}
    defaults = {
        "ray.io/is-ray-node": "yes",
        "ray.io/identifier": f"{name}-{node_type}",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    return fixed | {key: value for key, value in defaults.items() if key not in user_labels}


def _add_wait(draft: Draft, main_container: TemplateContainer, head_address: str) -> None:
    """Add the init container that waits for the head, with a copy of the worker's variables."""
    worker = main_container.manifest
    wait = {
        "name": "wait-gcs-ready",
        "image": worker.get("image"),
        "command": [*_BASH],
        "args": [f"until ray health-check --address {head_address}:{_PORT}; do sleep 5; done"],
        "resources": {"limits": {**_INIT_RESOURCES}, "requests": {**_INIT_RESOURCES}},
    }
    copied = {key: worker[key] for key in _COPIED_FIELDS if key in worker}
    draft.append(INIT_CONTAINERS, {**wait, **copied})


def _add_autoscaler(draft: Draft, main_container: TemplateContainer) -> None:
    command = "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME)"
    draft.append(
        CONTAINERS,
        {
            "name": "autoscaler",
            "image": main_container.manifest.get("image"),
            "command": [*_BASH],
            "args": [command],
            "resources": {
                "limits": {**_AUTOSCALER_RESOURCES},
                "requests": {**_AUTOSCALER_RESOURCES},
            },
        },
    )


def _mount_shm(draft: Draft, main_container: TemplateContainer) -> None:
    if _SHM not in main_container.mount_paths:
        limits = fields_or_empty(main_container.resources.limits)
        requests = fields_or_empty(main_container.resources.requests)
        size = limits.get("memory") or requests.get("memory")
        source = {"medium": "Memory", **({"sizeLimit": size} if size else {})}
        add_mount(draft, MAIN_CONTAINER, {"name": "shared-mem", "emptyDir": source}, _SHM)


def _start_ray(draft: Draft, main_container: TemplateContainer, command: str) -> None:
    """Let bash run the user's command and then `ray start`, unless the command starts Ray."""
    script = "".join(f" {argument} " for argument in main_container.arguments)
    if "ray start" not in script:
        generated = f"ulimit -n 65536; {command}"
        draft.set((*MAIN_CONTAINER, "command"), [*_BASH])
        draft.set((*MAIN_CONTAINER, "args"), [f"{script} && {generated}" if script else generated])


def _add_variables(
    draft: Draft, main_container: TemplateContainer, node_type: str, head_address: str, command: str
) -> None:
    head_variables = variables(FQ_RAY_IP=head_address, RAY_IP=head_address.partition(".")[0])
    for container in containers_in(draft.pod, INIT_CONTAINERS):
        add_env(draft, container.path, head_variables)
    host = "127.0.0.1" if node_type == "head" else head_address
    names = main_container.env_names
    tags = {"RAY_USAGE_STATS_EXTRA_TAGS": _TAGS} if node_type == "head" else {}
    defaults = variables(
        RAY_PORT=_PORT,
        RAY_ADDRESS=f"{host}:{_PORT}",
        RAY_USAGE_STATS_KUBERAY_IN_USE="1",
        **tags,
        RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE="1",
    )
    add_env(
        draft,
        MAIN_CONTAINER,
        [
            *(head_variables if node_type == "worker" else []),
            pod_field_variable("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']"),
            pod_field_variable("RAY_CLOUD_INSTANCE_ID", "metadata.name"),
            pod_field_variable("RAY_NODE_TYPE_NAME", "metadata.labels['ray.io/group']"),
            *variables(KUBERAY_GEN_RAY_START_CMD=command),
            *(variable for variable in defaults if variable["name"] not in names),
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
    make_pods=_pods_of,
)


# The command that KubeRay generates to start Ray in a container.
#
# Source: ray-project/kuberay v1.4.2, ray-operator/controllers/ray/common/pod.go
# (setMissingRayStartParams, generateRayStartCommand, convertParamMap). Left out: the resources of
# other accelerators (`neuron_cores`, `TPU`).

_GPU = re.compile(r".*gpu|.*nvidia\.com/mig-\d+g\.\d+gb")
#: The options whose value may be true or false; all others with such a value are switches.
_BOOLEAN_OPTIONS = frozenset({"log-color", "include-dashboard"})


def ray_start(user_params: Mapping[str, object], resources: Resources, *, head_address: str) -> str:
    """Return the command for `rayStartParams` and the container's resources.

    `head_address` is for a worker; "" for the head itself.
    """
    all_addresses = "0.0.0.0"  # noqa: S104 -- a pod's
    connection = {"address": head_address} if head_address else {"dashboard-host": all_addresses}
    ports = {"metrics-export-port": "8080", "dashboard-agent-listen-port": "52365"}
    amounts = dict(_amounts(resources))
    params = {**connection, **ports, **amounts, **user_params, "block": "true"}
    flags = "".join(_flag(name, scalar_text(params[name])) for name in sorted(params))
    return f"ray start {'' if head_address else '--head '}{flags}"


def _flag(name: str, value: str) -> str:
    if value.lower() not in ("true", "false") or name in _BOOLEAN_OPTIONS:
        return f" --{name}={value} "
    return f" --{name} " if value.lower() == "true" else ""


def _amounts(resources: Resources) -> list[tuple[str, str]]:
    limits, requests = read_mapping(resources.limits, ()), fields_or_empty(resources.requests)
    gpus = [_integer(limits[name]) for name in sorted(limits) if _GPU.fullmatch(name)]
    amounts = [
        ("num-cpus", _integer(limits.get("cpu")) or _integer(requests.get("cpu"))),
        ("memory", _integer(limits.get("memory"))),
        ("num-gpus", next(filter(None, gpus), 0)),
    ]
    return [(name, str(number)) for name, number in amounts if number]


def _integer(quantity: object) -> int:
    """Return the quantity as an integer; 0 for a quantity that the API server refuses."""
    try:
        return to_integer(quantity or 0)
    except ValueError:
        return 0
