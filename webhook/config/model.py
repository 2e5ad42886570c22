"""The fabrics file as a pydantic model: its fields, their types, ranges and choices.

The string below a field says what the field means. The JSON Schema, an editor's hover and
docs/configuration.md show that string. `webhook.config.rules` checks whether the values make
sense, alone and together.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeGuard, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import to_jsonable_python

from webhook.model.fabric import LinkLayer, Memlock, MemoryPolicy, Mode, Nodes, SharedBy
from webhook.model.libraries import Library

API_VERSION = "rdma.lab/v1alpha1"
KIND = "FabricConfiguration"
_HEX = re.compile(r"0[xX][0-9A-Fa-f]{1,4}")
#: The upper bit of a partition key marks a full member; UCX_IB_PKEY omits it (0 to 0x7fff).
_PARTITION, _FULL_MEMBER = 0x7FFF, 0x8000
#: The maximum number of devices per container; no node has that many.
_MOST_DEVICES = 1000


def _as_written(value: object) -> object:
    """Turn a number or a boolean back into text: `NCCL_CROSS_NIC: 1` means "1"."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else value


def _is_integer(value: object) -> TypeGuard[int]:
    return type(value) is int  # `isinstance` takes a bool for an int


def _count(value: object) -> object:
    if value == "per-gpu" or (_is_integer(value) and 1 <= value <= _MOST_DEVICES):
        return value
    raise ValueError(f"{value!r:.80} must be a whole number from 1 to {_MOST_DEVICES}, or per-gpu")


def _partition_key(value: object) -> int:
    number = int(value, 16) if isinstance(value, str) and _HEX.fullmatch(value) else value
    if _is_integer(number) and 0 < number <= _FULL_MEMBER | _PARTITION and number & _PARTITION:
        return number & _PARTITION
    raise ValueError(
        f"{value!r:.80} is not a partition key: write 0x1 to 0x7fff, or 0x8001 to 0xffff with "
        "the membership bit"
    )


def _false_is_off(value: object) -> object:
    """Read false as `off`: kubectl reads YAML 1.1, where an unquoted off is false."""
    return "off" if value is False else value


def _as_list(value: object) -> object:
    return [value] if isinstance(value, (str, int)) else value


_Value = TypeVar("_Value")


def _always(value: _Value) -> _Value:
    """Return a default that all entries share; pydantic would make a deep copy for each of them."""
    written = to_jsonable_python(value)
    shared: _Value = Field(default_factory=lambda: value, json_schema_extra={"default": written})
    return shared


Text = Annotated[str, BeforeValidator(_as_written)]
Scalar = Annotated[Text, WithJsonSchema({"type": ["string", "integer", "boolean"]})]
Globs = Annotated[
    list[Text],
    BeforeValidator(_as_list),
    WithJsonSchema({"type": ["string", "array"], "items": {"type": "string"}, "minItems": 1}),
]
Count = Annotated[
    int | Literal["per-gpu"],
    PlainValidator(_count),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "per-gpu"}]}),
]
PartitionKey = Annotated[
    int,
    PlainValidator(_partition_key),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": _FULL_MEMBER | _PARTITION},
                {"type": "string", "pattern": f"^{_HEX.pattern}$"},
            ]
        }
    ),
]


class Entry(BaseModel):
    """The base of all models: unknown fields are errors, and null is the same as absent."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
    )

    @model_validator(mode="before")  # type: ignore[pydantic-alias] # only validation makes these models
    @classmethod
    def _null_is_absent(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        fields = {field.alias for field in cls.model_fields.values()}
        return {key: value for key, value in data.items() if value is not None or key not in fields}


class DefaultsEntry(Entry):
    """What applies to every pod that opted in."""

    fabric: Text | None = None
    """Name of the fabric for pods that give no evidence of theirs. Without it, such pods are
    ambiguous."""

    memory_limit: MemoryPolicy = "drop"
    """What happens to `limits.memory` of the targets: `drop` removes it, except from containers
    with MIG slices or a shared GPU, whose nodes are shared; `keep` leaves it, `keep-guaranteed`
    leaves it where the pod's QoS class is Guaranteed. A pod's `rdma.lab/memory-limit` takes
    precedence."""

    hcoll: Annotated[Literal["auto", "env", "off"], BeforeValidator(_false_is_off)] = "auto"
    """How Open MPI's hcoll is switched off: `env` sets `OMPI_MCA_coll_hcoll_enable=0`; `auto` also
    adds `-mca coll_hcoll_enable 0` after a launcher that is provably Open MPI's; `off` leaves hcoll
    as it is."""

    config_files: Literal["auto", "always", "never"] = "auto"
    """Whether NCCL's settings are also written to `/etc/nccl.conf`, which processes that ssh starts
    read too: `auto` does so where a container needs it."""

    on_ambiguous: Literal["skip", "deny"] = "skip"
    """What happens to a pod that fits several fabrics: `skip` makes only the changes that every
    fabric needs, and says so; `deny` rejects the pod."""

    pod_security: Literal["skip", "deny"] = "skip"
    """What happens in a namespace that enforces Pod Security `baseline` or `restricted`, where
    IPC_LOCK would get the pod rejected: `skip` leaves it out, `deny` rejects the pod with a message
    that says so."""

    memlock: Memlock = "unknown"
    """How much memory a process may lock where IPC_LOCK has no effect (a user other than root,
    `hostUsers: false`, Pod Security): `limited` to containerd's 8 MiB, `unlimited` where containerd
    has `LimitMEMLOCK=infinity`, `nri` where the nodes run the NRI ulimit-adjuster, whose
    annotations are then added to such pods. With `unlimited` and `nri`, such pods get no warning,
    and `podSecurity: deny` rejects none."""

    nodes: Nodes = "elastic"
    """Whether nodes come and go: `elastic` if they do, `static` if they do not. The verdict on pods
    that need what no node offers now is then `unsure` or `no`."""

    non_root_images: list[Text] = _always([])
    """Globs of images that do not run as root, e.g. `rayproject/ray*`. A container without
    `runAsUser` or `runAsNonRoot` counts as root unless its image matches one of them; then
    `memlock` decides. Registry, tag and digest may be left out."""


class NvlinkEntry(Entry):
    """NVLink between pods on one node, which they request by `rdma.lab/nvlink: share`."""

    allow_namespaces: list[Text] = _always([])
    """Namespaces whose privileged pods may share NVLink; pods elsewhere may not."""


class ForeignNicsEntry(Entry):
    """NICs that no fabric uses, besides those of the built-in list."""

    resources: list[Text] = _always([])
    """Globs of extended resource names that stand for such a NIC, e.g. `example.com/efa*`."""

    annotations: list[Text] = _always([])
    """Globs of the keys of pod annotations that attach such a NIC, e.g. `example.com/networks`."""


class MatchEntry(Entry):
    """What shows that a pod or a node belongs to the fabric."""

    gpu_resources: list[Text] = _always(["nvidia.com/gpu"])
    """GPU resources that the fabric's nodes offer. An explicit `[]`: GPUs are no evidence. A node
    without GPUs belongs to the fabric if it offers a resource that only this fabric has."""

    device_classes: list[Text] = _always([])
    """DeviceClasses by which pods claim the fabric's GPUs through Dynamic Resource Allocation, e.g.
    `h100.gpu.example.com`. One whose name says that it is a NIC (`rdma`, `roce`, `nic`, `sriov`)
    stands for the fabric's NICs: a pod that claims one gets no other."""

    gpu_products: list[Text] = _always([])
    """Globs of GPU products, e.g. `Tesla-V100-*`: short for `nodeLabels` with the key
    `nvidia.com/gpu.product`. `-SHARED` and `-MIG-...` are cut off the node's value before it is
    compared."""

    node_labels: dict[str, Globs] = _always({})
    """Lists of globs by the key of a node label. For every key, the node's value must match one of
    the globs. Case matters."""


class ResourceEntry(Entry):
    """One extended resource that a pod on the fabric requests."""

    name: Text
    """Name of the extended resource, as the device plugin offers it, e.g. `rdma/rdma_v100`."""

    count: Count = 1
    """Devices per container: an integer, or `per-gpu` for as many as its GPUs need."""

    gpus_per_device: Annotated[int, Field(ge=1, le=64)] = 1
    """With `per-gpu`: how many GPUs share one device. The number of devices is rounded up."""

    devices_per_gpu: Annotated[int, Field(ge=1, le=64)] = 1
    """With `per-gpu`, instead of `gpusPerDevice`: how many devices each GPU has, e.g. 2 where there
    are two NICs beside each GPU."""

    maximum: Annotated[int | None, Field(ge=1, le=1000, alias="max")] = None
    """With `per-gpu`: the most devices per container."""

    aliases: list[Text] = _always([])
    """Other names that users or tools write for this resource, e.g. `rdma/hca`. In a pod, `name`
    replaces them."""

    network: Text | None = None
    """Multus network `[namespace/]name[@interface]`, appended to the pod's networks once per
    device."""


class ClaimEntry(Entry):
    """A ResourceClaimTemplate by which a pod on the fabric gets its NICs."""

    template: Text
    """Name of a ResourceClaimTemplate that each namespace must have whose pods use the fabric;
    without it, they stay Pending. It requests NICs alone, or GPUs with their NICs: then containers
    must not request other GPUs."""

    request: Text | None = None
    """Name of the request in the template whose devices a container gets. Without it, a container
    gets the devices of all requests."""

    per: SharedBy = "container"
    """Whether each `container` has its own claim, or the containers of a `pod` share one."""


class QosEntry(Entry):
    """Quality of service, as the switches are set up. An unset field writes no variable."""

    traffic_class: Annotated[int | None, Field(ge=0, le=255)] = None
    """IP traffic class of RoCE packets (DSCP times 4): NCCL_IB_TC, UCX_IB_TRAFFIC_CLASS,
    NVSHMEM_IB_TRAFFIC_CLASS."""

    service_level: Annotated[int | None, Field(ge=0, le=15)] = None
    """InfiniBand service level, or RoCE priority: NCCL_IB_SL, UCX_IB_SL, NVSHMEM_IB_SL."""

    fifo_traffic_class: Annotated[int | None, Field(ge=0, le=255)] = None
    """Traffic class of NCCL's control messages (NCCL 2.22.3 or newer): NCCL_IB_FIFO_TC."""

    gid_index: Annotated[int | None, Field(ge=0, le=255)] = None
    """GID table index: NCCL_IB_GID_INDEX, UCX_IB_GID_INDEX, NVSHMEM_IB_GID_INDEX, MC_GID_INDEX.
    Only for NCCL older than 2.26: newer versions find the index (2.21 to 2.25 do too, but fail
    where a pod's table has gaps)."""

    pkey: PartitionKey | None = None
    """InfiniBand partition key, with or without the membership bit, e.g. `0x8001`: UCX_IB_PKEY.
    NCCL_IB_PKEY is not written: it is an index into each port's table, not a key."""


class FabricEntry(Entry):
    """One fabric: how its nodes are recognized, and what a pod needs to use it."""

    name: Text
    """Name, as in the annotation `rdma.lab/fabric`: lowercase letters, digits and `-`."""

    match: MatchEntry = _always(MatchEntry())
    """Which nodes, and so which pods, belong to the fabric."""

    mode: Mode = "shared-device"
    """How a pod gets the devices: `shared-device` (the RDMA shared device plugin),
    `host-network` (pods that have hostNetwork themselves), `sr-iov` (a virtual function each),
    `host-device` (a whole device each), `dra` (Dynamic Resource Allocation: by `claims`)."""

    resources: list[ResourceEntry] = _always([])
    """Extended resources that a pod requests, normally one; one per rail with SR-IOV."""

    claims: list[ClaimEntry] = _always([])
    """With mode `dra`: the ResourceClaimTemplates by which a pod gets its NICs, normally one."""

    inject_resources: bool = True
    """Whether to request `resources`, or to claim devices by `claims`, for pods. `false`: another
    webhook or the user does, and here they only show which pods belong to the fabric."""

    link_layer: LinkLayer = "InfiniBand"
    """Link layer of the fabric's devices: `InfiniBand`, or `Ethernet` for RoCE."""

    rate_gbps: Annotated[int | None, Field(ge=1, le=10_000)] = None
    """Rate of one device in Gb/s, which `rdma-webhook verify` expects. It is not written into
    pods."""

    hcas: list[Text] = _always([])
    """The fabric's RDMA devices by exact name, `name[:port[:rail[:plane]]]`, the same on all its
    nodes. Rail and plane are for NCCL 2.30 or newer; UCX and NVSHMEM get name and port."""

    exclude_hcas: list[Text] = _always([])
    """Instead of `hcas`: all devices except these, `name[:port]`. For NCCL and NVSHMEM; UCX, which
    cannot exclude devices before version 1.21, chooses by itself."""

    hca_prefixes: list[Text] = _always([])
    """Instead of `hcas`, where names differ between nodes: prefixes of device names (`ibp`). For
    NCCL, and a single one for NVSHMEM; UCX chooses by itself."""

    socket_interface: Text = "eth0"
    """Interface in the pod network that reaches the other pods: NCCL_SOCKET_IFNAME,
    GLOO_SOCKET_IFNAME, and the TCP part of UCX_NET_DEVICES. An explicit `""`: none of these is
    written, and the libraries choose by themselves."""

    host_socket_interface: Text | None = None
    """Instead of `socketInterface` for pods with hostNetwork: an interface of the node. Without it,
    such pods get none of the variables that `socketInterface` sets."""

    networks: list[Text] = _always([])
    """Multus networks `[namespace/]name[@interface]` to append to the networks of every pod."""

    libraries: list[Library] = _always(["nccl", "ucx", "gloo"])
    """Libraries whose variables are written. With `openmpi`, Open MPI's own TCP connections use
    `socketInterface` alone."""

    qos: QosEntry = _always(QosEntry())
    """Quality of service, as the switches are set up."""

    shared_memory: Text | None = None
    """Size of the memory volume to add at /dev/shm, e.g. `64Gi`; without it, none is added."""

    pin: Literal["never", "always"] = "never"
    """`always` adds `nodeSelector` to pods, except for keys that a pod already selects on."""

    node_selector: dict[str, Scalar] = _always({})
    """Node labels that `pin: always` adds to the pod's nodeSelector."""

    env: dict[str, Scalar] = _always({})
    """Other environment variables for every target. A variable that is set here replaces the one
    that another field makes. In a cluster, values are strings: quote numbers, and words such as
    `true` and `off`."""


class FabricConfigurationSpec(Entry):
    """The fabrics of a cluster, and how pods get access to them."""

    defaults: DefaultsEntry = _always(DefaultsEntry())
    """What applies to all pods that opted in, whatever their fabric."""

    nvlink: NvlinkEntry = _always(NvlinkEntry())
    """NVLink between pods on one node."""

    foreign_nics: ForeignNicsEntry = _always(ForeignNicsEntry())
    """NICs that no fabric uses, besides those of the built-in list. A pod that has one gets no
    device of a fabric."""

    fabrics: list[FabricEntry]
    """The fabrics; `[]` if there are none yet."""


class FabricConfiguration(Entry):
    """The whole object, as the JSON Schema describes it; `webhook.config.load` reads the spec."""

    api_version: Literal["rdma.lab/v1alpha1"]
    """Always `rdma.lab/v1alpha1`."""

    kind: Literal["FabricConfiguration"]
    """Always `FabricConfiguration`."""

    metadata: dict[str, object] = _always({})
    """As of every Kubernetes object. The name is `default`; a file may leave it out."""

    spec: FabricConfigurationSpec
    """The fabrics of the cluster, and how pods get access to them."""

    status: dict[str, object] = _always({})
    """Written by the cluster, and ignored in a file."""
