"""The fabrics file as a pydantic model: its fields, their types, ranges and choices.

The string below a field says what the field means. The JSON Schema, an editor's hover and
docs/configuration.md show that string. `webhook.config.rules` checks whether the values make
sense, alone and together.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from webhook.config.field_types import (
    Count,
    GlobList,
    Hcoll,
    PartitionKey,
    Scalar,
    Text,
    shared_default,
)
from webhook.model.fabric import (
    ClaimScope,
    LinkLayer,
    Memlock,
    MemoryPolicy,
    Mode,
    Nodes,
    Transport,
)
from webhook.model.libraries import Library

API_VERSION = "rdma.lab/v1alpha1"
KIND = "FabricConfiguration"


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
    """Settings for every pod that opted in."""

    fabric: Text | None = None
    """Name of the fabric for pods without evidence of their own fabric. Without it, the fabric of
    such pods is unknown, and they get no RDMA."""

    memory_limit: MemoryPolicy = "drop"
    """Policy for `limits.memory` of the containers that need RDMA: `drop` removes it, except from
    containers with MIG slices or a shared GPU, since other pods share their nodes; `keep` leaves
    it; `keep-guaranteed` leaves it where the pod's QoS class is Guaranteed. A pod's
    `rdma.lab/memory-limit` takes precedence."""

    hcoll: Hcoll = "auto"
    """How Open MPI's hcoll is switched off: `env` sets `OMPI_MCA_coll_hcoll_enable=0`; `auto` also
    adds `-mca coll_hcoll_enable 0` to a launcher that is certainly Open MPI's; `off` leaves hcoll
    unchanged."""

    config_files: Literal["auto", "always", "never"] = "auto"
    """Whether NCCL's settings are also written to `/etc/nccl.conf`, which processes started by ssh
    read: `auto` does so where a container needs it."""

    on_ambiguous: Literal["skip", "deny"] = "skip"
    """Policy for a pod that matches several fabrics: `skip` makes only the changes that every
    fabric needs, with a warning; `deny` rejects the pod."""

    pod_security: Literal["skip", "deny"] = "skip"
    """Policy for a namespace that enforces Pod Security `baseline` or `restricted`, where IPC_LOCK
    would get the pod rejected: `skip` does not add it, `deny` rejects the pod with the reason."""

    memlock: Memlock = "unknown"
    """How much memory a process may lock where IPC_LOCK has no effect (a user other than root,
    `hostUsers: false`, Pod Security): `limited` to containerd's 8 MiB, `unlimited` where containerd
    has `LimitMEMLOCK=infinity`, `nri` where the nodes run the NRI ulimit-adjuster, whose
    annotations the webhook adds to such pods. With `unlimited` and `nri`, such pods get no warning,
    and `podSecurity: deny` rejects none."""

    nodes: Nodes = "elastic"
    """Whether nodes come and go: `elastic` if they do, `static` if they do not. A pod that needs
    more than any node currently offers gets the verdict `unsure` or `no`, respectively."""

    non_root_images: list[Text] = shared_default([])
    """Globs of images that do not run as root, e.g. `lab/train*`. A container without `runAsUser`
    or `runAsNonRoot` is assumed to run as root unless its image matches a glob; then `memlock`
    decides. Registry, tag and digest may be omitted. The webhook knows these without an entry: the
    images of Ray, Jupyter, Kubeflow's notebooks, Dynamo and llm-d, and Bitnami's PyTorch and
    DeepSpeed."""


class NvlinkEntry(Entry):
    """NVLink between pods on the same node, requested with `rdma.lab/nvlink: share`."""

    allow_namespaces: list[Text] = shared_default([])
    """Namespaces whose privileged pods may share NVLink; pods elsewhere may not."""


class ForeignNicsEntry(Entry):
    """Additions to the built-in list of NICs that no fabric uses."""

    resources: list[Text] = shared_default([])
    """Globs of the names of extended resources for such a NIC, e.g. `example.com/efa*`."""

    annotations: list[Text] = shared_default([])
    """Globs of the keys of pod annotations that attach such a NIC, e.g. `example.com/networks`."""


class MatchEntry(Entry):
    """The evidence that a pod or a node belongs to the fabric."""

    gpu_resources: list[Text] = shared_default(["nvidia.com/gpu"])
    """GPU resources that the fabric's nodes offer. With an explicit `[]`, GPUs are no evidence. A
    node without GPUs belongs to the fabric if it offers a resource that only this fabric has."""

    device_classes: list[Text] = shared_default([])
    """DeviceClasses for the fabric's GPUs, or for its NICs, in Dynamic Resource Allocation, e.g.
    `h100.gpu.example.com`. A class is treated as one for NICs if its name contains `rdma`, `roce`,
    `sriov`, `infiniband`, `connectx`, `mlnx`, `mlx5`, `dranet`, or the word `nic`, `hca`, `efa`,
    `ib`, `vf` or `rail`, but neither `gpu` nor the word `mig`. A pod that claims a NIC of such a
    class gets no other NIC."""

    gpu_products: list[Text] = shared_default([])
    """Globs of GPU products, e.g. `Tesla-V100-*`: short for `nodeLabels` with the key
    `nvidia.com/gpu.product`. `-SHARED` and `-MIG-...` are removed from the node's value before the
    comparison."""

    node_labels: dict[str, GlobList] = shared_default({})
    """Lists of globs by the key of a node label. For every key, the node's value must match one of
    the globs. Case matters."""


class ResourceEntry(Entry):
    """An extended resource that a pod on the fabric requests."""

    name: Text
    """Name of the extended resource, as the device plugin offers it, e.g. `rdma/rdma_v100`."""

    count: Count = 1
    """Devices per container: an integer, or `per-gpu` for the number that its GPUs need. With an
    integer, a container with a single GPU gets as many as one with all GPUs of the node: with a
    resource for each rail, or a shared device plugin's unit that has all of them, it takes all
    rails."""

    gpus_per_device: Annotated[int, Field(ge=1, le=64)] = 1
    """With `per-gpu`: the number of GPUs that share a device; the result is rounded up."""

    devices_per_gpu: Annotated[int, Field(ge=1, le=64)] = 1
    """With `per-gpu`, instead of `gpusPerDevice`: the number of devices for each GPU, e.g. 2
    with two NICs per GPU."""

    maximum: Annotated[int | None, Field(ge=1, le=1000, alias="max")] = None
    """With `per-gpu`: the maximum number of devices per container."""

    aliases: list[Text] = shared_default([])
    """Other names that users or tools use for this resource, e.g. `rdma/hca`. In a pod, `name`
    replaces them."""

    network: Text | None = None
    """Multus network `[namespace/]name[@interface]`, appended to the pod's networks once per
    device."""


class ClaimEntry(Entry):
    """A ResourceClaimTemplate for the NICs of a pod on the fabric."""

    template: Text
    """Name of a ResourceClaimTemplate, which must exist in each namespace with pods on the fabric;
    without the template, those pods stay Pending. A template requests either only NICs, or GPUs
    with their NICs. In the second case, containers must not request other GPUs."""

    request: Text | None = None
    """Name of the template's request whose devices a container gets. Without it, a container gets
    the devices of all requests."""

    per: ClaimScope = "container"
    """Whether each `container` has its own claim, or the containers of a `pod` share one."""


class QosEntry(Entry):
    """Quality of service, as configured on the switches. An unset field sets no variable."""

    traffic_class: Annotated[int | None, Field(ge=0, le=255)] = None
    """IP traffic class of RoCE packets (DSCP times 4): NCCL_IB_TC, UCX_IB_TRAFFIC_CLASS,
    NVSHMEM_IB_TRAFFIC_CLASS."""

    service_level: Annotated[int | None, Field(ge=0, le=15)] = None
    """InfiniBand service level, or RoCE priority: NCCL_IB_SL, UCX_IB_SL, NVSHMEM_IB_SL."""

    fifo_traffic_class: Annotated[int | None, Field(ge=0, le=255)] = None
    """Traffic class of NCCL's control messages (NCCL 2.22.3 or newer): NCCL_IB_FIFO_TC."""

    gid_index: Annotated[int | None, Field(ge=0, le=255)] = None
    """GID table index: NCCL_IB_GID_INDEX, UCX_IB_GID_INDEX, NVSHMEM_IB_GID_INDEX, MC_GID_INDEX.
    Only for NCCL before 2.26: newer versions find the index themselves (2.21 to 2.25 also do, but
    fail if a pod's table has gaps)."""

    pkey: PartitionKey | None = None
    """InfiniBand partition key, with or without the membership bit, e.g. `0x8001`: UCX_IB_PKEY.
    NCCL_IB_PKEY is not written: it is an index into each port's table, not a key."""


class FabricEntry(Entry):
    """One fabric: how its nodes are recognized, and what a pod needs to use it."""

    name: Text
    """Name, as in the annotation `rdma.lab/fabric`: lowercase letters, digits and `-`."""

    match: MatchEntry = shared_default(MatchEntry())
    """Which nodes, and so which pods, belong to the fabric."""

    mode: Mode = "shared-device"
    """How a pod gets the devices: `shared-device` (the RDMA shared device plugin), `host-network`
    (pods that set hostNetwork), `sr-iov` (virtual functions), `host-device` (whole devices), `dra`
    (Dynamic Resource Allocation, with `claims`)."""

    resources: list[ResourceEntry] = shared_default([])
    """Extended resources that a pod requests: normally one, with SR-IOV one per rail. With an
    explicit `[]`, only privileged pods see a device."""

    claims: list[ClaimEntry] = shared_default([])
    """With mode `dra`: the ResourceClaimTemplates for a pod's NICs, normally one."""

    inject_resources: bool = True
    """Whether the webhook adds `resources` and `claims` to pods. With `false`, another webhook or
    the user does; the two fields then only show which pods belong to the fabric."""

    link_layer: LinkLayer = "InfiniBand"
    """Link layer of the fabric's devices: `InfiniBand`, or `Ethernet` for RoCE."""

    transport: Transport = "verbs"
    """How NCCL reaches the devices: `verbs` with its own transport, `libfabric` with the plugin
    aws-ofi-nccl (AWS EFA), `gib` with Google's plugin gIB. With a plugin, the webhook sets no
    variable that names devices; `env` may choose libfabric's provider (`FI_PROVIDER: efa`)."""

    rate_gbps: Annotated[int | None, Field(ge=1, le=10_000)] = None
    """Rate of a device in Gb/s, which `rdma-webhook verify` expects. It does not affect pods."""

    hcas: list[Text] = shared_default([])
    """The fabric's RDMA devices by exact name, `name[:port[:rail[:plane]]]`, the same on all its
    nodes. Rail and plane are for NCCL 2.30 or newer; UCX and NVSHMEM get name and port."""

    exclude_hcas: list[Text] = shared_default([])
    """Instead of `hcas`: all devices except these, `name[:port]`. For NCCL and NVSHMEM; UCX, which
    cannot exclude devices before version 1.21, chooses for itself."""

    hca_prefixes: list[Text] = shared_default([])
    """Instead of `hcas`, where names differ between nodes: prefixes of device names (`ibp`). For
    NCCL, and a single prefix for NVSHMEM; UCX chooses for itself."""

    socket_interface: Text = "eth0"
    """Interface in the pod network that reaches the other pods: NCCL_SOCKET_IFNAME,
    GLOO_SOCKET_IFNAME, and the TCP part of UCX_NET_DEVICES. With an explicit `""`, the webhook
    sets none of these, and the libraries choose for themselves."""

    host_socket_interface: Text | None = None
    """Instead of `socketInterface` for pods with hostNetwork: an interface of the node. Without it,
    such pods get none of the variables that `socketInterface` sets."""

    networks: list[Text] = shared_default([])
    """Multus networks `[namespace/]name[@interface]` to append to the networks of every pod."""

    annotations: dict[str, Text] = shared_default({})
    """Pod annotations that attach the fabric's NICs, such as GKE's `networking.gke.io/interfaces`.
    The webhook adds those that a pod lacks."""

    libraries: list[Library] = shared_default(["nccl", "ucx", "gloo"])
    """Libraries whose variables the webhook sets. With `openmpi`, Open MPI's own TCP connections
    use only `socketInterface`."""

    qos: QosEntry = shared_default(QosEntry())
    """Quality of service, as configured on the switches."""

    shared_memory: Text | None = None
    """Size of the memory-backed volume at /dev/shm, e.g. `64Gi`; without it, none is added."""

    pin: Literal["never", "always"] = "never"
    """`always` adds `nodeSelector` to a pod, unless the pod already selects on one of its keys."""

    node_selector: dict[str, Scalar] = shared_default({})
    """Node labels that `pin: always` adds to the pod's nodeSelector."""

    env: dict[str, Scalar] = shared_default({})
    """Other environment variables for every container that needs RDMA. They replace variables from
    other fields. In a cluster, values are strings: quote numbers, and words such as `true` and
    `off`."""


class FabricConfigurationSpec(Entry):
    """The fabrics of a cluster, and how pods get access to them."""

    defaults: DefaultsEntry = shared_default(DefaultsEntry())
    """Settings for all pods that opted in, whatever their fabric."""

    nvlink: NvlinkEntry = shared_default(NvlinkEntry())
    """NVLink between pods on the same node."""

    foreign_nics: ForeignNicsEntry = shared_default(ForeignNicsEntry())
    """Additions to the built-in list of NICs that no fabric uses. A pod with such a NIC gets no
    device of a fabric."""

    fabrics: list[FabricEntry]
    """The fabrics; `[]` if there are none yet."""


class FabricConfiguration(Entry):
    """The whole object, as the JSON Schema describes it; `webhook.config.load` reads the spec."""

    api_version: Literal["rdma.lab/v1alpha1"]
    """Always `rdma.lab/v1alpha1`."""

    kind: Literal["FabricConfiguration"]
    """Always `FabricConfiguration`."""

    metadata: dict[str, object] = shared_default({})
    """As in every Kubernetes object. The name is `default`; a file may omit it."""

    spec: FabricConfigurationSpec
    """The fabrics of the cluster, and how pods get access to them."""

    status: dict[str, object] = shared_default({})
    """Written by the cluster, and ignored in a file."""
