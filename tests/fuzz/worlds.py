"""Configurations and clusters for decisions: together they reach every rule."""

from __future__ import annotations

from typing import Any

from tests.fabrics_file import below_spec

FABRICS: tuple[str, ...] = tuple(
    below_spec(text.lstrip("\n"))
    for text in (
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
defaults: {fabric: v100-ib, configFiles: never, nodes: static}
fabrics:
- name: v100-ib
  match: {gpuResources: [nvidia.com/v100]}
  resources: [{name: rdma/rdma_v100, aliases: [rdma/hca, rdma/ib]}]
  hcas: [mlx5_0, mlx5_1]
  libraries: [nccl, ucx, gloo, nvshmem, mooncake, openmpi]
  socketInterface: eth0
- name: a100-roce
  match: {gpuProducts: ["NVIDIA-A100-*"], gpuResources: [nvidia.com/gpu]}
  mode: sr-iov
  linkLayer: Ethernet
  resources: [{name: nvidia.com/roce_vf, count: per-gpu, network: lab/roce-net}]
  socketInterface: eth0
foreignNics: {resources: ["example.com/fast*"], annotations: ["site.lab/*"]}
nvlink: {allowNamespaces: [lab, bounded]}
""",
        """
defaults: {fabric: a100-roce, memoryLimit: keep-guaranteed, configFiles: always, memlock: nri,
  nonRootImages: ["lab/x*", "registry.lab/x:1"]}
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
  libraries: [nccl, ucx, gloo, nvshmem, mooncake, openmpi]
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
defaults: {hcoll: "off", onAmbiguous: skip, memlock: unlimited}
fabrics:
- name: v100-ib
  match: {gpuProducts: ["Tesla-V100-*"]}
  resources: [{name: rdma/rdma_v100, count: 2, aliases: [rdma/hca]}]
  injectResources: false
  hcas: [mlx5_0:1]
  networks: [lab/ib-net]
  socketInterface: eth0
  env: {OMPI_MCA_btl: "^openib", UCX_RNDV_SCHEME: get_zcopy}
- name: bare
  match: {gpuProducts: ["NVIDIA-A100-*"]}
  libraries: []
- name: h100-ib
  match: {gpuResources: [nvidia.com/h100]}
  resources: [{name: rdma/ib}]
  hcas: [mlx5_0, mlx5_1, mlx5_4, mlx5_5]
  socketInterface: eth0
  sharedMemory: 64Gi
  env: {OMPI_MCA_coll_hcoll_enable: "0"}
nvlink: {allowNamespaces: [lab]}
""",
        """
fabrics:
- name: h100-ib
  match: {gpuResources: [nvidia.com/h100, nvidia.com/gpu], deviceClasses: [h100.lab, roce.lab]}
  mode: dra
  claims: [{template: nics, request: nic}, {template: rail, per: pod}]
- name: v100-ib
  match: {gpuResources: [nvidia.com/v100], deviceClasses: [v100.lab]}
  mode: dra
  claims: [{template: pairs, per: pod}]
""",
    )
)


def _namespace(
    name: str, labels: dict[str, str], annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    labels = {"rdma.lab/enable": "true", **labels}
    metadata = {"name": name, "labels": labels, "annotations": annotations or {}}
    return {"kind": "Namespace", "metadata": metadata}


def _node(name: str, product: str, gpu: str) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": product}
    metadata = {"name": name, "labels": labels}
    return {"kind": "Node", "metadata": metadata, "status": {"allocatable": {gpu: 8}}}


def _rdma_node(name: str, **spec: Any) -> dict[str, Any]:
    """Return a node with RDMA that not every pod may run on."""
    node = _node(name, "Tesla-V100-SXM2-16GB", "nvidia.com/v100")
    node["metadata"]["labels"] |= {"pool": "ib", "rank": "7"}
    node["status"]["allocatable"] |= {"rdma/rdma_v100": 2, "rdma/ib": 2}
    return {**node, "spec": spec}


_BOUNDS = (
    {
        "kind": "LimitRange",
        "metadata": {"name": "bounds", "namespace": "bounded"},
        "spec": {"limits": [{"type": "Container", "max": {"memory": "1Ti"}}]},
    },
    {
        "kind": "ResourceQuota",
        "metadata": {"name": "quota", "namespace": "bounded"},
        "spec": {"hard": {"limits.memory": "4Ti"}},
    },
)


def _template(name: str, **classes: str) -> dict[str, Any]:
    requests = [
        {"name": request, "exactly": {"deviceClassName": device_class}}
        for request, device_class in classes.items()
    ]
    return {
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "lab"},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }


_TEMPLATES = (
    _template("nics", nic="rdma.nic.lab"),
    _template("rail", nic="rdma.nic.lab"),
    _template("pairs", gpu="v100.lab", nic="rdma.nic.lab"),
    _template("h100", all="h100.lab"),
)
_GUARDED = _namespace("guarded", {"pod-security.kubernetes.io/enforce": "restricted"})
#: Each has the objects of a cluster; None is an unknown cluster.
CLUSTERS: tuple[tuple[dict[str, Any], ...] | None, ...] = (
    None,
    (
        _namespace("lab", {}),
        _namespace("bounded", {}),
        _GUARDED,
        *_BOUNDS,
        _node("node-1", "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu"),
        _node("node-2", "Tesla-V100-SXM2-32GB-SHARED", "nvidia.com/v100"),
    ),
    (_namespace("lab", {}, {"rdma.lab/fabric": "v100-ib"}), _GUARDED),
    (_namespace("lab", {}), *_TEMPLATES),
    (
        _namespace("lab", {}),
        _rdma_node("node-1", unschedulable=True),
        _rdma_node("node-2", taints=[{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]),
    ),
    (_namespace("lab", {}), _template("nics", other="rdma.nic.lab")),
    (_namespace("lab", {}, {"rdma.lab/fabric": "gone"}), _namespace("bounded", {}), *_BOUNDS),
)
