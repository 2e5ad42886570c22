"""Detect a NIC that no fabric lists; then no fabric's settings are right for the pod.

    evidence                                     for example
    --------                                     -----------
    a resource in FOREIGN_NIC_RESOURCES of           vpc.amazonaws.com/efa, nvidia.com/rdma-vf
      webhook/model/resources.py, or the site's
    an annotation that attaches interfaces       networking.gke.io/interfaces, the site's own
    a resource whose name shows GPU and NIC      example.com/gpu-nic-pair
    a DRA claim of a container or of the pod     rdma-nic
    variables in env or command                  FI_PROVIDER=efa, NCCL_FASTRAK_*
    a daemon of GPUDirect-TCPX in the pod        tcpx-daemon, tcpgpudmarxd
    a launcher's libraries                       /opt/amazon/efa/lib

An annotation or a variable of a fabric (its `annotations`, its `transport`) is no evidence, unless
the pod is on another fabric. A launcher has no NIC, but starts ranks that use one; hence more signs
count for it. A user who declares that the NIC is a fabric's, by rdma.lab/fabric and
rdma.lab/devices: "0", is believed.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import orjson

from webhook.decide.analysis import PodAnalysis
from webhook.model.claims import fabrics_of, has_nic_of, shows_gpu_and_nic
from webhook.model.decision import Reason
from webhook.model.fabric import Fabric
from webhook.model.pod import Container, Path
from webhook.model.resources import (
    ContainerDevices,
    other_extended_resources,
    requested_devices,
)

FOREIGN_NIC = Reason(
    "ForeignNIC",
    "The pod uses a NIC that no fabric lists.",
    remedy=(
        "If the NIC belongs to a fabric that does not list it, set rdma.lab/fabric to the name of "
        'that fabric, and rdma.lab/devices to "0". If the pod is meant to use this NIC instead of '
        "a fabric's NIC, no action is needed. Otherwise, remove the resource, claim, annotation or "
        "variable that the pod uses for this NIC."
    ),
    rdma="unsure",
)
FOREIGN_REMEDY = (
    "if it belongs to a fabric, set rdma.lab/fabric to the name of that fabric, and "
    'rdma.lab/devices to "0"'
)

_NIC = "a NIC that no fabric lists"
#: GKE's list of a pod's interfaces, in JSON, including the default interface.
GKE_INTERFACES = "networking.gke.io/interfaces"
#: Google's GPUDirect-TCPXO, whose NCCL plugin is called FasTrak, and its predecessor, TCPX: the
#: prefixes of their variables, the names of TCPX's plugin, and the daemon that both need in the pod
#: (google/tcpgpudmarxd; container-engine-accelerators, gpudirect-tcpx and gpudirect-tcpxo).
_GPUDIRECT = ("NCCL_FASTRAK_", "NCCL_GPUDIRECTTCPX_")
_TCPX = "gpudirecttcpx"
_TCPX_CHOICE = re.compile(rf"\bNCCL_NET(?:=|\s+)[\"']?({_TCPX}\w*)", re.IGNORECASE)
_DAEMON = "tcpgpudmarxd"
_DAEMONS = ("tcpx-daemon", "tcpxo-daemon")
_PROVIDER = "FI_PROVIDER"
#: libfabric's providers of NICs without verbs: fi_efa(7), fi_cxi(7), fi_opx(7), fi_psm2(7).
_PROVIDERS = ("efa", "cxi", "opx", "psm2")
_PROVIDER_CHOICE = re.compile(rf"\b{_PROVIDER}(?:=|\s+)[\"']?({'|'.join(_PROVIDERS)})\b")
#: Words in a launcher's command or variables that only jobs over EFA have.
_EFA = re.compile(r"\bFI_EFA_\w+|/opt/amazon/(?:efa|openmpi)\b|\baws-ofi-nccl\b")


def foreign_nic(analysis: PodAnalysis, container_devices: ContainerDevices) -> str:
    """Return a sentence on a pod's NIC that no fabric lists, with the evidence, or "".

    Only targets and launchers count; in a pod without either, its app containers do.
    """
    if analysis.annotations.fabric is not None and analysis.annotations.devices == 0:
        return ""
    counted_paths = _counted_paths(analysis, container_devices)
    return (
        _by_resource(analysis, container_devices, counted_paths)
        or _by_annotation(analysis)
        or _by_variable(analysis)
        or _by_daemon(analysis)
        or _by_claim(analysis, counted_paths)
    )


def requests_foreign_nic(analysis: PodAnalysis) -> bool:
    """Return whether a pod gets a NIC that no fabric lists, even if it is declared as a fabric's.

    Variables and daemons are no evidence for that: they bring no device.
    """
    container_devices = [
        (container, requested_devices(container, analysis.configuration))
        for container in analysis.containers.values()
    ]
    counted_paths = _counted_paths(analysis, container_devices)
    return bool(
        _by_resource(analysis, container_devices, counted_paths)
        or _by_annotation(analysis)
        or _by_claim(analysis, counted_paths)
    )


def _counted_paths(analysis: PodAnalysis, container_devices: ContainerDevices) -> set[Path]:
    counted_paths = {target.path for target in analysis.targets}
    counted_paths.update(launcher.path for launcher in analysis.launchers)
    return counted_paths or {
        container.path for container, _ in container_devices if container.kind == "app"
    }


def _by_resource(
    analysis: PodAnalysis, container_devices: ContainerDevices, counted_paths: Collection[Path]
) -> str:
    for container, requested in container_devices:
        if requested.foreign_resources and container.path in counted_paths:
            return f"{requested.foreign_resources[0]} in container {container.name} is {_NIC}"
        for name in _pairs(analysis, container) if container.path in counted_paths else ():
            return f"{name} in container {container.name} is a GPU with {_NIC}"
    return ""


def _pairs(analysis: PodAnalysis, container: Container) -> list[str]:
    """List the container's resources that other injectors replace by a claim of GPU and NIC.

    Their names show both. A resource of a fabric is not among them.
    """
    return [
        name
        for name in other_extended_resources(container, analysis.configuration)
        if shows_gpu_and_nic(name)
    ]


def _by_annotation(analysis: PodAnalysis) -> str:
    annotations, globs = analysis.original.annotations, analysis.configuration.foreign_annotations
    if _attaches(annotations.get(GKE_INTERFACES)) and not _is_listed(analysis, GKE_INTERFACES):
        return f"annotation {GKE_INTERFACES} attaches {_NIC}"
    for key in annotations if globs.texts else ():
        if globs.match(key) and not _is_listed(analysis, key):
            return f"annotation {key} attaches {_NIC}"
    return ""


def _is_listed(analysis: PodAnalysis, key: str) -> bool:
    """Return whether an annotation attaches a NIC of a fabric that may be the pod's."""
    return any(key in fabric.annotations for fabric in _possible_fabrics(analysis))


def _possible_fabrics(analysis: PodAnalysis) -> Collection[Fabric]:
    """Return the pod's fabric, or all if it is unknown."""
    if analysis.fabric is not None:
        return (analysis.fabric,)
    return analysis.configuration.fabrics.values()


def _attaches(written: object) -> bool:
    """Return whether a list of interfaces has any outside the default network; None has none.

    An unresolved list (`${INTERFACES}`) counts as having some.
    """
    if written is None:
        return False
    try:
        listed = orjson.loads(written if isinstance(written, str) else "")
    except orjson.JSONDecodeError:
        return bool(written)
    return not isinstance(listed, list) or any(
        not isinstance(interface, dict) or interface.get("network") != "default"
        for interface in listed
    )


def _by_variable(analysis: PodAnalysis) -> str:
    for target in analysis.targets:
        evidence = _chosen_network(analysis, target.path)
        if evidence:
            return f"{evidence} in container {target.name} implies {_NIC}"
    for launcher in analysis.launchers:
        evidence = _chosen_network(analysis, launcher.path)
        # A library of EFA is weaker evidence than the annotation.
        if analysis.annotations.fabric is None and not _uses_libfabric(analysis):
            evidence = evidence or _efa(analysis, launcher.path)
        if evidence:
            return f"{evidence} in container {launcher.name} implies {_NIC}"
    return ""


def _chosen_network(analysis: PodAnalysis, path: Path) -> str:
    """Return the variable with which a container chooses another network, or ""."""
    container = analysis.containers[path]
    user_env, text = container.env, container.command_text
    provider = _provider(user_env.get(_PROVIDER) or "", text)
    if provider and not _uses_libfabric(analysis):
        return f"{_PROVIDER}={provider}"
    names = "\n".join(user_env)
    for prefix in _GPUDIRECT:
        if prefix in text or prefix in names:
            return f"{prefix}*"
    return _tcpx_plugin(user_env.get("NCCL_NET") or "", text)


def _provider(written: str, text: str) -> str:
    """Return the provider of a NIC without verbs that env or the command chooses, or ""."""
    if written in _PROVIDERS:
        return written
    choice = _PROVIDER_CHOICE.search(text) if _PROVIDER in text else None
    return choice[1] if choice else ""


def _uses_libfabric(analysis: PodAnalysis) -> bool:
    """Return whether a fabric that may be the pod's is reached by libfabric."""
    return any(fabric.transport == "libfabric" for fabric in _possible_fabrics(analysis))


def _tcpx_plugin(written: str, text: str) -> str:
    """Return the setting that makes NCCL use the plugin of GPUDirect-TCPX, or ""."""
    if written.lower().startswith(_TCPX):
        return f"NCCL_NET={written:.40}"
    choice = _TCPX_CHOICE.search(text) if "NCCL_NET" in text else None
    return f"NCCL_NET={choice[1]:.40}" if choice else ""


def _by_daemon(analysis: PodAnalysis) -> str:
    """Return a sentence on the container that receives for GPUDirect-TCPX or -TCPXO, or ""."""
    for container in analysis.containers.values():
        if container.name in _DAEMONS or _DAEMON in container.image:
            return f"container {container.name}, a daemon of GPUDirect-TCPX, implies {_NIC}"
    return ""


def _efa(analysis: PodAnalysis, path: Path) -> str:
    """Return a sign of EFA in a launcher's command or variables, or ""."""
    variables = "\n".join(
        f"{name}={value}" for name, value in analysis.containers[path].env.items()
    )
    match = _EFA.search(analysis.commands.text(path)) or _EFA.search(variables)
    return match.group() if match else ""


def _by_claim(analysis: PodAnalysis, counted_paths: Collection[Path]) -> str:
    fabrics, facts = analysis.configuration.fabrics, analysis.namespace.claim_facts
    for claim in analysis.claims:
        fabric_names = fabrics_of(claim, analysis.configuration)
        if analysis.fabric is not None:
            fabric_names |= {analysis.fabric.name}
        if any(has_nic_of(claim, fabrics[name], facts) for name in fabric_names):
            continue
        if claim.is_nic and claim.container is None:
            return f"resource claim {claim.name} of the pod is for {_NIC}"
        if claim.is_nic and claim.container is not None and claim.container.path in counted_paths:
            return f"resource claim {claim.name} in container {claim.container.name} is for {_NIC}"
    return ""
