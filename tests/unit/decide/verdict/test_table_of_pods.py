"""The pods that users write most, and the verdict on each."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import (
    V100,
    container,
    decide_on,
    decision_input,
    env,
    fabric,
    gpu,
    pod,
    quantities,
)
from tests.unit.decide.verdict.judging import judged
from webhook.decide.analysis import DecisionInput
from webhook.model.fabric import Fabric, FabricEnv, RdmaResource
from webhook.model.facts import PSA_ENFORCE, NamespaceFacts
from webhook.model.nodes import FabricIndex
from webhook.model.pod import PodManifest

Row = tuple[PodManifest, DecisionInput | None, str]

GPUS = V100.gpu_resources
ON_V100 = {"rdma.lab/fabric": "v100-ib"}
USER: dict[str, Any] = {"securityContext": {"runAsUser": 1000}}
PRIVILEGED: dict[str, Any] = {"securityContext": {"privileged": True}}
TORCHRUN = ["torchrun", "--nproc-per-node=8", "train.py"]
MPIRUN = ["mpirun", "-np", "64", "./osu_allreduce"]
NIXL = ["vllm", "serve", "--kv-transfer-config", '{"kv_connector": "NixlConnector"}']
HOST_DEVICES: dict[str, Any] = {
    "volumes": [{"name": "ib", "hostPath": {"path": "/dev/infiniband"}}]
}
MOUNTED: dict[str, Any] = {"volumeMounts": [{"name": "ib", "mountPath": "/dev/infiniband"}]}
SHARED_DEVICE = (RdmaResource(name="rdma/x"),)
ROCE = fabric("roce", gpu_resources=GPUS, link_layer="Ethernet", resources=SHARED_DEVICE)
ROCE_NET = fabric(
    "net", gpu_resources=GPUS, link_layer="Ethernet", resources=SHARED_DEVICE, networks=("a/b",)
)
HOST = fabric("host", gpu_resources=GPUS, mode="host-network")
BARE = fabric("bare", gpu_resources=GPUS)
RAILS = fabric(
    "rails",
    gpu_resources=GPUS,
    mode="sr-iov",
    resources=tuple(RdmaResource(name=f"nvidia.com/rail{rail}") for rail in range(8)),
)
NVSHMEM = fabric(
    "nvshmem",
    gpu_resources=GPUS,
    resources=SHARED_DEVICE,
    libraries=frozenset({"nccl", "nvshmem"}),
    env=FabricEnv(library_variables=(("NVSHMEM_HCA_PREFIX", "ibp"),)),
)
TWINS = tuple(fabric(name, gpu_resources=frozenset({"nvidia.com/gpu"})) for name in "ab")
NODES = FabricIndex(by_node={"n": frozenset({"v100-ib"})}, inhabited_fabrics=frozenset({"v100-ib"}))
OTHER_NODES = FabricIndex(by_node={"n": frozenset({"x"})}, inhabited_fabrics=frozenset({"x"}))
RESTRICTED = NamespaceFacts(name="lab", labels={PSA_ENFORCE: "baseline"})


def site(*members: Fabric, **defaults: Any) -> DecisionInput:
    """Make the input of a row's decision, with these defaults of the site."""
    given = {key: defaults.pop(key) for key in ("namespace", "fabric_index") if key in defaults}
    return decision_input(*members, defaults=defaults, **given)


YES: dict[str, Row] = {
    "torchrun": (pod(gpu(count="8", command=TORCHRUN)), None, "Equipped"),
    "vllm as root": (pod(gpu(count="8", securityContext={"runAsUser": 0})), None, "Equipped"),
    "one node": (pod(gpu(count="8"), nodeName="n"), None, "Equipped"),
    "mig": (
        pod(container(resources=quantities({"nvidia.com/mig-1g.5gb": "1"})), annotations=ON_V100),
        None,
        "Equipped",
    ),
    "non-root, unlimited": (pod(gpu(**USER)), site(memlock="unlimited"), "Equipped"),
    "non-root, nri": (pod(gpu(**USER)), site(memlock="nri"), "Equipped"),
    "privileged": (pod(gpu(**PRIVILEGED)), site(BARE), "Equipped"),
    "hostPath beside a plugin": (pod(gpu(**MOUNTED), **HOST_DEVICES), None, "Equipped"),
    "nvshmem": (pod(), site(NVSHMEM), "Equipped"),
    "roce with networks": (pod(), site(ROCE_NET), "Equipped"),
    "hostNetwork in its mode": (pod(gpu(**PRIVILEGED), hostNetwork=True), site(HOST), "Equipped"),
    "sshd worker": (pod(gpu(command=["/usr/sbin/sshd", "-De"])), None, "Equipped"),
    "cpu ranks": (pod(container(command=MPIRUN), annotations=ON_V100), None, "Equipped"),
    "cpu ranks and a sidecar": (
        pod(container(command=MPIRUN), container("logs", command=["fluentd"]), annotations=ON_V100),
        None,
        "Equipped",
    ),
    "UCX_TLS=tcp beside NCCL": (pod(gpu(env=env(UCX_TLS="tcp"))), None, "Equipped"),
    "tool of the node": (
        pod(
            container(**MOUNTED, **PRIVILEGED),
            hostNetwork=True,
            dnsPolicy="ClusterFirstWithHostNet",
            **HOST_DEVICES,
        ),
        None,
        "NodeDevices",
    ),
    "one VF of eight": (pod(gpu(limits={"nvidia.com/rail0": "1"})), site(RAILS), "Equipped"),
}
NO: dict[str, Row] = {
    "non-root": (pod(gpu(**USER)), site(memlock="limited"), "MemlockLimited"),
    "user namespace": (pod(hostUsers=False), site(memlock="limited"), "MemlockLimited"),
    "refused IPC_LOCK": (pod(), site(memlock="limited", namespace=RESTRICTED), "IpcLockForbidden"),
    "hostPath alone": (pod(gpu(**MOUNTED), **HOST_DEVICES), site(BARE), "DeviceByHostPath"),
    "several fabrics": (
        pod(container(resources=quantities({"nvidia.com/gpu": "8"}))),
        site(*TWINS),
        "FabricAmbiguous",
    ),
    "NCCL_IB_DISABLE": (pod(gpu(env=env(NCCL_IB_DISABLE="1"))), None, "NcclIbDisabled"),
    "nixl over tcp": (
        pod(gpu(command=NIXL, env=env(UCX_TLS="tcp"))),
        None,
        "NixlWithoutRdma",
    ),
    "hostNetwork missing": (pod(), site(HOST), "HostNetworkMissing"),
    "offered nowhere": (pod(), site(nodes="static", fabric_index=NODES), "ResourceNowhere"),
    "pml ob1 over tcp": (
        pod(
            container(command=["mpirun", "-mca", "pml", "ob1", "-mca", "btl", "tcp,self", "./a"]),
            annotations=ON_V100,
        ),
        None,
        "MPIOverTCP",
    ),
    "no target": (pod(container()), None, "NoTarget"),
    "one of two on sockets": (
        pod(gpu("a"), gpu("b", env=env(NCCL_NET="Socket"))),
        None,
        "NcclNetSocket",
    ),
    "gvisor": (pod(runtimeClassName="gvisor"), None, "GvisorSandbox"),
}
UNSURE: dict[str, Row] = {
    "non-root": (pod(gpu(**USER)), None, "MemlockUnknown"),
    "user namespace": (pod(hostUsers=False), None, "MemlockUnknown"),
    "refused IPC_LOCK": (pod(), site(namespace=RESTRICTED), "PodSecurity"),
    "an image's own script": (
        pod(container(command=["/opt/start.sh"], env=env(OMPI_MCA_pml="ucx"))),
        None,
        "RanksUnknown",
    ),
    "pml ob1": (
        pod(container(command=MPIRUN, env=env(OMPI_MCA_pml="ob1")), annotations=ON_V100),
        None,
        "MPIOb1",
    ),
    "roce without networks": (pod(), site(ROCE), "RoceWithoutNetworks"),
    "efa": (pod(gpu(limits={"vpc.amazonaws.com/efa": "4"})), None, "ForeignNIC"),
    "amd nic": (pod(gpu(limits={"amd.com/nic": "8"})), None, "ForeignNIC"),
    "rdma of no fabric": (pod(gpu(limits={"rdma/other": "1"})), None, "ResourceUnknown"),
    "nccl plugin": (pod(gpu(env=env(NCCL_NET_PLUGIN="fastrak"))), None, "NcclNetPlugin"),
    "envFrom": (pod(gpu(envFrom=[{"secretRef": {"name": "s"}}])), None, "EnvUnseen"),
    "fabric without nodes": (
        pod(annotations=ON_V100),
        site(fabric_index=OTHER_NODES),
        "FabricWithoutNodes",
    ),
    "image of ray": (pod(gpu(image="rayproject/ray:2.9.0")), None, "MemlockUnknown"),
    "gpudirect-tcpx": (pod(gpu(env=env(NCCL_NET="GPUDirectTCPX_v7"))), None, "ForeignNIC"),
    "istio": (pod(labels={"sidecar.istio.io/inject": "true"}), None, "IstioSidecar"),
    "kata": (pod(runtimeClassName="kata-qemu"), None, "KataSandbox"),
}
NONE: dict[str, Row] = {
    "mpi launcher": (
        pod(container("launcher", command=["mpirun", "--hostfile", "/etc/mpi/hostfile", "./a"])),
        None,
        "Launcher",
    ),
    "cpu ray head": (pod(container(command=["ray", "start", "--head"])), None, "Launcher"),
}


def _cases(rdma: str, rows: dict[str, Row]) -> list[Any]:
    return [pytest.param(rdma, *row, id=f"{rdma}-{name}") for name, row in rows.items()]


@pytest.mark.parametrize(
    ("rdma", "manifest", "given", "code"),
    [
        *_cases("yes", YES),
        *_cases("no", NO),
        *_cases("unsure", UNSURE),
        *_cases("none", NONE),
    ],
)
def test_the_verdict_on_what_users_write(
    rdma: str, manifest: PodManifest, given: DecisionInput | None, code: str
) -> None:
    """Each pod has its verdict and its reason, also in a second decision."""
    assert judged(manifest, given) == (rdma, code)


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("UCX_TLS=tcp beside NCCL", "UcxTlsWithoutRdma"),
        ("one VF of eight", "FewDevices"),
        ("hostPath beside a plugin", "HostPathDevices"),
    ],
)
def test_some_equipped_pods_are_warned(name: str, warning: str) -> None:
    """They have RDMA, but perhaps less of it than intended."""
    manifest, given, _ = YES[name]
    decision = decide_on(manifest, given)
    assert [outcome.reason.code for outcome in decision.outcomes if outcome.status == "warned"] == [
        warning
    ]
