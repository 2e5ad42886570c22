"""Classify the resource names of a container: GPUs, RDMA devices, NICs that no fabric lists.

GPU names are compared with a table or with the fabrics, never by the prefix `nvidia.com/gpu`,
since `nvidia.com/gpumem` is memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from webhook.errors import ShapeError
from webhook.model.fabric import CompiledConfiguration, Globs
from webhook.model.pod import Container, Path, Pod, dotted
from webhook.model.quantity import equal, is_unexpanded, is_zero, resource_billionths, to_integer
from webhook.model.quoting import quoted

#: The NVIDIA device plugin's name for a whole GPU.
GPU = "nvidia.com/gpu"

#: The maximum number of GPUs that are counted: a pod that requests more fits on no node, and the
#: number of its RDMA devices needs a limit.
_MAX_GPUS = 10_000

#: Renamed time-sliced GPUs (k8s-device-plugin, `renameByDefault`).
SHARED_GPU = "nvidia.com/gpu.shared"

#: MIG slices of the mixed strategy: `nvidia.com/mig-1g.5gb`.
MIG = "nvidia.com/mig-"

#: A TPU, whose network between chips is its own (docs of GKE, "About TPUs in GKE").
TPU = "google.com/tpu"

#: GPUs and other accelerators of other vendors, by the names of the vendors' device plugins. They
#: make no container a target, but no node has them beside the GPU of another vendor. Sources:
#: ROCm/k8s-device-plugin, intel/intel-device-plugins-for-kubernetes, and the documentation of GKE,
#: Gaudi, Neuron and Ascend.
OTHER_ACCELERATORS = frozenset(
    {
        "amd.com/gpu",
        "aws.amazon.com/neuron",
        "aws.amazon.com/neuroncore",
        "aws.amazon.com/neurondevice",
        TPU,
        "gpu.intel.com/i915",
        "gpu.intel.com/xe",
        "habana.ai/gaudi",
        "huawei.com/Ascend910",
    }
)

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

#: NICs without settings in any fabric, unless a fabric lists the name.
FOREIGN_NIC_RESOURCES = (
    "vpc.amazonaws.com/efa",  # AWS Elastic Fabric Adapter: libfabric, no verbs names
    "*/*sriov*",  # the SR-IOV network device plugin's usual names
    "*/hostdev*",  # NVIDIA Network Operator, host-device network
    "*/rdma[-_]vf*",  # the same operator's SR-IOV examples: nvidia.com/rdma-vf
    "openshift.io/*",  # RESOURCE_PREFIX of the SR-IOV Network Operator
    "mellanox.com/*",  # the prefix in the examples of the SR-IOV network device plugin
    "*mlnxnics*",  # older SR-IOV examples
    "*volcengine.com/rdma",  # vke.volcengine.com/rdma: bound to its own CNI
    "amd.com/nic",
    "amd.com/vnic",
    "networking.gke.io*",  # GKE multi-networking: GPUDirect-TCPXO, and ConnectX for -RDMA
    "aliyun/erdma",
    "koordinator.sh/rdma",
)
_FOREIGN_NIC_GLOBS = Globs(FOREIGN_NIC_RESOURCES)
_NONE = Globs()


class RequestedDevices(NamedTuple):
    """The GPUs, RDMA devices and other NICs that one container requests."""

    #: GPU resource names with a quantity above zero.
    gpus: tuple[str, ...]
    #: The number of whole GPUs; 0 if the container has any shared or virtual GPU.
    whole_gpus: int
    #: Whether any is a MIG slice or a time-sliced GPU.
    shared_gpu: bool
    virtual_gpu: bool
    #: RDMA resources (a fabric's, an alias, or `rdma/*`) with their quantities, including zero.
    rdma: tuple[tuple[str, object], ...]
    foreign_resources: tuple[str, ...]

    @property
    def has_rdma(self) -> bool:
        """Whether an RDMA resource is requested with a quantity above zero."""
        return any(not is_zero(quantity) for _, quantity in self.rdma)


#: The containers of a pod, each with the devices that it requests.
ContainerDevices = list[tuple[Container, RequestedDevices]]


_NO_DEVICES = RequestedDevices((), 0, False, False, (), ())


def requested_devices(
    container: Container, configuration: CompiledConfiguration
) -> RequestedDevices:
    """Return the devices of a container; raise ShapeError if the API server would reject it."""
    quantities = container.quantities
    if not quantities:
        return _NO_DEVICES
    for name in quantities:
        if "$" in name:  # no resource has such a name
            raise _unexpanded_name(name, container)
    # Sorted, as the API server sends them: the result must not depend on the order in a file.
    extended = sorted([name for name in quantities if "/" in name])
    if not extended:
        return _NO_DEVICES
    try:
        requested = _classify(extended, quantities, configuration)
        if quantities is not container.limits:
            check_limits(container, [name for name, _ in requested.rdma])
    except ValueError as error:
        raise _refusal(container) from error
    return requested


def _unexpanded_name(name: str, container: Container) -> ShapeError:
    section = "limits" if name in container.limits else "requests"
    place = dotted((*container.path, "resources", section))
    problem = "is an unexpanded variable (run envsubst first)"
    if not is_unexpanded(name):
        problem = "is not the name of a resource"
    return ShapeError(f"{place}: {quoted(name)} {problem}")


def _refusal(container: Container) -> ShapeError:
    """Return an error that names the malformed quantities, at most `_MAX_PROBLEMS`.

    An unexpanded variable has the same remedy everywhere, so it is reported once.
    """
    problems: list[str] = []
    for section, quantities in (("limits", container.limits), ("requests", container.requests)):
        for name, written in quantities.items():
            place = dotted((*container.path, "resources", section, name))
            try:
                resource_billionths(written)
            except ValueError as error:
                if is_unexpanded(written):
                    return ShapeError(f"{place}: {error}")
                problems.append(f"{place}: {error}")
            if len(problems) == _MAX_PROBLEMS:
                return ShapeError("; ".join(problems))
    return ShapeError("; ".join(problems))


_MAX_PROBLEMS = 4  # the most quantities that a message names


def _classify(
    extended: list[str], quantities: Mapping[str, object], configuration: CompiledConfiguration
) -> RequestedDevices:
    gpus: list[str] = []
    rdma: list[tuple[str, object]] = []
    foreign: list[str] = []
    count, shared, virtual = 0, False, False
    for name in extended:
        written = quantities[name]
        if is_rdma(name, configuration):
            is_zero(written)  # raises ValueError if it is not a quantity
            rdma.append((name, written))
        elif is_gpu(name, configuration):
            if not is_zero(written):
                gpus.append(name)
                sliced = is_slice(name)
                shared = shared or sliced
                count += 0 if sliced else min(to_integer(written), _MAX_GPUS)
        elif name in VIRTUAL_GPU:
            virtual = True
        elif is_foreign(name, configuration.foreign_resources) and not is_zero(written):
            foreign.append(name)
    if virtual or shared:
        count = 0
    return RequestedDevices(tuple(gpus), count, shared, virtual, tuple(rdma), tuple(foreign))


def other_extended_resources(
    container: Container, configuration: CompiledConfiguration
) -> list[str]:
    """List a container's extended resources above zero that are neither GPU nor RDMA."""
    return sorted(
        name
        for name, written in container.quantities.items()
        if "/" in name and not is_rdma(name, configuration) and not is_gpu(name, configuration)
        if not _is_surely_zero(written)
    )


def accelerators_of(container: Container, configuration: CompiledConfiguration) -> list[str]:
    """List a container's GPUs and other accelerators; a malformed quantity is above zero."""
    return [
        name
        for name, written in container.quantities.items()
        if "/" in name and is_accelerator(name, configuration) and not _is_surely_zero(written)
    ]


def _is_surely_zero(written: object) -> bool:
    try:
        return is_zero(written)
    except ValueError:
        return False


def is_slice(name: str) -> bool:
    """Return whether a resource is a part of a GPU: a MIG slice, or a time-sliced GPU."""
    return name == SHARED_GPU or name.startswith(MIG)


def is_gpu(name: str, configuration: CompiledConfiguration) -> bool:
    """Return whether a resource is a GPU, whole or a slice."""
    return name == GPU or name in configuration.by_gpu or is_slice(name)


def is_accelerator(name: str, configuration: CompiledConfiguration) -> bool:
    """Return whether a resource is a GPU, or one of OTHER_ACCELERATORS."""
    return is_gpu(name, configuration) or name in OTHER_ACCELERATORS


def vendor_of(resource: str) -> str:
    """Return the domain of a resource's name: "nvidia.com"."""
    return resource.partition("/")[0]


def is_rdma(name: str, configuration: CompiledConfiguration) -> bool:
    """Return whether a resource is an RDMA device: a fabric's, an alias of one, or `rdma/*`."""
    return name in configuration.by_rdma_resource or name.startswith("rdma/")


def is_foreign(name: str, site_globs: Globs = _NONE) -> bool:
    """Return whether a resource is a NIC that no fabric lists, by our globs or the site's."""
    return _FOREIGN_NIC_GLOBS.match(name) or site_globs.match(name)


# Reject extended resources with a missing limit, or with a limit unequal to the request.
#
# Kubernetes does not overcommit such resources. It makes a missing request equal to the limit,
# but never a limit from a request (kubernetes pkg/apis/core/validation,
# ValidateResourceRequirements). Resources of the domain kubernetes.io may be overcommitted
# (pkg/apis/core/v1/helper).

_NATIVE = "kubernetes.io/"


def check_limits(container: Container, rdma: Collection[str]) -> None:
    """Raise ShapeError if the API server would reject a container's resources.

    One limit for several `rdma` resources is enough: aliases are merged into the real name.
    Raise ValueError if a quantity is malformed.
    """
    requests, limits = container.requests, container.limits
    merged = frozenset(rdma if len(rdma) > 1 and any(name in limits for name in rdma) else ())
    # Sorted, as the API server sends them: the message must not depend on the order in a file.
    for name in sorted(name for name in requests if "/" in name and _NATIVE not in name):
        requested = requests[name]
        is_zero(requested)  # raises ValueError
        if name not in merged and not (name in limits and equal(requested, limits[name])):
            raise ShapeError(_message(name, requested, container))


def _message(name: str, requested: object, container: Container) -> str:
    limits, place = container.limits, dotted((*container.path, "resources", "limits", name))
    if name not in limits:
        return f"{place} is missing, but it must equal the request, {_as_sent(requested)}"
    return (
        f"{place} is {_as_sent(limits[name])}, but it must equal the request, {_as_sent(requested)}"
    )


def _as_sent(written: object) -> str:
    """Return a quantity as the API server sends it: null as 0."""
    return "0" if written is None else str(written)


# The extended resources, such as GPUs and NICs, that the scheduler reserves on a node for a pod.
#
# App containers and sidecars run side by side, and an init container together with the sidecars
# before it. Source: k8s.io/component-helpers/resource, PodRequests; requests for a whole pod
# (`spec.resources`) cover cpu, memory and huge pages only (IsSupportedPodLevelResource).

#: Resource → amount, a whole number.
Amounts = dict[str, int]


def scheduler_requests(pod: Pod) -> Amounts:
    """Return the reservation for a pod: extended resource → amount; raise ShapeError."""
    running: Amounts = {}
    peak: Amounts = {}
    for container in pod.containers:  # init containers and sidecars come first, in their order
        requested = _requests(container) if container.kind != "ephemeral" else {}
        if container.kind == "init":
            for name, amount in requested.items():
                peak[name] = max(peak.get(name, 0), amount + running.get(name, 0))
        else:
            _add(running, requested)
    for name, amount in running.items():
        peak[name] = max(peak.get(name, 0), amount)
    _add(peak, _integers(pod.overhead, ("spec", "overhead")))
    return peak


def _requests(container: Container) -> Amounts:
    """Return a container's requests; a limit without a request counts as the request."""
    if not container.resources:
        return {}
    path = (*container.path, "resources")
    limits = _integers(container.limits, (*path, "limits"))
    return {**limits, **_integers(container.requests, (*path, "requests"))}


def _integers(quantities: Mapping[str, object], path: Path) -> Amounts:
    integers: Amounts = {}
    for name, written in quantities.items():
        if "/" in name:
            try:
                integers[name] = to_integer(written)
            except ValueError as error:
                raise ShapeError(f"{dotted((*path, name))}: {error}") from None
    return integers


def _add(total: Amounts, addend: Amounts) -> None:
    for name, count in addend.items():
        total[name] = total.get(name, 0) + count
