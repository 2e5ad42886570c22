"""The words that matter in pods, each with values that lead to different decisions."""

from __future__ import annotations

from typing import Any

AMOUNTS: tuple[Any, ...] = ("1", 2, "0", "8", 0, "2", 8, "16")
LIMITS: dict[str, tuple[Any, ...]] = {
    "cpu": ("500m", 8, "64"),
    "memory": ("64Gi", "1.5Gi", 1024, "512Gi", 0, "0", "1e11", "128974848", "129e6", "129M"),
    "ephemeral-storage": ("10Gi",),
    "hugepages-2Mi": ("1Gi",),
    **dict.fromkeys(
        (
            *("nvidia.com/gpu", "nvidia.com/v100", "nvidia.com/h100", "nvidia.com/gpu.shared"),
            *("nvidia.com/mig-1g.5gb", "nvidia.com/gpumem", "volcano.sh/vgpu-number"),
            *("rdma/rdma_v100", "rdma/hca", "rdma/other", "nvidia.com/rail0", "nvidia.com/rail1"),
            *("vpc.amazonaws.com/efa", "nvidia.com/sriov_nic", "amd.com/nic", "example.com/fast"),
            *("rdma/ib", "site.lab/gpu", "nvidia.com/roce_vf", "nvidia.com/rdma-vf", "amd.com/gpu"),
        ),
        AMOUNTS,
    ),
}
#: First requests of containers: mostly GPUs.
BASES: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"nvidia.com/gpu": 2},
    {"nvidia.com/gpu": "8", "memory": "64Gi"},
    {"nvidia.com/v100": 8, "memory": "64Gi", "cpu": 8},
    {"nvidia.com/v100": "4", "memory": "128Gi"},
    {"nvidia.com/h100": "8"},
    {"nvidia.com/roce_vf": "2", "nvidia.com/gpu": 8},
    {"rdma/rdma_v100": 1, "memory": 1024},
)
VARIABLES: dict[str, tuple[str, ...]] = {
    "NCCL_IB_HCA": ("=mlx5_0,mlx5_1", "mlx5", "^mlx5_2", "mlx5_0:2", "=$(MASTER_ADDR)", "x" * 2000),
    "NCCL_SOCKET_IFNAME": ("eth0", "=net1", "^docker0", "$(INTERFACE)", ""),
    "GLOO_SOCKET_IFNAME": ("net1", "eth0", "$(INTERFACE)", "$(NCCL_SOCKET_IFNAME)"),
    "NCCL_IB_DISABLE": ("1", "0", "$(NCCL_NET)", "$(RANK)"),
    "NCCL_DEBUG": ("INFO", "WARN", "a\nb"),
    "NCCL_NET": ("Socket", "IB", "GPUDirectTCPX_v7"),
    "NCCL_NET_PLUGIN": ("none", "anp", "x", "ofi"),
    "NIXL_LOG_LEVEL": ("INFO",),
    "MC_FORCE_TCP": ("1", ""),
    "MOONCAKE_DEVICE": ("mlx5_0", "mlx5_9", '{"0": "mlx5_0"}'),
    "MORI_RDMA_DEVICES": ("mlx5_0,mlx5_1", "rdma0"),
    "NVSHMEM_QP_DEPTH": ("1024",),
    "NVSHMEM_REMOTE_TRANSPORT": ("none", "ucx", "ucx"),
    "MASTER_ADDR": ("a-0.a", "localhost"),
    "UCX_TLS": ("tcp", "rc,cuda", "all", "^ib"),
    "UCX_NET_DEVICES": ("all", "mlx5_0:1", "$(NCCL_IB_HCA)$(NCCL_IB_HCA)$$"),
    "OMPI_MCA_coll_hcoll_enable": ("1", "0"),
    "OMPI_MCA_coll": ("^hcoll",),
    "OMPI_MCA_btl_tcp_if_include": ("eth0", "net1"),
    "PRTE_MCA_prte_if_exclude": ("docker0",),
    "OMPI_MCA_plm_rsh_args": ("-o ConnectionAttempts=10",),
    "OMPI_MCA_orte_default_hostfile": ("/etc/mpi/hostfile",),
    "OMPI_MCA_plm_rsh_agent": ("ssh", "", "$(AGENT)"),
    "OMPI_MCA_btl": ("^openib", "tcp,self"),
    "OMPI_MCA_pml": ("ob1", "ob1", "^ucx", "ucx"),
    "DMLC_ROLE": ("worker",),
    "DMLC_ENABLE_RDMA": ("ibverbs", "0"),
    "I_MPI_FABRICS": ("shm:ofi", "shm:tcp"),
    "I_MPI_OFI_PROVIDER": ("tcp", "mlx"),
    "OMPI_MCA_mtl": ("ofi",),
    "HYDRA_HOST_FILE": ("/etc/mpi/hostfile",),
    "K_MPI_JOB_ROLE": ("launcher", "worker"),
    "FI_PROVIDER": ("efa", "verbs", "$(X)", "tcp", "tcp"),
    "NCCL_FASTRAK_CTRL_DEV": ("eth0",),
    "LD_LIBRARY_PATH": ("/opt/amazon/efa/lib:/lib",),
    "CUDA_VISIBLE_DEVICES": ("0",),
    "NCCL_HOSTID": ("node-1",),
    "NCCL_IPC_USE_ABSTRACT_SOCKET": ("0", "0", "1"),
    "MALLOC_ARENA_MAX": ("4",),
    "NODE_RANK": ("0", "1", "3"),
    "RANK": ("1", "=mlx5_7"),
    "LWS_LEADER_ADDRESS": ("web-3.web.lab", "aws-ofi-nccl-1.web.lab"),
}
REFERENCES: tuple[dict[str, Any], ...] = (
    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    {"name": "LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}},
    {"name": "NCCL_IB_HCA", "valueFrom": {"configMapKeyRef": {"name": "n", "key": "hca"}}},
    {"name": "NCCL_NET", "valueFrom": {"configMapKeyRef": {"name": "n", "key": "net"}}},
    {"name": "UCX_TLS", "valueFrom": {"secretKeyRef": {"name": "s", "key": "tls"}}},
    {"name": "NCCL_DEBUG", "valueFrom": None},
    {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {
            "fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"}
        },
    },
    {
        "name": "NCCL_IB_DISABLE",
        "valueFrom": {
            "fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"}
        },
    },
    {"name": "NCCL_IB_HCA", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
)
MOUNTS: tuple[dict[str, Any], ...] = (
    {"name": "shm", "mountPath": "/dev/shm"},
    {"name": "shm", "mountPath": "/dev"},
    {"name": "tmp", "mountPath": "/tmp"},
    {"name": "info", "mountPath": "/etc/nccl.conf", "subPath": "nccl.conf"},
    {"name": "info", "mountPath": "/etc/"},
    {"name": "info", "mountPath": "/info", "readOnly": True},
    {"name": "kube-api-access-7xkz2", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
    {"name": "kube-api-access-7xkz2", "mountPath": "/dev/shm"},
    {"name": "rdma-lab-shm", "mountPath": "/scratch"},
    {"name": "rdma-lab-shm", "mountPath": "/dev/shm"},
    {"name": "rdma-lab-nccl-conf", "mountPath": "/etc/nccl.conf", "subPath": "nccl.conf"},
)
SECURITY: dict[str, tuple[Any, ...]] = {
    "privileged": (True, False),
    "runAsUser": (0, 1000),
    "runAsNonRoot": (True, None),
    "allowPrivilegeEscalation": (False,),
    "capabilities": (
        None,
        {},
        {"add": ["SYS_PTRACE"]},
        {"add": ["IPC_LOCK"], "drop": ["ALL"]},
        {"add": None, "drop": ["IPC_LOCK"]},
        {"add": ["CAP_IPC_LOCK"]},
        {"add": ["ALL"]},
    ),
}
ANNOTATIONS: dict[str, tuple[Any, ...]] = {
    "rdma.lab/fabric": ("v100-ib", "host", "a100-roce", " v100-ib ", "v100"),
    "rdma.lab/containers": (*("a",) * 6, "a,init", "b", "a, b", "sidecar", "nobody", ",", "init"),
    "rdma.lab/devices": (*("0", "3", "1") * 3, "1000", "-1", "10001", "²"),
    "rdma.lab/memory-limit": (*("drop", "keep") * 5, "Keep"),
    "rdma.lab/skip": (*("env", "ipc-lock,hcoll", "networks, nvlink") * 3, "hcol"),
    "rdma.lab/nvlink": (*("share",) * 6, "yes"),
    "rdma.lab/fabrik": ("a100-roce",),
    "rdma.lab/nccl-conf": ("NCCL_DEBUG=INFO\n", ""),
    "rdma.lab/status": (
        *("{}", "x", '{"applied":["env"],"config":"0"}', "[1]", '"é'),
        '{"fabric":null,"applied":["env","x"],"warned":{"env":["\\u0007"]},"config":"@HASH"}',
        '{"applied":7,"skipped":-1,"warned":1,"config":"@HASH"}',
        '{"applied":["ipc-lock"],"warned":{"ipc-lock":[1]},"config":"@HASH"}',
    ),
    "k8s.v1.cni.cncf.io/networks": (
        *("storage/nfs", "fabric/rail0,x", '[{"name": "nfs"} ]', "[", "", " ", "fabric/rail0@net1"),
        *('[{"name":"rail0","namespace":"fabric","interface":"net2"}]', "a,,b,", "[]", '[ "x" ]'),
        *('[{"name":1}]', "lab/roce-net", "roce-net@net1 ,", '{"name":"x"}'),
    ),
    "ulimits.nri.containerd.io/container.a": ("- {type: NOFILE, soft: 1, hard: 1}", "memlock"),
    "networking.gke.io/interfaces": (
        *("[]", "${X}", '[{"interfaceName":"eth0","network":"default"}]', "{"),
        '[{"interfaceName":"eth1","network":"rdma-0"}]',
    ),
    "networking.gke.io/default-interface": ("eth0",),
    "kubernetes.io/config.mirror": ("x",),
    "kubectl.kubernetes.io/default-container": ("a",),
    "prometheus.io/scrape": ("true",),
    "site.lab/owner": ("x",),
    "gpu-fraction": ("0.5",),
    "rdma.ome.io/auto-inject": ("true",),
    "site.lab/nic": ("fast",),
    "sidecar.istio.io/inject": ("true",),
    "description": ("é" * 40, "a\x1b[31mb", "\u202e"),
}
LABELS: dict[str, tuple[str, ...]] = {
    "training.kubeflow.org/job-role": ("launcher", "worker"),
    "training.kubeflow.org/replica-type": ("launcher", "worker"),
    "mpi_role_type": ("launcher",),
    "training-job-role": ("launcher", "worker"),
    "ray.io/node-type": ("head", "worker"),
    "app": ("train",),
    "batch.kubernetes.io/job-completion-index": ("0", "1", "12"),
    "statefulset.kubernetes.io/pod-name": ("web-3",),
}
VOLUMES: tuple[dict[str, Any], ...] = (
    {"name": "shm", "emptyDir": {"medium": "Memory"}},
    {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
    {"name": "tmp", "hostPath": {"path": "/tmp"}},
    {"name": "tmp", "hostPath": {"path": "/dev/infiniband"}},
    {"name": "info", "configMap": {"name": "info"}},
    {"name": "kube-api-access-7xkz2", "projected": {"sources": []}},
    {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-3"}},
    {"name": "rdma-lab-shm", "emptyDir": {}},
    {"name": "rdma-lab-shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
    {"name": "rdma-lab-nccl-conf", "emptyDir": {}},
    {
        "name": "rdma-lab-nccl-conf",
        "downwardAPI": {
            "items": [
                {
                    "path": "nccl.conf",
                    "fieldRef": {"fieldPath": "metadata.annotations['rdma.lab/nccl-conf']"},
                }
            ]
        },
    },
    {
        "name": "limits",
        "downwardAPI": {
            "items": [{"path": "m", "resourceFieldRef": {"resource": "limits.memory"}}]
        },
    },
    {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
    {
        "name": "both",
        "projected": {
            "sources": [
                {
                    "downwardAPI": {
                        "items": [
                            {
                                "path": "m",
                                "resourceFieldRef": {
                                    "containerName": "a",
                                    "resource": "limits.memory",
                                },
                            }
                        ]
                    }
                }
            ]
        },
    },
)
CLAIMS: tuple[dict[str, Any], ...] = (
    {"name": "device"},
    {"name": "nic"},
    {"name": "gpu", "request": "all"},
    {"name": "rdma-nics"},
    {"name": "imex-channel-0"},
    {"name": "mine"},
    {"name": "rdma-lab-h100-ib-0"},
)


def _terms(*expressions: dict[str, Any]) -> dict[str, Any]:
    terms = [{"matchExpressions": [expression]} for expression in expressions]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


_PRODUCT = "nvidia.com/gpu.product"
AFFINITIES: tuple[Any, ...] = (
    None,
    _terms({"key": _PRODUCT, "operator": "In", "values": ["Tesla-V100-SXM2-16GB"]}),
    _terms(
        {"key": _PRODUCT, "operator": "In", "values": ["Tesla-V100-SXM2-16GB"]},
        {"key": _PRODUCT, "operator": "In", "values": ["NVIDIA-A100-SXM4-80GB"]},
    ),
    _terms({"key": _PRODUCT, "operator": "NotIn", "values": ["Tesla-V100-SXM2-16GB"]}),
    _terms({"key": _PRODUCT, "operator": "Exists"}),
    _terms({"key": "site.lab/fabric", "operator": "In", "values": ["ib"]}),
    _terms({"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-2"]}),
    _terms({"key": "rank", "operator": "Gt", "values": ["1"]}),
    _terms({"key": "rank", "operator": "Lt", "values": ["1" * 30]}, {"key": "rank"}),
    _terms({"key": "pool", "operator": "DoesNotExist", "values": []}),
)
SPEC: dict[str, tuple[Any, ...]] = {
    "hostNetwork": (True, True, False),
    "hostIPC": (True,),
    "hostPID": (True,),
    "hostUsers": (False, True),
    "hostname": ("web-3",),
    "nodeName": ("node-1", "node-9"),
    "nodeSelector": (
        None,
        {_PRODUCT: "NVIDIA-A100-SXM4-80GB"},
        {_PRODUCT: "Tesla-V100-SXM2-32GB-SHARED"},
        {_PRODUCT: "B200"},
        {"site.lab/fabric": "roce"},
        {"site.lab/fabric": "ib"},
        {"kubernetes.io/os": "windows"},
        {"kubernetes.io/hostname": "node-2"},
        {"pool": "nowhere", "gpu": "Tesla-V100-SXM2-16GB"},
        {"cloud.google.com/gke-accelerator": "nvidia-l4"},
        {"nvidia.com/gpu": "NVIDIA-H200"},
        {"pool": "ib"},
    ),
    "affinity": AFFINITIES,
    "securityContext": ({"runAsUser": 1000}, {}, {"runAsNonRoot": True}, None),
    "resources": (
        {"limits": {"memory": "64Gi", "cpu": 8}},
        {"limits": {"cpu": 1}},
        {"limits": {"memory": "64Gi"}, "requests": {"memory": "32Gi"}},
    ),
    "os": ({"name": "windows"}, {"name": "linux"}),
    "resourceClaims": (
        [{"name": "nic", "resourceClaimTemplateName": "roce-nic"}],
        [{"name": "gpu", "resourceClaimTemplateName": "compute-domain-x"}],
        [{"name": "device", "resourceClaimTemplateName": "accelerator"}],
        [{"name": "rdma-nics", "resourceClaimName": "shared"}, {"name": "gpu"}],
        [{"name": "mine", "resourceClaimTemplateName": "nics"}],
        [{"name": "gpu", "resourceClaimTemplateName": "h100"}],
        [{"name": "rdma-lab-h100-ib-0", "resourceClaimTemplateName": "accelerator"}],
        [{"name": "rdma-lab-h100-ib-0", "resourceClaimTemplateName": "pairs"}, {"name": "mine"}],
    ),
    "restartPolicy": ("Never", "Always", "OnFailure"),
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet"),
    "tolerations": (
        [{"operator": "Exists"}],
        [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}],
        [{"key": "dedicated", "operator": "Gt", "value": "1"}, {"key": 7}],
    ),
    "schedulerName": ("default-scheduler", "volcano"),
    "schedulingGates": ([{"name": "example.org/queue"}],),
    "imagePullSecrets": ([{"name": "pull"}],),
}
#: Fields that no version of Kubernetes has, with values that are easily changed by mistake.
UNKNOWN: tuple[tuple[str, Any], ...] = (
    ("x-zeta", None),
    ("x-alpha", {"b": 1, "a": [None]}),
    ("x-~/", "é"),
    ("x~1y", 1.0),
    ("", 10**18),
    ("-", []),
    ("0", {}),
)
