"""Tests of every rule by the findings of the smallest file that breaks it (rules.txt)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.config.files import dra, efa, fabric, findings, roce, sriov, text
from webhook.config.load import parse_fabrics
from webhook.config.rules import RULES, Rule

EXPECTED = Path(__file__).with_name("rules.txt")

#: Keys that give a pod devices, or privileges, or that are not a site's to set.
POWERFUL = (
    "cdi.k8s.io/x",
    "devices.nri.io/pod",
    "container.apparmor.security.beta.kubernetes.io/a",
    "kubernetes.io/config.mirror",
    "io.kubernetes.cri-o.Devices",
    "rdma.lab/devices",
    "ulimits.nri.containerd.io/container.a",
    "mounts.noderesource.dev/container.a",
    "seccomp-profile.crio.io/a",
    "userns-mode.crio.io",
    "io.katacontainers.config.hypervisor.path",
    "dev.gvisor.flag.network",
    "run.oci.hooks.stdout",
)
#: Rule → files that break only this rule.
BROKEN = {
    "fabric_names": [
        text(fabric("V100_IB")),
    ],
    "unique_names": [
        text(fabric("a", match={"gpuProducts": ["A"]}), fabric("a", match={"gpuProducts": ["B"]})),
    ],
    "default_fabric": [
        text(fabric("v100-ib"), defaults={"fabric": "v100"}),
        text(defaults={"fabric": "v100"}),
    ],
    "image_globs": [
        text(fabric(), defaults={"nonRootImages": [" ", "https://quay.io/lab/ray"]}),
        text(fabric(), defaults={"nonRootImages": ["lab/ray, lab/jupyter"]}),
        text(fabric(), defaults={"nonRootImages": ["reg.lab:5000/Lab/Ray*:2.9-GPU@SHA256:0"]}),
    ],
    "images_without_effect": [
        text(fabric(), defaults={"nonRootImages": ["lab/ray*"], "memlock": "unlimited"}),
    ],
    "resource_names": [
        text(fabric(match={"gpuResources": ["gpu"]})),
        text(fabric(resources=[{"name": "kubernetes.io/rdma"}])),
        text(fabric(resources=[{"name": "rdma/ib", "aliases": ["rdma/" + "x" * 64]}])),
    ],
    "plugin_resource_names": [
        text(fabric(resources=[{"name": "rdma/hca-shared"}])),
    ],
    "label_names": [
        text(fabric(match={"nodeLabels": {"a b": "x"}})),
        text(fabric(pin="always", nodeSelector={"fabric": "v 100"})),
    ],
    "label_globs": [
        text(fabric(match={"gpuProducts": ["Tesla V100*"]})),
        text(fabric(match={"nodeLabels": {"zone": []}})),
    ],
    "variable_names": [
        text(fabric(env={"1A": "x"})),
    ],
    "interface_names": [
        text(fabric(socketInterface="=eth0")),
        text(fabric(hostSocketInterface="enp195s0f0np0v12")),
        text(fabric(socketInterface="lo")),
    ],
    "network_names": [
        text(fabric(networks=["lab/"])),
        text(fabric(resources=[{"name": "rdma/ib", "network": "Lab/ib"}])),
    ],
    "shared_memory": [
        text(fabric(sharedMemory="64GB")),
        text(fabric(sharedMemory="0")),
    ],
    "namespaces": [
        text(nvlink={"allowNamespaces": ["team-*"]}),
    ],
    "foreign_globs": [
        text(foreignNics={"annotations": ["*"]}),
        text(foreignNics={"resources": ["efa"]}),
    ],
    "same_gpus": [
        text(fabric("a"), fabric("b")),
        text(
            fabric("a", match={"gpuProducts": ["NVIDIA-*"]}),
            fabric("b", match={"gpuProducts": ["NVIDIA-H100-*"]}),
        ),
    ],
    "many_wildcards": [
        text(fabric(match={"nodeLabels": {"rack": [f"r{number}-*" for number in range(51)]}})),
    ],
    "aliases_of_two": [
        text(
            fabric(
                resources=[
                    {"name": "rdma/a", "aliases": ["rdma/hca"]},
                    {"name": "rdma/b", "aliases": ["rdma/hca"]},
                ],
            ),
        ),
    ],
    "alias_is_resource": [
        text(fabric(resources=[{"name": "rdma/ib", "aliases": ["rdma/ib"]}])),
    ],
    "repeated_resources": [
        text(fabric(resources=[{"name": "rdma/ib"}, {"name": "rdma/ib"}])),
    ],
    "gpu_as_rdma": [
        text(fabric(resources=[{"name": "nvidia.com/gpu"}])),
        text(fabric(resources=[{"name": "rdma/ib", "aliases": ["nvidia.com/gpu"]}])),
        text(
            fabric(
                match={"gpuResources": ["nvidia.com/h200"]},
                resources=[
                    {"name": "nvidia.com/h200"},
                    {"name": "nvidia.com/mig-1g.5gb"},
                    {"name": "amd.com/gpu"},
                    {"name": "gpu.intel.com/xe"},
                    {"name": "nvidia.com/gpumem"},
                ],
            )
        ),
    ],
    "gpu_model_as_rdma": [
        text(fabric(resources=[{"name": "nvidia.com/h200"}])),
        text(fabric(resources=[{"name": "rdma/ib", "aliases": ["nvidia.com/Tesla-V100-SXM2"]}])),
        text(
            fabric(
                resources=[
                    {"name": "nvidia.com/A100-SXM4-80GB"},
                    {"name": "nvidia.com/gb200"},
                    {"name": "nvidia.com/l40s"},
                    {"name": "amd.com/mi300x"},
                ]
            )
        ),
    ],
    "products_twice": [
        text(fabric(match={"gpuProducts": ["A"], "nodeLabels": {"nvidia.com/gpu.product": "B"}})),
    ],
    "unknown_products": [
        text(fabric(match={"gpuProducts": ["V100", "v100*", "H200", "T4", "V100-SXM2-32GB"]})),
        text(fabric(match={"gpuProducts": ["A100", "*h100*", "NVIDIA-H100-80GB-HMB3"]})),
        text(fabric(match={"nodeLabels": {"nvidia.com/gpu.product": "H100-*"}})),
    ],
    "stripped_suffixes": [
        text(fabric(match={"gpuProducts": ["NVIDIA-A100-SXM4-40GB-MIG-*"]})),
    ],
    "pin_without_labels": [
        text(fabric(pin="always")),
    ],
    "selector_without_pin": [
        text(fabric(nodeSelector={"fabric": "ib"})),
    ],
    "selector_against_match": [
        text(
            fabric(pin="always", nodeSelector={"zone": "b"}, match={"nodeLabels": {"zone": ["a*"]}})
        ),
    ],
    "hca_names": [
        text(fabric(hcas=["=mlx5_0"])),
        text(fabric(hcas=["mlx5_0:999"])),
        text(fabric(hcas=[], hcaPrefixes=["ibp*"])),
    ],
    "hca_ranges": [
        text(fabric(hcas=["mlx5_0..mlx5_7"])),
        text(fabric(hcas=["mlx5_0-7", "mlx5_8-mlx5_11:1"])),
        text(fabric(hcas=[], excludeHcas=["bnxt_re0-1"])),
        text(fabric(hcas=[], hcaPrefixes=["ibp14s0-3"])),
        text(fabric(hcas=[], env={"NCCL_IB_HCA": "=mlx5_0-7"})),
    ],
    "hca_stems": [
        text(fabric(hcas=["mlx5", "mlx5_", "mlx5_bond:1", "ibp"])),
        text(fabric(hcas=[], excludeHcas=["mlx5_bond"])),
        text(fabric(hcas=[], env={"NCCL_IB_HCA": "=mlx5"})),
    ],
    "hca_interfaces": [
        text(fabric(hcas=["ib0", "eth0", "ens1f0np0", "enP2p1s0", "bond0:1", "net1"])),
        text(fabric(hcas=[], excludeHcas=["ib0.8001"])),
        text(fabric(hcas=[], hcaPrefixes=["ens"])),
        text(fabric(hcas=[], env={"NCCL_IB_HCA": "^ib0,ib1"})),
    ],
    "hca_capitals": [
        text(fabric(hcas=["MLX5_0", "IBP14S0", "RDMAP23800P0S2", "mlx5_Bond_0"])),
    ],
    "hca_forms": [
        text(fabric(hcas=["mxl5_0", "mlx5-1", "mlx52", "mlx_3", "mlnx5_4", "bnxt_re_0"])),
        text(fabric(hcas=[0, 1])),
        text(fabric(hcas=[], hcaPrefixes=["mxl5_"])),
        text(fabric(hcas=[], env={"NCCL_IB_HCA": "=mxl5_0:1"})),
    ],
    "no_hcas": [
        text(fabric(hcas=...)),
        text(fabric(hcas=[], libraries=["nvshmem"])),
        text(roce(mode="host-network", networks=[], hcas=[], libraries=["ucx"])),
    ],
    "combined_hca_lists": [
        text(fabric(excludeHcas=["mlx5_bond_0"])),
    ],
    "hcas_without_names": [
        text(sriov(hcas=["mlx5_0"])),
    ],
    "hca_limit": [
        text(fabric(hcas=[f"mlx5_{number}" for number in range(33)])),
        text(fabric(hcas=["mlx5_0", "mlx5_0"])),
        text(fabric(hcas=["mlx5_0:1:0", "mlx5_0:1:1"])),
    ],
    "open_prefixes": [
        text(fabric(hcas=[], hcaPrefixes=["mlx5_1"])),
        text(fabric(hcas=[], hcaPrefixes=["mlx5"])),
    ],
    "prefixes_of_others": [
        text(
            fabric("a", match={"gpuProducts": ["A"]}, hcas=["ibp14s0"]),
            fabric("b", match={"gpuProducts": ["B"]}, hcas=[], hcaPrefixes=["ibp"]),
        ),
    ],
    "bond_on_infiniband": [
        text(fabric(hcas=["mlx5_0", "mlx5_bond_0"])),
    ],
    "nvshmem_prefixes": [
        text(fabric(hcas=["mlx5_0", "ibp14s0"], libraries=["nvshmem"])),
        text(fabric(hcas=..., hcaPrefixes=["mlx5_1", "ibp"], libraries=["nvshmem"])),
    ],
    "devices_of_plugin": [
        text(efa(hcas=["efa_0"], qos={"trafficClass": 3})),
        text(fabric(transport="gib", hcas=..., excludeHcas=["mlx5_0"])),
        text(fabric(transport="gib", hcas=..., hcaPrefixes=["rocep"])),
    ],
    "annotation_keys": [
        text(fabric(annotations=dict.fromkeys(POWERFUL, "x"))),
        text(fabric(annotations={"k8s.v1.cni.cncf.io/networks": "lab/a", "a b": "x"})),
    ],
    "roce_networks": [
        text(roce(networks=[])),
        text(roce(hcas=["mlx5_0", "mlx5_1"])),
    ],
    "networks_on_host": [
        text(roce(mode="host-network", socketInterface="eth0", hostSocketInterface="bond0")),
    ],
    "own_device_networks": [
        text(sriov(resources=[{"name": "example.com/vf"}])),
        text(sriov(linkLayer="Ethernet", resources=[{"name": "example.com/vf"}])),
    ],
    "network_interfaces": [
        text(roce(hcas=["mlx5_0", "mlx5_1"], networks=["lab/a@net1", "lab/b@net1"])),
        text(sriov(resources=[{"name": "example.com/vf", "count": 2, "network": "lab/a@net1"}])),
    ],
    "per_gpu_shared": [
        text(fabric(resources=[{"name": "rdma/ib", "count": "per-gpu"}])),
    ],
    "many_units": [
        text(fabric(resources=[{"name": "rdma/ib", "count": 8}])),
    ],
    "per_gpu_fields": [
        text(fabric(resources=[{"name": "rdma/ib", "max": 8}])),
        text(fabric(resources=[{"name": "rdma/ib", "devicesPerGpu": 2}])),
    ],
    "per_gpu_both_ways": [
        text(
            sriov(
                resources=[
                    {
                        "name": "x.io/vf",
                        "count": "per-gpu",
                        "gpusPerDevice": 2,
                        "devicesPerGpu": 2,
                        "network": "lab/vf",
                    }
                ]
            )
        ),
    ],
    "no_resource": [
        text(fabric(resources=...)),
    ],
    "claim_names": [
        text(dra(match={"deviceClasses": ["GPU"]})),
        text(dra(claims=[{"template": "RDMA nics"}])),
        text(dra(claims=[{"template": "nics", "request": "a/b"}])),
    ],
    "claims_without_dra": [
        text(fabric(claims=[{"template": "nics"}])),
    ],
    "dra_without_claims": [
        text(dra(claims=[])),
    ],
    "dra_with_resources": [
        text(dra(resources=[{"name": "rdma/ib"}])),
    ],
    "repeated_templates": [
        text(dra(claims=[{"template": "nics", "request": "a"}, {"template": "nics"}])),
    ],
    "many_claims": [
        text(dra(claims=[{"template": f"rail-{number}"} for number in range(11)])),
        text(dra("a" * 51)),
    ],
    "rdma_switched_off": [
        text(fabric(env={"NCCL_IB_DISABLE": 1, "NCCL_NET": "Socket"})),
    ],
    "debugging_variables": [
        text(fabric(env={"NCCL_P2P_DISABLE": "1"})),
    ],
    "misspelled_variables": [
        text(fabric(env={"NCCL_IB_HCAS": "mlx5_0", "NCCL_DEUBG": "INFO", "UCX_TLSS": "rc"})),
        text(fabric(env={"nccl_debug": "INFO", "Ucx_Tls": "rc", "nccl_debgu": "INFO"})),
    ],
    "infinite_timeout": [
        text(fabric(env={"NCCL_IB_TIMEOUT": 32})),
    ],
    "sockets_twice": [
        text(fabric(socketInterface="eth0", env={"GLOO_SOCKET_IFNAME": "eth0"})),
    ],
    "sockets_in_env": [
        text(fabric(env={"NCCL_SOCKET_IFNAME": "eth0"})),
    ],
    "ucx_without_interface": [
        text(fabric(mode="host-network")),
        text(fabric(socketInterface="")),
        text(fabric(env={"GLOO_SOCKET_IFNAME": "lo"})),
    ],
    "ucx_devices_without_interface": [
        text(fabric(env={"UCX_NET_DEVICES": "mlx5_0:1,mlx5_1:1"})),
    ],
    "openmpi_on_host": [
        text(fabric(mode="host-network", libraries=["nccl", "openmpi"])),
    ],
    "rendered_twice": [
        text(fabric(env={"NCCL_IB_HCA": "=mlx5_1"})),
        text(fabric(hcas=[], excludeHcas=["mlx5_9"], env={"NCCL_IB_HCA": "=mlx5_1"})),
        text(fabric(hcas=[], hcaPrefixes=["mlx5_"], env={"NCCL_IB_HCA": "=mlx5_1"})),
        text(fabric(qos={"trafficClass": 106}, env={"NCCL_IB_TC": "96"})),
    ],
    "nccl_values": [
        text(fabric(env={"NCCL_TOPO_FILE": "/" + "x" * 1023})),
        text(fabric(hcas=[f"mlx5_{'x' * 40}_{number}" for number in range(32)])),
    ],
    "nccl_ib_hca_value": [
        text(fabric(hcas=[], env={"NCCL_IB_HCA": "mlx5_0, mlx5_1"})),
    ],
    "ucx_without_rdma": [
        text(fabric(env={"UCX_TLS": "tcp,cuda_copy"})),
        text(fabric(env={"UCX_TLS": "^ib"})),
        text(fabric(env={"UCX_TLS": "^rc,ud,dc"})),
    ],
    "gid_index_per_pod": [
        text(roce(qos={"gidIndex": 3})),
        text(dra(qos={"gidIndex": 3})),
        text(fabric(resources=[{"name": "rdma/ib", "network": "lab/ib"}], qos={"gidIndex": 3})),
    ],
    "pkey_without_infiniband": [
        text(roce(qos={"pkey": "0x8001"}, libraries=["ucx"])),
    ],
    "pkey_without_nccl": [
        text(fabric(qos={"pkey": "0x8001"})),
    ],
    "roce_priority": [
        text(roce(qos={"serviceLevel": 8})),
    ],
    "small_shared_memory": [
        text(fabric(sharedMemory="64m")),
    ],
}


def report() -> str:
    """Write the findings of every file, under the name of its rule."""
    blocks = []
    for name, files in BROKEN.items():
        listed = [item for file in files for item in findings(file)]
        blocks.append(
            "\n".join([name, *(f"  {kind} {path}: {message}" for kind, path, message in listed)])
        )
    return "\n\n".join(blocks) + "\n"


def test_a_broken_rule_is_reported_with_path_value_and_remedy() -> None:
    """rules.txt has every rule's findings; UPDATE_GOLDEN=1 rewrites it, for review."""
    if os.environ.get("UPDATE_GOLDEN"):
        EXPECTED.write_text(report(), encoding="utf-8")
    assert report() == EXPECTED.read_text(encoding="utf-8")


def test_every_rule_is_broken_here() -> None:
    """BROKEN has a file for each rule; a function that is missing in RULES lacks `@rule`."""
    assert BROKEN.keys() == {rule.check.__name__ for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.check.__name__)
def test_every_rule_has_its_own_files(rule: Rule) -> None:
    """A file listed for a rule has only findings of the rule's severity."""
    for file in BROKEN[rule.check.__name__]:
        assert {severity for severity, _, _ in findings(file)} == {rule.level}


FINE = {
    "small files": text(fabric()),
    "no fabric": text(),
    "RoCE with a network": text(roce()),
    "SR-IOV": text(sriov(resources=[{"name": "x.io/vf", "count": "per-gpu", "network": "vf"}])),
    "DRA": text(
        dra(
            "a" * 50, claims=[{"template": f"rail-{number}", "per": "pod"} for number in range(10)]
        ),
        dra("b", claims=[{"template": "rail-0", "request": "nic"}], match={"gpuResources": []}),
    ),
    "host network": text(roce(mode="host-network", networks=[], hostSocketInterface="bond0")),
    "a device without RDMA resource": text(
        fabric(mode="host-network", resources=[], hostSocketInterface="bond0")
    ),
    "no interface for UCX where UCX names no device": text(
        fabric("a", mode="host-network", libraries=["nccl", "gloo"]),
        fabric("b", mode="host-network", hcas=..., hcaPrefixes=["ibp"], match={"gpuResources": []}),
    ),
    "UCX's devices in env": text(
        fabric("a", mode="host-network", env={"UCX_NET_DEVICES": "mlx5_0:1,eth0"}),
        fabric("b", env={"UCX_NET_DEVICES": "all"}, match={"gpuResources": []}),
    ),
    "the default is one of two": text(fabric("a"), fabric("b"), defaults={"fabric": "a"}),
    "no GPU is evidence": text(fabric("a"), fabric("b", match={"gpuResources": []})),
    "labels with wildcards in front": text(
        fabric("a", match={"gpuProducts": ["*A100*"]}),
        fabric("b", match={"gpuProducts": ["*H100*"]}),
    ),
    "ports of one device share a network": text(roce(hcas=["mlx5_0:1", "mlx5_0:2"])),
    "one network per device": text(
        roce(
            hcas=["mlx5_0", "mlx5_1"],
            networks=["lab/a@net1"],
            resources=[{"name": "rdma/roce", "network": "lab/b@net2"}],
        )
    ),
    "names of udev": text(
        fabric(hcas=["ibp14s0", "rdmaP23800p0s2", "ibP57247p0s2", "ibs5", "ibo1", "roceo2"])
    ),
    "names of udev on Ethernet": text(
        roce(
            hcas=["rocep32s0f0", "rocep32s0f1v7", "rocex525400c0fe123455"],
            networks=["lab/a", "lab/b", "lab/c"],
        )
    ),
    "names that a site gave": text(
        fabric(
            hcas=["mlx5_ib0", "mlx5_101", "bnxt_re0", "irdma0", "rail0-1", "storage", "rxe_eth0"]
        )
    ),
    "names that a site gave, almost a driver's": text(fabric(hcas=["rdma0", "roce1", "ib_0"])),
    "all drivers' names": text(
        fabric(hcas=["mlx4_0", "mlx5_1", "hfi1_0", "erdma_0", "irdma3", "efa_0", "qedr0"])
    ),
    "no device where pods have their own": text(sriov()),
    "no resource on purpose": text(fabric(resources=[])),
    "no network for InfiniBand on purpose": text(
        sriov(linkLayer="InfiniBand", resources=[{"name": "example.com/vf"}])
    ),
    "no device for Gloo": text(fabric(hcas=[], libraries=["gloo"])),
    "devices for UCX alone, in env": text(
        fabric(hcas=[], env={"UCX_NET_DEVICES": "mlx5_0:1,eth0"})
    ),
    "variables of a site": text(
        fabric(env={"SITE": 1, "http_proxy": "x", "NCCL_SITE_PLUGIN": "y", "DEBUG": 1, "X" * 90: 2})
    ),
    "GPU products": text(
        fabric("a", match={"gpuProducts": ["Tesla-V100-SXM2-32GB", "*V100*", "A100-SXM4-*"]}),
        fabric("b", match={"gpuResources": ["x.io/gpu"], "gpuProducts": ["NVIDIA-R300", "MI300X"]}),
        fabric("c", match={"gpuResources": ["y.io/gpu"], "gpuProducts": ["*-?100-*", "*", "B"]}),
    ),
    "NCCL_IB_HCA in env": text(
        fabric(hcas=[], env={"NCCL_IB_HCA": "^=mlx5_bond_0,mlx5_1:1:0"}),
    ),
    "a prefix in env": text(fabric(hcas=[], env={"NCCL_IB_HCA": "mlx5"})),
    "RDMA resources of GPU vendors": text(
        sriov(
            resources=[
                {"name": f"nvidia.com/{name}", "network": f"lab/{place}"}
                for place, name in enumerate(
                    ["hostdev", "rail_0", "roce_vf", "p0", "h200_ib", "sriov_a100", "mlnxnics"]
                )
            ]
        )
    ),
    "a bond on Ethernet": text(roce(hcas=["mlx5_bond_0"])),
    "prefixes with a number of their own": text(fabric(hcas=..., hcaPrefixes=["ibp14s", "rdma"])),
    "the same value in env": text(fabric(env={"NCCL_IB_HCA": "=mlx5_0"})),
    "RDMA left on": text(
        fabric(env={"NCCL_IB_DISABLE": "0", "NCCL_NET": "IB", "UCX_TLS": "^tcp,rc"})
    ),
    "UCX's short names": text(fabric(env={"UCX_TLS": "cuda,rc_x,sm,self", "NCCL_IB_TIMEOUT": 22})),
    "a partition key with NCCL's index": text(
        fabric(qos={"pkey": 3}, env={"NCCL_IB_PKEY": 1}),
    ),
    "several lines outside NCCL": text(fabric(env={"SITE_NOTE": "a\nb"})),
    "a priority": text(roce(qos={"serviceLevel": 7, "trafficClass": 106})),
    "pinned": text(
        fabric(pin="always", nodeSelector={"zone": "a1"}, match={"nodeLabels": {"zone": "a*"}})
    ),
    "NVSHMEM's prefix": text(
        fabric("a", hcas=["ibp14s0", "ibs2"], libraries=["nvshmem"]),
        fabric(
            "b",
            hcas=["mlx5_0", "ibp14s0"],
            libraries=["nvshmem"],
            env={"NVSHMEM_HCA_PREFIX": "ib"},
            match={"gpuResources": []},
        ),
        fabric("c", hcas=["mlx5_0", "ibp14s0"], match={"gpuResources": []}),
    ),
    "rails and planes": text(fabric(hcas=["mlx5_0:1:0", "mlx5_1:1:0:1", "mlx5_0:2:1:1"])),
    "two devices per GPU": text(
        sriov(
            resources=[
                {"name": "x.io/vf", "count": "per-gpu", "devicesPerGpu": 2, "network": "lab/vf"}
            ]
        )
    ),
    "counts in SR-IOV": text(
        sriov(resources=[{"name": "x.io/vf", "count": 2, "network": "lab/vf"}])
    ),
    "images of other users": text(
        fabric(),
        defaults={
            "nonRootImages": ["*", "rayproject/ray*", "reg.lab:5000/a/b:2.9-GPU", "a@sha256:Ab*"]
        },
    ),
    "foreign NICs": text(foreignNics={"resources": ["*/hostdev*"], "annotations": ["a.io/nic*"]}),
}


@pytest.mark.parametrize("name", FINE)
def test_what_works_is_not_reported(name: str) -> None:
    """Each of these files is loaded without a finding."""
    assert parse_fabrics(FINE[name], "fabrics.yaml").findings == ()


def test_rules_speak_of_what_pydantic_understood() -> None:
    """A wrong field does not hide another wrong value, and causes no false finding.

    Rules that compare fields skip a fabric with a wrong value: here RoCE would seem to lack a
    network. They do not skip one with an unknown field, hence `pin` of the third fabric.
    """
    written = text(
        roce(name="A", networks="lab/roce", socketInterface="=eth0"),
        fabric("b", hcas=["mlx5*"], resources=[{"name": "rdma/a-b", "count": "all"}, {}]),
        fabric("c", pin="always", match={"gpuProducts": ["C"], "nodeLabel": {}}),
        {},
        "e",
        fabric("e2", resources=[{"name": []}], hcas=["mlx5*"]),
        fabric("f", pin="always", match={"gpuProducts": ["F"]}),
        defaults={"fabric": "b", "hcol": "off"},
        nvlink={"allowNamespaces": "lab"},
    )

    assert sorted((severity, path) for severity, path, _ in findings(written)) == [
        ("error", "spec.defaults.hcol"),
        ("error", "spec.fabrics[0].name"),
        ("error", "spec.fabrics[0].networks"),
        ("error", "spec.fabrics[0].socketInterface"),
        ("error", "spec.fabrics[1].hcas[0]"),
        ("error", "spec.fabrics[1].resources[0].count"),
        ("error", "spec.fabrics[1].resources[1].name"),
        ("error", "spec.fabrics[2].match.nodeLabel"),
        ("error", "spec.fabrics[2].pin"),
        ("error", "spec.fabrics[3].name"),
        ("error", "spec.fabrics[4]"),
        ("error", "spec.fabrics[5].hcas[0]"),
        ("error", "spec.fabrics[5].resources[0].name"),
        ("error", "spec.fabrics[6].pin"),
        ("error", "spec.nvlink.allowNamespaces"),
    ]


def test_networks_on_host_give_pods_no_interfaces() -> None:
    """They do nothing in mode host-network, so that all pods of a node have its GID index."""
    resource = {"name": "rdma/ib", "network": "lab/ib"}
    for fields in ({"networks": ["lab/ib"]}, {"resources": [resource]}):
        file = text(fabric(mode="host-network", qos={"gidIndex": 3}, **fields))
        codes = {finding.code for finding in parse_fabrics(file, "fabrics.yaml").findings}
        assert "NetworksOnHost" in codes
        assert "GidIndexPerPod" not in codes


def test_two_fabrics_may_share_an_alias() -> None:
    """The lab's V100 and A100 fabrics both rename `rdma/hca`, each to its own resource."""
    file = text(
        fabric(
            "a",
            match={"gpuProducts": ["A"]},
            resources=[{"name": "rdma/a", "aliases": ["rdma/hca"]}],
        ),
        fabric(
            "b",
            match={"gpuProducts": ["B"]},
            resources=[{"name": "rdma/b", "aliases": ["rdma/hca"]}],
        ),
    )
    assert findings(file) == []
