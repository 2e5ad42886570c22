"""Classify the resource names of a container: GPUs, RDMA devices, NICs that no fabric claims.

GPU names are compared with a table or with the fabrics, never by the prefix `nvidia.com/gpu`,
since `nvidia.com/gpumem` is memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from webhook.errors import ShapeError
from webhook.model.fabric import Fabrics, Globs
from webhook.model.pod import Path, PodManifest, containers_of, dotted, mapping
from webhook.model.quantity import amount, equal, is_unexpanded, is_zero, whole

#: The NVIDIA device plugin's name for a whole GPU.
GPU = "nvidia.com/gpu"

#: The most GPUs that are counted: a pod that requests more fits on no node, and the number of its
#: RDMA devices needs a limit.
_MOST = 10_000

#: Renamed time-sliced GPUs (k8s-device-plugin, `renameByDefault`).
SHARED_GPU = "nvidia.com/gpu.shared"

#: MIG slices of the mixed strategy: `nvidia.com/mig-1g.5gb`.
MIG = "nvidia.com/mig-"

#: Shares of a GPU that HAMi and Volcano's vGPU plugin offer. None of them is a GPU by itself, but
#: they make the GPU of the container virtual, without GPUDirect.
VIRTUAL_GPU = frozenset(
    {
        "nvidia.com/gpumem",
        "nvidia.com/gpumem-percentage",
        "nvidia.com/gpucores",
        "nvidia.com/priority",
        "volcano.sh/vgpu-number",
        "volcano.sh/vgpu-memory",
        "volcano.sh/vgpu-memory-percentage",
        "volcano.sh/vgpu-cores",
    }
)

#: NICs whose settings no fabric has, unless one claims the name.
FOREIGN_RESOURCES = (
    "vpc.amazonaws.com/efa",  # AWS Elastic Fabric Adapter: libfabric, no verbs names
    "*/*sriov*",  # the SR-IOV network device plugin's usual names
    "*/hostdev*",  # NVIDIA network operator, host-device network
    "*/rdma[-_]vf*",  # the same operator's SR-IOV examples: nvidia.com/rdma-vf
    "openshift.io/*",  # RESOURCE_PREFIX of the SR-IOV network operator
    "mellanox.com/*",  # the prefix in the examples of the SR-IOV network device plugin
    "*mlnxnics*",  # older SR-IOV examples
    "*volcengine.com/rdma",  # vke.volcengine.com/rdma: bound to its own CNI
    "amd.com/nic",
    "amd.com/vnic",
    "networking.gke.io*",  # GKE multi-networking: GPUDirect-TCPXO, and ConnectX for -RDMA
    "aliyun/erdma",
    "koordinator.sh/rdma",
)
_RESOURCES = Globs(FOREIGN_RESOURCES)
_NONE = Globs()


class Usage(NamedTuple):
    """The GPUs, RDMA devices and unclaimed NICs that one container requests."""

    #: GPU resource names with a quantity above zero.
    gpus: tuple[str, ...]
    #: The number of whole GPUs; 0 if any are slices, shared or virtual.
    whole_gpus: int
    shared_gpu: bool
    virtual_gpu: bool
    #: RDMA resources (a fabric's, an alias, or `rdma/*`) with their quantities, including zero.
    rdma: tuple[tuple[str, Any], ...]
    foreign: tuple[str, ...]

    @property
    def has_rdma(self) -> bool:
        """Return whether an RDMA resource is requested with a quantity above zero."""
        return any(not is_zero(quantity) for _, quantity in self.rdma)


_NOTHING = Usage((), 0, False, False, (), ())


def usage_of(container: Mapping[str, Any], path: Path, fabrics: Fabrics) -> Usage:
    """Read what a container requests; raise ShapeError for what the API server would reject."""
    resources = mapping(container, ("resources",), path)
    requests = mapping(resources, ("requests",), (*path, "resources"))
    limits = mapping(resources, ("limits",), (*path, "resources"))
    if not limits and not requests:
        return _NOTHING
    amounts = {**requests, **limits} if requests != limits else limits
    # Sorted, as the API server sends them: the result must not depend on the order in a file.
    extended = sorted([name for name in amounts if "/" in name])
    if not extended:
        return _NOTHING
    try:
        usage = _classify(extended, amounts, fabrics)
        if amounts is not limits:
            rdma = [name for name, _ in usage.rdma]
            check_limits(requests, limits, rdma, (*path, "resources"))
    except ValueError as error:
        both = {"limits": limits, "requests": requests}
        raise _refusal(both, (*path, "resources")) from error
    return usage


def _refusal(resources: Mapping[str, Mapping[str, Any]], path: Path) -> ShapeError:
    """Name the places of the amounts that are not quantities, up to `_SHOWN`.

    A variable that nobody expanded has the same remedy everywhere, so that is said once.
    """
    problems: list[str] = []
    for section, amounts in resources.items():
        for name, written in amounts.items():
            place = dotted((*path, section, name))
            try:
                amount(written)
            except ValueError as error:
                if is_unexpanded(written):
                    return ShapeError(f"{place}: {error}")
                problems.append(f"{place}: {error}")
            if len(problems) == _SHOWN:
                return ShapeError("; ".join(problems))
    return ShapeError("; ".join(problems))


_SHOWN = 4  # the most amounts that a message names


def _classify(extended: list[str], amounts: Mapping[str, Any], fabrics: Fabrics) -> Usage:
    gpus: list[str] = []
    rdma: list[tuple[str, Any]] = []
    foreign: list[str] = []
    count, shared, virtual = 0, False, False
    for name in extended:
        written = amounts[name]
        if is_rdma(name, fabrics):
            is_zero(written)  # raises ValueError if it is not a quantity
            rdma.append((name, written))
        elif is_gpu(name, fabrics):
            if not is_zero(written):
                gpus.append(name)
                sliced = name == SHARED_GPU or name.startswith(MIG)
                shared = shared or sliced
                count += 0 if sliced else min(whole(written), _MOST)
        elif name in VIRTUAL_GPU:
            virtual = True
        elif is_foreign(name, fabrics.foreign_resources) and not is_zero(written):
            foreign.append(name)
    if virtual or shared:
        count = 0
    return Usage(tuple(gpus), count, shared, virtual, tuple(rdma), tuple(foreign))


def amounts_of(container: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a container requests, after `usage_of` has read it: resource → quantity."""
    resources = container.get("resources") or {}
    return {**(resources.get("requests") or {}), **(resources.get("limits") or {})}


def unclaimed(container: Mapping[str, Any], fabrics: Fabrics) -> list[str]:
    """List the extended resources above zero of a container that are neither GPU nor RDMA here."""
    return sorted(
        name
        for name, written in amounts_of(container).items()
        if "/" in name and not is_rdma(name, fabrics) and not is_gpu(name, fabrics)
        if not _is_none(written)
    )


def _is_none(written: Any) -> bool:
    try:
        return is_zero(written)
    except ValueError:
        return False


def is_gpu(name: str, fabrics: Fabrics) -> bool:
    """Return whether a resource is a GPU, whole or a slice."""
    return name in (GPU, SHARED_GPU) or name in fabrics.by_gpu or name.startswith(MIG)


def is_rdma(name: str, fabrics: Fabrics) -> bool:
    """Return whether a resource is an RDMA device: a fabric's, an alias of one, or `rdma/*`."""
    return name in fabrics.by_resource or name.startswith("rdma/")


def is_foreign(name: str, more: Globs = _NONE) -> bool:
    """Return whether a resource is a NIC that no fabric claims; `more` are the site's globs."""
    return _RESOURCES.match(name) or more.match(name)


# Reject extended resources whose limit the API server rejects: none, or another than the request.
#
# Kubernetes does not overcommit such resources. It makes a missing request equal to the limit,
# but never a limit from a request (kubernetes pkg/apis/core/validation,
# ValidateResourceRequirements). Resources of the domain kubernetes.io may be overcommitted
# (pkg/apis/core/v1/helper).

_NATIVE = "kubernetes.io/"


def check_limits(
    requests: Mapping[str, Any],
    limits: Mapping[str, Any],
    rdma: Collection[str],
    path: Path,
) -> None:
    """Raise ShapeError if a container could not be created with these resources, which are `path`.

    Of several `rdma` resources, one with a limit is enough: aliases are merged into the real name.
    Raise ValueError if an amount is not a quantity.
    """
    merged = rdma if len(rdma) > 1 and any(name in limits for name in rdma) else ()
    # Sorted, as the API server sends them: the message must not depend on the order in a file.
    for name in sorted(name for name in requests if "/" in name and _NATIVE not in name):
        asked = requests[name]
        is_zero(asked)  # raises ValueError
        if name not in merged and not (name in limits and equal(asked, limits[name])):
            raise ShapeError(_message(name, asked, limits, path))


def _message(name: str, asked: Any, limits: Mapping[str, Any], path: Path) -> str:
    where = dotted((*path, "limits", name))
    if name not in limits:
        return f"{where} is missing: it must equal the request, {_shown(asked)}"
    return f"{where} is {_shown(limits[name])}: it must equal the request, {_shown(asked)}"


def _shown(written: Any) -> str:
    """Return a quantity as the API server sends it: null as 0."""
    return "0" if written is None else str(written)


# What the scheduler reserves on a node for a pod, of extended resources such as GPUs and NICs.
#
# App containers and sidecars run side by side, and an init container beside the sidecars before
# it. Source: k8s.io/component-helpers/resource, PodRequests; requests for a whole pod
# (`spec.resources`) cover cpu, memory and huge pages only (IsSupportedPodLevelResource).

#: A resource → how many, a whole number.
Amounts = dict[str, int]


def scheduler_requests(pod: PodManifest) -> Amounts:
    """Return what is reserved for a pod: extended resource → how many; ShapeError as a reader."""
    lasting: Amounts = {}
    most: Amounts = {}
    for one in containers_of(pod):  # init containers and sidecars come first, in their order
        own = _requests(one.manifest, one.path) if one.kind != "ephemeral" else {}
        if one.kind == "init":
            for name, many in own.items():
                most[name] = max(most.get(name, 0), many + lasting.get(name, 0))
        else:
            _add(lasting, own)
    for name, many in lasting.items():
        most[name] = max(most.get(name, 0), many)
    _add(most, _whole(mapping(pod, ("spec", "overhead")), ("spec", "overhead")))
    return most


def _requests(container: Mapping[str, Any], path: Path) -> Amounts:
    """Return a container's requests, which are its limits where it names no request."""
    if "resources" not in container:
        return {}
    limits, requests = (
        _whole(mapping(container, ("resources", section), path), (*path, "resources", section))
        for section in ("limits", "requests")
    )
    return {**limits, **requests}


def _whole(amounts: Mapping[str, Any], path: Path) -> Amounts:
    found: Amounts = {}
    for name, written in amounts.items():
        if "/" in name:
            try:
                found[name] = whole(written)
            except ValueError as error:
                raise ShapeError(f"{dotted((*path, name))}: {error}") from None
    return found


def _add(total: Amounts, more: Amounts) -> None:
    for name, many in more.items():
        total[name] = total.get(name, 0) + many
