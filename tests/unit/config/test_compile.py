"""Tests of compiling a checked file to the records for decisions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.config.files import compiled, dra, fabric, text
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import parse_fabrics
from webhook.config.model import FabricEntry
from webhook.model.decision import VERSION
from webhook.model.fabric import (
    ClaimTemplateReference,
    Defaults,
    Fabric,
    FabricEnv,
    Globs,
    RdmaResource,
)

QOS = {"trafficClass": 104, "serviceLevel": 3, "fifoTrafficClass": 192, "gidIndex": 3, "pkey": 5}


#: Every field that a fabric can have, except those of OTHER_MODES.
OWN_DEVICES = fabric(
    "h100",
    match={
        "gpuResources": ["nvidia.com/h100"],
        "gpuProducts": ["NVIDIA-H100-*"],
        "nodeLabels": {"zone": ["a", "b*"]},
    },
    mode="host-device",
    linkLayer="Ethernet",
    rateGbps=400,
    hcas=...,
    injectResources=False,
    resources=[
        {
            "name": "nvidia.com/hostdev",
            "count": "per-gpu",
            "gpusPerDevice": 2,
            "max": 4,
            "aliases": ["rdma/hca"],
            "network": "lab/rail",
        }
    ],
    socketInterface="net1",
    hostSocketInterface="bond0",
    networks=["lab/extra@net9"],
    annotations={"example.com/nics": "all"},
    libraries=["nccl"],
    sharedMemory="64Gi",
    pin="always",
    nodeSelector={"zone": "a"},
    env={"NCCL_DEBUG": "WARN"},
)
#: The fields that need names of HCAs, or another mode, in valid combinations.
OTHER_MODES: list[dict[str, Any]] = [
    {"hcas": ["mlx5_4"], "qos": QOS},
    {"hcas": ..., "excludeHcas": ["mlx5_bond_0"]},
    {"hcas": ..., "hcaPrefixes": ["ibp"]},
    {"hcas": ..., "transport": "gib"},
    {"hcas": ..., "mode": "dra", "resources": ..., "claims": [{"template": "nics"}]},
]


def test_every_field_of_a_fabric_makes_a_difference() -> None:
    """These are all fields of the model, and without any one of them the record differs."""
    fields = {field.alias for field in FabricEntry.model_fields.values()}
    assert fields == {"name", *OWN_DEVICES, *(key for given in OTHER_MODES for key in given)}
    for key in OWN_DEVICES.keys() - {"name"}:
        less = {name: value for name, value in OWN_DEVICES.items() if name != key}
        assert _loaded(less) != _loaded(OWN_DEVICES), key
    for given in OTHER_MODES:
        assert _loaded(fabric("h100", **given)) != _loaded(fabric("h100"))


def _loaded(entry: dict[str, Any]) -> Fabric | None:
    """Return the record of a fabric; None if a rule rejects it."""
    try:
        return parse_fabrics(text(entry), "f.yaml").compiled.fabrics["h100"]
    except InvalidConfiguration:
        return None


def test_every_field_reaches_its_record() -> None:
    """A file with every field is compiled field by field, and indexed."""
    written = text(
        OWN_DEVICES,
        defaults={
            "fabric": "h100",
            "memoryLimit": "keep",
            "hcoll": "off",
            "configFiles": "never",
            "onAmbiguous": "deny",
            "podSecurity": "deny",
            "memlock": "nri",
        },
        nvlink={"allowNamespaces": ["lab"]},
        foreignNics={"resources": ["example.com/efa*"], "annotations": ["example.com/nic"]},
    )

    loaded = parse_fabrics(written, "f.yaml").compiled

    assert loaded.fabrics == {
        "h100": Fabric(
            name="h100",
            mode="host-device",
            link_layer="Ethernet",
            rate_gbps=400,
            gpu_resources=frozenset({"nvidia.com/h100"}),
            node_labels={"zone": ("a", "b*"), "nvidia.com/gpu.product": ("NVIDIA-H100-*",)},
            resources=(
                RdmaResource(
                    name="nvidia.com/hostdev",
                    count=None,
                    gpus_per_device=2,
                    maximum=4,
                    aliases=("rdma/hca",),
                    network="lab/rail",
                ),
            ),
            inject_resources=False,
            libraries=frozenset({"nccl"}),
            env=FabricEnv(site_variables=(("NCCL_DEBUG", "WARN"),)),
            socket_interface="net1",
            host_socket_interface="bond0",
            networks=("lab/extra@net9",),
            annotations={"example.com/nics": "all"},
            shared_memory="64Gi",
            pin_selector={"zone": "a"},
        )
    }
    assert loaded.defaults == Defaults(
        fabric="h100",
        memory_limit="keep",
        hcoll="off",
        config_files="never",
        on_ambiguous="deny",
        pod_security="deny",
        memlock="nri",
    )
    assert loaded.nvlink_namespaces == {"lab"}
    assert loaded.foreign_resources == Globs(("example.com/efa*",))
    assert loaded.foreign_annotations == Globs(("example.com/nic",))
    assert loaded.by_rdma_resource["rdma/hca"] == {"h100"}
    assert loaded.by_gpu == {"nvidia.com/h100": {"h100"}}


def test_a_file_without_fields_has_the_documented_defaults() -> None:
    """Fields that are left out get the records' defaults, except the GPU and the interface."""
    assert parse_fabrics(text({"name": "ib"}), "f.yaml").compiled.fabrics["ib"] == Fabric(
        name="ib", gpu_resources=frozenset({"nvidia.com/gpu"}), socket_interface="eth0"
    )
    assert compiled(socketInterface="").socket_interface is None
    assert parse_fabrics(text(), "f.yaml").compiled.defaults == Defaults()
    assert compiled(match={"gpuResources": []}).gpu_resources == frozenset()


def test_claims_are_compiled_and_found_by_their_template() -> None:
    """They are also indexed by the device classes of the fabric's GPUs."""
    claims = [{"template": "nics"}, {"template": "rail", "request": "nic", "per": "pod"}]
    written = text(dra(claims=claims, match={"deviceClasses": ["h100.lab"]}))
    complete = parse_fabrics(written, "fabrics.yaml").compiled
    assert complete.fabrics["ib"].claim_templates == (
        ClaimTemplateReference(template="nics", request=None, per="container"),
        ClaimTemplateReference(template="rail", request="nic", per="pod"),
    )
    ib = frozenset({"ib"})
    assert complete.by_claim_template == {"nics": ib, "rail": ib}
    assert complete.by_class == {"h100.lab": ib}


@pytest.mark.parametrize(
    ("fields", "env"),
    [
        (
            {"hcas": ["mlx5_0", "mlx5_1:2"], "libraries": ["nccl", "ucx", "nvshmem"]},
            FabricEnv(
                library_variables=(
                    ("NCCL_IB_HCA", "=mlx5_0,mlx5_1:2"),
                    ("NVSHMEM_HCA_LIST", "mlx5_0:1,mlx5_1:2"),
                ),
                ucx_devices="mlx5_0:1,mlx5_1:2",
            ),
        ),
        (
            {
                "hcas": [],
                "excludeHcas": ["mlx5_bond_0", "mlx5_3:2:1"],
                "libraries": ["nccl", "ucx", "nvshmem", "mooncake"],
            },
            FabricEnv(
                library_variables=(
                    ("NCCL_IB_HCA", "^=mlx5_bond_0,mlx5_3:2:1"),
                    ("NVSHMEM_HCA_LIST", "^mlx5_bond_0,mlx5_3:2"),
                )
            ),
        ),
        (
            {
                "hcas": ["ibp14s0:1:0:1", "ibp32s0:2"],
                "libraries": ["nccl", "ucx", "nvshmem", "mooncake"],
                "qos": {"gidIndex": 3},
            },
            FabricEnv(
                library_variables=(
                    ("NCCL_IB_HCA", "=ibp14s0:1:0:1,ibp32s0:2"),
                    ("NCCL_IB_GID_INDEX", "3"),
                    ("UCX_IB_GID_INDEX", "3"),
                    ("NVSHMEM_HCA_PREFIX", "ibp"),
                    ("NVSHMEM_HCA_LIST", "ibp14s0:1,ibp32s0:2"),
                    ("NVSHMEM_IB_GID_INDEX", "3"),
                    ("MC_MS_FILTERS", "ibp14s0,ibp32s0"),
                    ("MC_GID_INDEX", "3"),
                ),
                ucx_devices="ibp14s0:1,ibp32s0:2",
            ),
        ),
        (
            {"hcas": ["mlx5_0:1", "mlx5_0:2"], "libraries": ["mooncake"]},
            FabricEnv(library_variables=(("MC_MS_FILTERS", "mlx5_0"),)),
        ),
        (
            {"hcas": [], "hcaPrefixes": ["rocep"], "libraries": ["nvshmem", "mooncake"]},
            FabricEnv(library_variables=(("NVSHMEM_HCA_PREFIX", "rocep"),)),
        ),
        ({"hcas": [], "hcaPrefixes": ["mlx5"], "libraries": ["nvshmem"]}, FabricEnv()),
        (
            {"hcas": [], "hcaPrefixes": ["ibp", "rocep"]},
            FabricEnv(library_variables=(("NCCL_IB_HCA", "ibp,rocep"),)),
        ),
        ({"hcas": []}, FabricEnv()),
        ({"libraries": ["gloo"], "qos": QOS}, FabricEnv()),
        (
            {"libraries": ["ucx"], "qos": QOS},
            FabricEnv(
                library_variables=(
                    ("UCX_IB_TRAFFIC_CLASS", "104"),
                    ("UCX_IB_SL", "3"),
                    ("UCX_IB_GID_INDEX", "3"),
                    ("UCX_IB_PKEY", "0x0005"),
                ),
                ucx_devices="mlx5_0:1",
            ),
        ),
        (
            {
                "mode": "sr-iov",
                "hcas": [],
                "libraries": ["nccl", "ucx", "nvshmem", "mooncake"],
                "qos": QOS,
            },
            FabricEnv(
                library_variables=(
                    ("NCCL_IB_TC", "104"),
                    ("NCCL_IB_SL", "3"),
                    ("NCCL_IB_FIFO_TC", "192"),
                    ("NCCL_IB_GID_INDEX", "3"),
                    ("UCX_IB_TRAFFIC_CLASS", "104"),
                    ("UCX_IB_SL", "3"),
                    ("UCX_IB_GID_INDEX", "3"),
                    ("UCX_IB_PKEY", "0x0005"),
                    ("NVSHMEM_IB_TRAFFIC_CLASS", "104"),
                    ("NVSHMEM_IB_SL", "3"),
                    ("NVSHMEM_IB_GID_INDEX", "3"),
                    ("MC_GID_INDEX", "3"),
                )
            ),
        ),
        (
            {
                "qos": {"serviceLevel": 1},
                "env": {"NCCL_IB_SL": 2, "UCX_NET_DEVICES": "all", "A": "b"},
            },
            FabricEnv(
                library_variables=(
                    ("NCCL_IB_HCA", "=mlx5_0"),
                    ("UCX_IB_SL", "1"),
                ),
                site_variables=(("NCCL_IB_SL", "2"), ("UCX_NET_DEVICES", "all"), ("A", "b")),
            ),
        ),
    ],
)
def test_the_environment_is_rendered_per_library(fields: dict[str, object], env: FabricEnv) -> None:
    """Variables are set for the listed libraries; a name that is in `env` is not set again."""
    assert compiled(**fields).env == env


@pytest.mark.parametrize(
    ("fields", "prefix"),
    [
        ({"hcas": ["mlx5_0", "mlx5_bond_1"]}, None),
        ({"hcas": ["ibp14s0"]}, "ibp"),
        ({"hcas": ["ibp14s0", "ibs2"]}, "ib"),
        ({"hcas": ["rdmaP23800p0s2", "rdmaP1p0s2"]}, "rdmaP"),
        ({"hcas": ["bnxt_re0", "bnxt_re1"]}, "bnxt_re"),
        ({"hcas": ["0a", "0b"]}, "0"),
        ({"hcas": ["mlx5_0", "ibp14s0"]}, None),
        ({"hcas": [], "excludeHcas": ["ibp14s0"]}, None),
        ({"hcas": [], "hcaPrefixes": ["ibp", "ibp14s"]}, "ibp"),
        ({"hcas": [], "hcaPrefixes": ["ibp", "rocep"]}, None),
        ({"hcas": [], "hcaPrefixes": ["mlx5_1"]}, "mlx5_1"),
    ],
)
def test_nvshmem_needs_what_names_begin_with(fields: dict[str, object], prefix: str | None) -> None:
    """NVSHMEM leaves out devices whose names do not begin with the prefix, `mlx5` by default."""
    written = dict(compiled(libraries=["nvshmem"], **fields).env.library_variables)
    assert written.get("NVSHMEM_HCA_PREFIX") == prefix


@pytest.mark.parametrize("written", ["0x8001", "0x0001", 1, 0x8001])
def test_a_partition_key_loses_its_membership_bit(written: object) -> None:
    """UCX_IB_PKEY is the 15-bit key in hexadecimal, whatever form the administrator uses."""
    assert compiled(qos={"pkey": written}, libraries=["ucx"]).env.library_variables == (
        ("UCX_IB_PKEY", "0x0001"),
    )


def test_the_hash_is_that_of_the_meaning() -> None:
    """The order of keys, comments and explicit defaults do not change the hash; a value does."""
    plain = text(fabric(socketInterface="eth0"))
    turned = json.dumps(dict(reversed(json.loads(plain).items())), indent=1) + "\n# a comment\n"
    respelled = text(fabric(socketInterface="eth0", mode="shared-device", sharedMemory=None))
    other = text(fabric(socketInterface="eth1"))
    hashes = [
        parse_fabrics(item, "f").compiled.config_hash for item in (plain, turned, respelled, other)
    ]
    assert hashes[0] == hashes[1] == hashes[2] != hashes[3]
    assert len(hashes[0]) == 12
    assert int(hashes[0], 16) >= 0


def hash_of(**fields: Any) -> str:
    """Return the hash of a file with one fabric."""
    return parse_fabrics(text(fabric(**fields)), "f").compiled.config_hash


#: The release of the decisions for which the hashes below are written down.
RELEASE = "webhook.config.compile.VERSION"


def test_a_written_default_hashes_as_an_absent_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """These hashes never change: with another hash, every pod would belong to other fabrics."""
    monkeypatch.setattr(RELEASE, 1)
    assert hash_of(socketInterface="eth0") == "af7987eb94dd"
    assert hash_of() == hash_of(socketInterface="eth0")
    assert hash_of(socketInterface="") != hash_of()
    assert hash_of(mode="host-network") == "eef57d9b9020"
    for memlock, expected in (("unknown", "af7987eb94dd"), ("unlimited", "7db75087a28b")):
        loaded = parse_fabrics(text(fabric(), defaults={"memlock": memlock}), "f").compiled
        assert (loaded.config_hash, loaded.defaults.memlock) == (expected, memlock)


def test_each_release_of_the_decisions_has_hashes_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So a release does not finish a pod that another release has begun."""
    before = hash_of()
    monkeypatch.setattr(RELEASE, VERSION + 1)
    assert hash_of() != before


def test_a_gpu_may_have_several_devices() -> None:
    """`devicesPerGpu` reaches the record, and the hash only if it is written."""
    counted = [{"name": "x.io/vf", "count": "per-gpu", "devicesPerGpu": 2, "network": "lab/vf"}]
    record = compiled(mode="sr-iov", hcas=[], resources=counted)
    assert record.resources[0] == RdmaResource(
        name="x.io/vf", count=None, devices_per_gpu=2, network="lab/vf"
    )
