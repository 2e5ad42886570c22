"""Pods, configurations and facts with the words that matter, and arbitrary JSON."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.fabrics_file import below_spec
from webhook.config.load import parse_fabrics
from webhook.decide.analysis import DecisionInput
from webhook.model.annotations import ENABLE_ANNOTATION, FABRIC_ANNOTATION
from webhook.model.fabric import CompiledConfiguration
from webhook.model.facts import Facts

Strategy = st.SearchStrategy

_FILES = (
    "fabrics: []\n",
    """
fabrics:
- name: v100-ib
  match: {gpuResources: [nvidia.com/v100, nvidia.com/gpu]}
  resources: [{name: rdma/rdma_v100, aliases: [rdma/hca]}]
  hcas: [mlx5_0, mlx5_1]
  socketInterface: eth0
  hostSocketInterface: bond0
  sharedMemory: 16Gi
  pin: always
  nodeSelector: {site.lab/fabric: ib}
  env: {NCCL_DEBUG: WARN}
nvlink: {allowNamespaces: [lab]}
""",
    """
defaults: {fabric: a100-roce, memoryLimit: keep-guaranteed, configFiles: always}
fabrics:
- name: a100-roce
  match: {gpuProducts: ["NVIDIA-A100-*"]}
  mode: sr-iov
  linkLayer: Ethernet
  resources:
  - {name: nvidia.com/rail0, count: per-gpu, gpusPerDevice: 2, max: 4, network: fabric/rail0}
  - {name: nvidia.com/rail1, network: fabric/rail1@net2}
  socketInterface: eth0
  qos: {trafficClass: 106}
- name: v100-ib
  match: {gpuProducts: ["Tesla-V100-*"]}
  resources: [{name: rdma/rdma_v100, aliases: [rdma/hca]}]
  hcas: [mlx5_0]
  libraries: [nccl, ucx, gloo, nvshmem]
""",
    """
defaults: {hcoll: env, memoryLimit: keep, podSecurity: deny, onAmbiguous: deny}
fabrics:
- name: host
  mode: host-network
  linkLayer: Ethernet
  match: {gpuResources: [nvidia.com/gpu]}
  hcas: [mlx5_0]
  hostSocketInterface: bond0
""",
    """
fabrics:
- name: v100-ib
  match: {gpuResources: [nvidia.com/v100], deviceClasses: [v100.gpu.lab]}
  mode: dra
  claims: [{template: nics, request: nic}, {template: rail, per: pod}]
- name: h100
  match: {gpuResources: [], deviceClasses: [h100.lab]}
  mode: dra
  claims: [{template: pairs, per: pod}]
""",
)
#: Configurations that differ in everything that affects a pod.
CONFIGURATIONS: tuple[CompiledConfiguration, ...] = tuple(
    parse_fabrics(below_spec(text), "fabrics.yaml").compiled for text in _FILES
)


def fabrics() -> Strategy[CompiledConfiguration]:
    """Draw one of the configurations."""
    return st.sampled_from(CONFIGURATIONS)


@st.composite
def facts(draw: st.DrawFn) -> Facts:
    """Draw the facts of a cluster, perhaps without the namespace lab."""
    return Facts.from_objects(draw(st.lists(st.sampled_from(_OBJECTS), max_size=4)))


@st.composite
def decision_inputs(draw: st.DrawFn) -> DecisionInput:
    """Draw the input of a decision: everything that it depends on besides the pod."""
    chosen, cluster = draw(fabrics()), draw(facts() | st.just(Facts()))
    return DecisionInput(
        configuration=chosen,
        namespace=cluster.namespace("lab"),
        fabric_index=cluster.fabric_index(chosen),
    )


def _namespace(labels: dict[str, str], annotations: dict[str, str]) -> dict[str, Any]:
    labels = {"rdma.lab/enable": "true", **labels}
    metadata = {"name": "lab", "labels": labels, "annotations": annotations}
    return {"kind": "Namespace", "metadata": metadata}


def _node(name: str, product: str) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": product}
    metadata = {"name": name, "labels": labels}
    return {"kind": "Node", "metadata": metadata, "status": {"allocatable": {"nvidia.com/gpu": 8}}}


def _template(name: str, request: str, device: str) -> dict[str, Any]:
    requests = [{"name": request, "exactly": {"deviceClassName": device}}]
    return {
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "lab"},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }


_OBJECTS: tuple[dict[str, Any], ...] = (
    _namespace({}, {}),
    _namespace({"pod-security.kubernetes.io/enforce": "baseline"}, {}),
    _namespace({}, {FABRIC_ANNOTATION: "v100-ib"}),
    {
        "kind": "LimitRange",
        "metadata": {"name": "bounds", "namespace": "lab"},
        "spec": {"limits": [{"type": "Container", "max": {"memory": "1Ti"}}]},
    },
    _template("nics", "nic", "rdma.nic.lab"),
    _template("pairs", "gpu", "h100.lab"),
    _template("mine", "all", "v100.gpu.lab"),
    _node("node-1", "NVIDIA-A100-SXM4-80GB"),
    _node("node-2", "Tesla-V100-SXM2-32GB-SHARED"),
)


# A container


def _drawn_fields(values: dict[str, Any], limit: int = 4) -> Strategy[dict[str, Any]]:
    """Draw some keys of `values`, each with one of its values, in any order."""
    pairs = [(key, value) for key, listed in values.items() for value in listed]
    return st.lists(st.sampled_from(pairs), max_size=limit).map(dict)


_AMOUNTS = ("1", 2, "0", "8")
_LIMITS: dict[str, Any] = {
    "cpu": ("500m", 8),
    "memory": ("64Gi", "1.5Gi", 1024),
    "hugepages-2Mi": ("1Gi",),
    **dict.fromkeys(
        (
            *("nvidia.com/gpu", "nvidia.com/v100", "nvidia.com/mig-1g.5gb", "nvidia.com/gpumem"),
            *("rdma/rdma_v100", "rdma/hca", "rdma/other", "nvidia.com/rail0"),
            "vpc.amazonaws.com/efa",
        ),
        _AMOUNTS,
    ),
    "rdma/hca": ("1", "0", None),
}
#: Requests besides the limits of a container, such as an alias of a limit's resource.
_REQUESTS: dict[str, Any] = {"rdma/hca": ("1", "0", None), "rdma/rdma_v100": ("0", "2", None)}
_VARIABLES: dict[str, tuple[str, ...]] = {
    "NCCL_IB_HCA": ("=mlx5_0,mlx5_1", "mlx5"),
    "NCCL_SOCKET_IFNAME": ("eth0", "=net1", "^docker0", "$(INTERFACE)"),
    "GLOO_SOCKET_IFNAME": ("net1",),
    "NCCL_IB_DISABLE": ("1",),
    "NCCL_DEBUG": ("INFO",),
    "UCX_TLS": ("tcp", "rc,cuda"),
    "UCX_NET_DEVICES": ("all",),
    "OMPI_MCA_coll_hcoll_enable": ("1",),
    "OMPI_MCA_plm_rsh_args": ("-o ConnectionAttempts=10",),
    "I_MPI_FABRICS": ("shm:ofi",),
    "K_MPI_JOB_ROLE": ("launcher", "worker"),
    "CUDA_VISIBLE_DEVICES": ("0",),
    "MALLOC_ARENA_MAX": ("4",),
}
_REFERENCES = (
    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    {"name": "LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}},
)
_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("python", "train.py"),
    ("/usr/sbin/sshd", "-De"),
    ("mpirun", "--allow-run-as-root", "-np", "16", "./train"),
    ("mpirun", "-np", "16", "./train"),
    ("/opt/openmpi/bin/mpirun", "-np", "1", "./a", ":", "-np", "8", "./b"),
    ("mpirun", "--mca", "coll_hcoll_enable", "1", "./train"),
    ("horovodrun", "-np", "8", "python", "train.py"),
    ("bash", "-c", "set -e\ntime mpirun -x PATH \\\n  -np 8 ./train  # mpirun\n"),
    ("sh", "-c", "/usr/sbin/sshd; mpiexec --allow-run-as-root --host ${HOSTS} ./train | tee log"),
    ("sh", "-c", "sudo mpirun -x A ./train; echo 'mpirun -x B' nccl.conf"),
    ("sh", "-c", "if ! mpirun -x A ./a; then prterun ./b; fi; broken 'quote"),
)
_MOUNTS = (
    {"name": "shm", "mountPath": "/dev/shm"},
    {"name": "tmp", "mountPath": "/tmp"},
    {"name": "info", "mountPath": "/etc/nccl.conf", "subPath": "nccl.conf"},
)
_SECURITY: dict[str, Any] = {
    "privileged": (True,),
    "runAsUser": (0, 1000),
    "runAsNonRoot": (True, None),
    "capabilities": (
        None,
        {"add": ["SYS_PTRACE"]},
        {"add": ["IPC_LOCK"], "drop": ["ALL"]},
        {"add": None, "drop": ["IPC_LOCK"]},
        {"add": ["CAP_IPC_LOCK"]},
    ),
}
#: Fields that no version of Kubernetes has, with values that are easily changed by mistake.
_UNKNOWN: Strategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(("x-zeta", "x-alpha", "x-~/")),
    st.sampled_from((None, {}, [], 1.0, 10**18, "é", {"b": 1, "a": [None]})),
    max_size=2,
)


#: First requests of containers: mostly GPUs.
_BASES: tuple[dict[str, Any], ...] = (
    {},
    {"nvidia.com/gpu": 2},
    {"nvidia.com/gpu": "8", "memory": "64Gi"},
    {"nvidia.com/v100": 8, "memory": "64Gi", "cpu": 8},
    {"rdma/rdma_v100": 1, "memory": 1024},
)
#: Claims that a container uses, and claims that a pod lists.
_USES = ({"name": "mine"}, {"name": "gpu", "request": "all"}, {"name": "rdma-lab-v100-ib-0"})
_CLAIMS = (
    None,
    [{"name": "mine", "resourceClaimTemplateName": "nics"}],
    [
        {"name": "gpu", "resourceClaimTemplateName": "mine"},
        {"name": "rdma-lab-v100-ib-0", "resourceClaimTemplateName": "pairs"},
    ],
    [{"name": "rdma-lab-v100-ib-0", "resourceClaimTemplateName": "rail"}],
)
#: The fields that NVLink between pods requires.
_SHARING = {"hostIPC": True, "hostNetwork": True, "hostPID": True}
_SHARER = {"securityContext": {"privileged": True}, "command": ["python", "train.py"]}


@st.composite
def _env(draw: st.DrawFn) -> list[dict[str, Any]]:
    plain = draw(_drawn_fields(_VARIABLES))
    entries: list[dict[str, Any]] = [{"name": key, "value": plain[key]} for key in plain]
    return entries + draw(st.lists(st.sampled_from(_REFERENCES), max_size=1))


@st.composite
def _container(draw: st.DrawFn, name: str) -> dict[str, Any]:
    limits = draw(st.sampled_from(_BASES)) | draw(_drawn_fields(_LIMITS, 2))
    requests = {
        key: limits[key]
        for key in draw(st.lists(st.sampled_from([*limits, "cpu"])))
        if key in limits
    }
    extra = draw(_drawn_fields(_REQUESTS, 1))
    requests |= extra
    if not any(name.startswith("rdma/") for name in limits) and draw(st.integers(0, 5)):
        limits |= extra  # a request without its limit is denied
    resources: dict[str, Any] = {"limits": limits} if limits else {}
    if not draw(st.integers(0, 3)):
        resources["claims"] = draw(st.lists(st.sampled_from(_USES), max_size=2))
    if requests:
        resources["requests"] = requests
    optional: dict[str, Strategy[Any]] = {
        "env": _env(),
        "envFrom": st.just([{"configMapRef": {"name": "settings"}}]),
        "command": st.sampled_from(_COMMANDS).map(list),
        "args": st.sampled_from(_COMMANDS).map(list),
        "volumeMounts": st.lists(st.sampled_from(_MOUNTS), max_size=2),
        "securityContext": _drawn_fields(_SECURITY) | st.none(),
    }
    fields = {key: draw(optional[key]) for key in draw(_keys(optional))}
    return {"name": name, "image": "registry.lab/x:1", "resources": resources, **fields} | draw(
        _UNKNOWN
    )


def _keys(optional: dict[str, Any]) -> Strategy[list[str]]:
    return st.lists(st.sampled_from(sorted(optional)), max_size=4, unique=True)


# A pod

_ANNOTATIONS: dict[str, tuple[str, ...]] = {
    FABRIC_ANNOTATION: ("v100-ib", "host"),
    "rdma.lab/containers": ("a", "a,init"),
    "rdma.lab/devices": ("0", "3"),
    "rdma.lab/memory-limit": ("drop", "keep"),
    "rdma.lab/skip": ("env", "ipc-lock,hcoll", "claims"),
    "rdma.lab/nvlink": ("share",),
    "rdma.lab/fabrik": ("a100-roce",),
    "rdma.lab/status": ("{}", "x", '{"applied":["env"],"config":"0"}'),
    "k8s.v1.cni.cncf.io/networks": ("storage/nfs", "fabric/rail0,x", '[{"name": "nfs"} ]', "[", ""),
    "networking.gke.io/interfaces": ("[]",),
}
_LABELS = {
    "training.kubeflow.org/job-role": ("launcher", "worker"),
    "ray.io/node-type": ("head", "worker"),
}
_VOLUMES: tuple[dict[str, Any], ...] = (
    {"name": "shm", "emptyDir": {"medium": "Memory"}},
    {"name": "tmp", "hostPath": {"path": "/tmp"}},
    {"name": "info", "configMap": {"name": "info"}},
    {"name": "rdma-lab-shm", "emptyDir": {}},
)
_VOLUME_LISTS = st.lists(
    st.sampled_from(_VOLUMES), max_size=3, unique_by=lambda volume: str(volume["name"])
)
_AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {
                            "key": "nvidia.com/gpu.product",
                            "operator": "In",
                            "values": ["Tesla-V100-SXM2-16GB"],
                        }
                    ]
                }
            ]
        }
    }
}
_SPEC: dict[str, Any] = {
    "hostNetwork": (True, False),
    "hostIPC": (True,),
    "hostPID": (True,),
    "hostUsers": (False,),
    "nodeName": ("node-1",),
    "nodeSelector": (
        None,
        {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
        {"site.lab/fabric": "roce"},
    ),
    "affinity": (None, _AFFINITY),
    "securityContext": ({"runAsUser": 1000}, {}),
    "resources": ({"limits": {"memory": "64Gi", "cpu": 8}}, {"limits": {"cpu": 1}}),
    "os": ({"name": "windows"},),
    "resourceClaims": _CLAIMS,
}


@st.composite
def pods(draw: st.DrawFn, *, enable: str | None = "true") -> dict[str, Any]:
    """Draw a pod with valid types; `enable` is its opt-in, None for no annotation."""
    annotations = {} if enable is None else {ENABLE_ANNOTATION: enable}
    annotations |= draw(_drawn_fields(_ANNOTATIONS, 2))
    metadata = {"name": "train", "namespace": "lab", "annotations": annotations}
    if draw(st.booleans()):
        metadata["labels"] = draw(_drawn_fields(_LABELS, 1))
    sharing = "rdma.lab/nvlink" in annotations and draw(st.booleans())
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": draw(_spec(sharing))}
    return pod | draw(_UNKNOWN)


@st.composite
def _spec(draw: st.DrawFn, sharing: bool) -> dict[str, Any]:
    spec = draw(_drawn_fields(_SPEC, 3)) | (_SHARING if sharing else {})
    sharer = _SHARER if sharing else {}
    names = draw(st.sampled_from(("a", "ab")))
    spec["containers"] = [draw(_container(name)) | sharer for name in names]
    if draw(st.booleans()):
        policy = {"restartPolicy": "Always"} if draw(st.booleans()) else {}
        spec["initContainers"] = [draw(_container("init")) | policy]
    if draw(st.booleans()):
        spec["volumes"] = draw(_VOLUME_LISTS)
    return spec


# JSON

#: Integers within 64 bits, since orjson writes no larger ones.
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(("", "true", "1", "64Gi", "mpirun -x A ./b", "["))
)
_KEYS = st.sampled_from(
    (
        *("metadata", "annotations", "spec", "containers", "name", "resources", "limits"),
        *("env", "value", "command", "~/", ""),
    )
)


def anything() -> Strategy[Any]:
    """Draw JSON of any shape."""
    return st.recursive(
        _SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
        max_leaves=8,
    )


@st.composite
def spoilt_pods(draw: st.DrawFn) -> Any:
    """Draw a pod with other values in one to three places."""
    pod: Any = draw(pods())
    for _ in range(draw(st.integers(1, 3))):
        pod = _grafted(pod, draw(st.integers(0, 1 << 30)), draw(anything() | st.none()))
    return pod


def _grafted(node: Any, seed: int, scion: Any) -> Any:
    """Return a copy of `node` with `scion` at the place that `seed` determines."""
    if not isinstance(node, dict | list) or not node or seed % 8 == 0:
        return scion
    keys: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
    seed //= 8
    key = keys[seed % len(keys)]
    copied: Any = node.copy()
    copied[key] = _grafted(node[key], seed // len(keys), scion)
    return copied
