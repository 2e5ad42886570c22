"""Fabrics as a decision uses them: the configuration file, compiled to indexed records.

`webhook.config` validates the file and builds these records once per load, with the indexes that
decisions read. Only what depends on a container's own variables is computed for each pod.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from typing import Literal, NamedTuple

from webhook.model.libraries import POD_SOURCES, VARIABLES, ValueSource
from webhook.model.names import MAX_KEY_LENGTH
from webhook.model.transport_variables import IB_HCA

# The globs of a configuration, compiled once, to match the names in a pod.
#
# The names come from users, so no result is cached for them. Instead, a name is first searched
# for a literal part of each glob, which costs next to nothing; only the few names that contain it
# are matched against the glob, and no string that is too long for a name.


@dataclass(frozen=True, slots=True)
class Globs:
    """Alternative globs, matched against the whole name; case matters, as in Kubernetes."""

    #: The globs as the configuration has them.
    texts: tuple[str, ...] = ()
    #: Each glob, and the literal part that is searched for first.
    _pairs: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        pairs = tuple((_literal(glob), glob) for glob in self.texts)
        object.__setattr__(self, "_pairs", pairs)

    def match(self, name: str) -> bool:
        """Return whether a name matches at least one of the globs."""
        for literal, glob in self._pairs:
            if literal in name and len(name) <= MAX_KEY_LENGTH and _pattern(glob).match(name):
                return True
        return False


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> re.Pattern[str]:
    """Compile a glob of the configuration; needed only if a name contains its literal part."""
    return re.compile(translate(glob))


def _literal(glob: str) -> str:
    """Return the longest literal part before any `[`, which every match of the glob contains."""
    return max(re.split(r"[*?]", glob.partition("[")[0]), key=len)


Mode = Literal["shared-device", "host-network", "sr-iov", "host-device", "dra"]
#: The modes that move a device into the pod's own network namespace.
MODES_WITH_OWN_DEVICE: tuple[Mode, ...] = ("sr-iov", "host-device", "dra")
#: One claim for a whole pod, shared by its containers, or one for each container.
ClaimScope = Literal["pod", "container"]
LinkLayer = Literal["InfiniBand", "Ethernet"]
MemoryPolicy = Literal["drop", "keep-guaranteed", "keep"]
#: How much memory a process without an effective IPC_LOCK may lock on the nodes.
Memlock = Literal["unknown", "limited", "unlimited", "nri"]
Nodes = Literal["elastic", "static"]
#: How NCCL reaches the devices: with its own verbs, or with a plugin, aws-ofi-nccl or gIB.
Transport = Literal["verbs", "libfabric", "gib"]
EnvPairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RdmaResource:
    """An extended resource that a pod on the fabric requests."""

    name: str
    #: Devices per target; None means as many as its GPUs need (`per-gpu`).
    count: int | None = 1
    gpus_per_device: int = 1
    devices_per_gpu: int = 1
    #: Upper bound of a per-gpu count.
    maximum: int | None = None
    aliases: tuple[str, ...] = ()
    #: The Multus network to append once per device: `ns/name[@if]`.
    network: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTemplateReference:
    """A ResourceClaimTemplate that provides devices to a pod on the fabric (DRA)."""

    template: str
    #: The request whose devices a container gets; None for the devices of all requests.
    request: str | None = None
    per: ClaimScope = "container"


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricEnv:
    """The variables that the fabric sets, rendered once.

    Variables that name interfaces are left out: they depend on the pod.
    """

    #: The variables of the fabric's libraries whose values the configuration alone decides.
    library_variables: EnvPairs = ()
    #: `mlx5_0:1,mlx5_1:1`, the RDMA part of UCX_NET_DEVICES; "" if the names are not exact.
    ucx_devices: str = ""
    #: The site's own `env`.
    site_variables: EnvPairs = ()


class DeviceLists(NamedTuple):
    """A fabric's devices, twice, as values of NCCL_IB_HCA; "" if the fabric names no devices."""

    #: As NCCL gets them.
    as_configured: str = ""
    #: As UCX gets them, in NCCL's notation: each with a port, which is 1 if the configuration names
    #: none. "" also if UCX gets no devices.
    with_ports: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """One fabric, compiled."""

    name: str
    mode: Mode = "shared-device"
    link_layer: LinkLayer = "InfiniBand"
    transport: Transport = "verbs"
    #: The rate of one device, for comparison with benchmarks.
    rate_gbps: int | None = None
    #: The devices by exact name.
    hcas: tuple[str, ...] = ()
    gpu_resources: frozenset[str] = frozenset()
    #: DeviceClasses (DRA) of the fabric's GPUs, or of its NICs where the name shows a NIC.
    device_classes: frozenset[str] = frozenset()
    #: Node label key → globs; the node's value must match one of them (includes gpuProducts).
    node_labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    resources: tuple[RdmaResource, ...] = ()
    #: Only in mode `dra`.
    claim_templates: tuple[ClaimTemplateReference, ...] = ()
    #: Whether the webhook requests the resources or claims the devices; else another injector does.
    inject_resources: bool = True
    libraries: frozenset[str] = frozenset({"nccl", "ucx", "gloo"})
    env: FabricEnv = field(default_factory=FabricEnv)
    #: The interface's name in the pod network and in the host's; None means not to set it.
    socket_interface: str | None = None
    host_socket_interface: str | None = None
    #: Multus networks to append, whatever the number of devices.
    networks: tuple[str, ...] = ()
    #: Pod annotations that attach the fabric's NICs: key → value.
    annotations: Mapping[str, str] = field(default_factory=dict)
    shared_memory: str | None = None
    #: The nodeSelector to add; None for `pin: never`.
    pin_selector: Mapping[str, str] | None = None
    #: The libraries' variables in order: name, kind of value, value ("" if it depends on the pod).
    variables: tuple[tuple[str, ValueSource, str], ...] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        values = dict(self.env.library_variables)
        variables = tuple(
            (row.name, row.source, values.get(row.name, ""))
            for row in VARIABLES
            if row.library in self.libraries and (row.name in values or row.source in POD_SOURCES)
        )
        object.__setattr__(self, "variables", variables)

    @property
    def device_lists(self) -> DeviceLists:
        """Its devices as values of NCCL_IB_HCA."""
        written = dict(self.env.library_variables).get(IB_HCA, "")
        with_ports = f"={self.env.ucx_devices}" if written and self.env.ucx_devices else ""
        return DeviceLists(written, with_ports)

    @property
    def nccl_file(self) -> str:
        """The file with NCCL's settings: RCCL, for AMD's GPUs, has its own (src/misc/param.cc)."""
        of_amd = any(name.startswith("amd.com/") for name in self.gpu_resources)
        return "/etc/rccl.conf" if of_amd else "/etc/nccl.conf"

    def __hash__(self) -> int:
        """Hash by identity: values cached for a fabric are valid until the next load."""
        return id(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The file's `defaults`."""

    fabric: str | None = None
    memory_limit: MemoryPolicy = "drop"
    hcoll: Literal["auto", "env", "off"] = "auto"
    config_files: Literal["auto", "always", "never"] = "auto"
    on_ambiguous: Literal["skip", "deny"] = "skip"
    pod_security: Literal["skip", "deny"] = "skip"
    #: `unlimited` if the nodes' containerd has LimitMEMLOCK=infinity; `nri` if they run the NRI
    #: ulimit-adjuster, which raises it for containers that are annotated.
    memlock: Memlock = "unknown"
    #: `static` if the set of nodes is fixed, so that a missing resource stays missing.
    nodes: Nodes = "elastic"
    #: Images whose processes do not run as root, unless the pod overrides it.
    non_root_images: Globs = field(default_factory=Globs)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledConfiguration:
    """A configuration: immutable, and replaced as a whole."""

    fabrics: Mapping[str, Fabric] = field(default_factory=dict)
    defaults: Defaults = field(default_factory=Defaults)
    nvlink_namespaces: frozenset[str] = frozenset()
    foreign_resources: Globs = field(default_factory=Globs)
    foreign_annotations: Globs = field(default_factory=Globs)
    #: Twelve hex digits that change with the configuration's meaning.
    config_hash: str = ""
    #: GPU resource → names of the fabrics that list it.
    by_gpu: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: RDMA resource or alias → names of the fabrics that have it.
    by_rdma_resource: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Fabric → its RDMA resources that no other fabric has, not even as an alias.
    unique_rdma_resources: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: DeviceClass → names of the fabrics that list it.
    by_class: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: ResourceClaimTemplate → names of the fabrics that have it.
    by_claim_template: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Node label key → names of the fabrics that list the key, each with its globs.
    by_label: Mapping[str, Mapping[str, Globs]] = field(default_factory=dict)

    @property
    def uses_claims(self) -> bool:
        """Whether any fabric gets its devices through ResourceClaims."""
        return bool(self.by_claim_template)

    def __hash__(self) -> int:
        """Hash by identity, as a fabric does."""
        return id(self)


def build_configuration(
    fabrics: tuple[Fabric, ...],
    *,
    defaults: Defaults | None = None,
    nvlink_namespaces: frozenset[str] = frozenset(),
    foreign_resources: tuple[str, ...] = (),
    foreign_annotations: tuple[str, ...] = (),
    config_hash: str = "",
) -> CompiledConfiguration:
    """Build a configuration with its indexes from compiled fabrics."""
    by_label: dict[str, dict[str, Globs]] = {}
    for fabric in fabrics:
        for key, globs in fabric.node_labels.items():
            by_label.setdefault(key, {})[fabric.name] = Globs(globs)
    by_rdma_resource = _by(fabrics, _rdma_resource_names)
    return CompiledConfiguration(
        fabrics={fabric.name: fabric for fabric in fabrics},
        defaults=defaults or Defaults(),
        nvlink_namespaces=nvlink_namespaces,
        foreign_resources=Globs(foreign_resources),
        foreign_annotations=Globs(foreign_annotations),
        config_hash=config_hash,
        by_gpu=_by(fabrics, lambda fabric: fabric.gpu_resources),
        by_rdma_resource=by_rdma_resource,
        unique_rdma_resources={
            fabric.name: _unique_rdma_resources(fabric, by_rdma_resource) for fabric in fabrics
        },
        by_class=_by(fabrics, lambda fabric: fabric.device_classes),
        by_claim_template=_by(
            fabrics, lambda fabric: [reference.template for reference in fabric.claim_templates]
        ),
        by_label=by_label,
    )


def _rdma_resource_names(fabric: Fabric) -> Iterable[str]:
    for resource in fabric.resources:
        yield from (resource.name, *resource.aliases)


def _unique_rdma_resources(
    fabric: Fabric, by_rdma_resource: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    names = (resource.name for resource in fabric.resources)
    return frozenset(name for name in names if len(by_rdma_resource[name]) == 1)


def _by(
    fabrics: Iterable[Fabric], keys: Callable[[Fabric], Iterable[str]]
) -> dict[str, frozenset[str]]:
    fabric_names: dict[str, set[str]] = {}
    for fabric in fabrics:
        for key in keys(fabric):
            fabric_names.setdefault(key, set()).add(fabric.name)
    return {key: frozenset(names) for key, names in fabric_names.items()}


# The IP interfaces through which the processes of a container reach their peers, by exact name.
#
# UCX_NET_DEVICES, NVSHMEM and Open MPI need exact names. NCCL_SOCKET_IFNAME contains prefixes
# instead (NCCL's env.rst): `eth` also means eth0, `=eth0` is exact, and `^docker` excludes. `lo`
# reaches no other pod.

NCCL_SOCKET = "NCCL_SOCKET_IFNAME"
GLOO_SOCKET = "GLOO_SOCKET_IFNAME"
SOCKET_VARIABLES = (NCCL_SOCKET, GLOO_SOCKET)

LOOPBACK = "lo"
_MAX_INTERFACE_BYTES = 15  # bytes: IFNAMSIZ without its final NUL
_MAX_INTERFACES = 8  # a longer list is not meant to name each interface


def ip_interfaces(interface: str | None, user_env: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the interfaces of a container with this env; () if no exact name is certain.

    `interface` is the fabric's. The user's NCCL_SOCKET_IFNAME takes precedence over it, then
    GLOO_SOCKET_IFNAME, which contains exact names.
    """
    for name in SOCKET_VARIABLES:
        if name in user_env:
            interfaces = list(
                _interfaces_in(user_env[name] or "", interface, exact=name == GLOO_SOCKET)
            )
            return () if None in interfaces else tuple(dict.fromkeys(filter(None, interfaces)))
    return () if interface is None or interface == LOOPBACK else (interface,)


def _interfaces_in(written: str, interface: str | None, *, exact: bool) -> Iterator[str | None]:
    """Yield the interfaces in a list of names; None for a name that is not exact."""
    exact = exact or written.startswith("=")
    names = written.removeprefix("=").split(",", _MAX_INTERFACES)
    for name in names if len(names) <= _MAX_INTERFACES else [""]:
        if not exact and interface is not None and name and interface.startswith(name):
            yield interface
        elif not _is_plain(name) or not (exact or name[-1].isdigit() or name == LOOPBACK):
            yield None
        elif name != LOOPBACK:
            yield name


def _is_plain(name: str) -> bool:
    """Return whether a text may be the name of an interface, and of only one."""
    return (
        bool(name)
        and len(name) <= _MAX_INTERFACE_BYTES
        and not any(char in "^:/*%$ " for char in name)
    )
