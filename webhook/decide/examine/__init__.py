"""Examine a pod before any mutation runs: find its targets and fabric, or the reason for none.

`annotation_values` checks the annotations; `targets` chooses the containers, `fabric_choice` the
fabric; `node_selection` finds evidence for a fabric, `foreign_nic` evidence against any. Nothing
here edits the pod. Start with `examine`, below.
"""

from __future__ import annotations

from typing import NamedTuple

from webhook.decide.analysis import (
    NO_CALL,
    DecisionInput,
    EarlierCall,
    PodAnalysis,
    RdmaAccess,
    Target,
)
from webhook.decide.examine.annotation_values import check_annotations
from webhook.decide.examine.earlier_work import fabric_of_earlier_call
from webhook.decide.examine.fabric_choice import FABRIC_AMBIGUOUS, Resolution, resolve
from webhook.decide.examine.foreign_nic import FOREIGN_NIC, FOREIGN_REMEDY, foreign_nic
from webhook.decide.examine.node_selection import unknown_label_messages
from webhook.decide.examine.targets import Selection, select
from webhook.decide.launchers.commands import Commands
from webhook.decide.settings.reader import SettingsReader
from webhook.errors import ShapeError
from webhook.model.annotations import UserAnnotations
from webhook.model.claims import claims_of
from webhook.model.decision import Denial, Reason
from webhook.model.fabric import CompiledConfiguration
from webhook.model.nodes import FabricIndex
from webhook.model.pod import Pod
from webhook.model.pod.node_selection import node_selector_problems
from webhook.model.resources import ContainerDevices, requested_devices

MIRROR_POD = Reason(
    "MirrorPod",
    "The pod only mirrors a static pod, so changes to the mirror have no effect.",
    remedy="Add the RDMA settings to the static pod's file on the node.",
    rdma="no",
)
WINDOWS_POD = Reason(
    "WindowsPod",
    "The pod runs on Windows, where Linux capabilities are invalid.",
    remedy="Run the job in a Linux container.",
    rdma="no",
)
HOST_NETWORK_MISSING = Reason(
    "HostNetworkMissing",
    "The fabric works only in the host network, but the pod lacks hostNetwork: true.",
    remedy=(
        "Add hostNetwork: true and dnsPolicy: ClusterFirstWithHostNet to the pod, or set the "
        "annotation rdma.lab/fabric to another fabric."
    ),
    rdma="no",
)
#: Not reportable, since this is no problem: the launcher's workers have a fabric, or use a NIC that
#: no fabric lists.
FABRIC_NOT_NEEDED = Reason(
    "FabricNotNeeded",
    "A launcher needs no fabric unless it runs ranks itself.",
    remedy="",
    reportable=False,
)

_MIRROR = "kubernetes.io/config.mirror"
_OS = ("kubernetes.io/os", "beta.kubernetes.io/os")
_NOT_RESOLVED = Resolution()


class Ineligible(NamedTuple):
    """The reason for leaving a pod that opted in unchanged."""

    reason: Reason
    #: Whether its status has the reason; not in a mirror pod, which belongs to its kubelet.
    in_status: bool


class Applicability(NamedTuple):
    """Which mutations apply to a pod, and why others do not."""

    access: RdmaAccess
    #: The reason of the decision, and a sentence with it; None for Patched or AlreadyPatched. The
    #: mutations that are skipped may have another, `skip_reason`.
    reason: Reason | None = None
    message: str = ""
    lacks_host_network: bool = False
    #: Whether the pod only has launchers, and either no fabric is known or they use a foreign NIC.
    not_needed: bool = False

    @property
    def uses_foreign_nic(self) -> bool:
        """Whether the pod uses a NIC that no fabric lists, even if its GPU is on a fabric."""
        return self.access is RdmaAccess.ANY_NIC

    @property
    def skip_reason(self) -> Reason | None:
        """The reason for skipping mutations that require more access; None if none does."""
        if self.lacks_host_network:
            return HOST_NETWORK_MISSING
        return FABRIC_NOT_NEEDED if self.not_needed else self.reason


class Examination(NamedTuple):
    """The analysis for the mutations, and what only the steps around them read."""

    analysis: PodAnalysis
    applicability: Applicability
    fabric_index: FabricIndex
    #: The evidence for the fabric; "" without a fabric, or with a NIC that no fabric lists.
    fabric_evidence: str = ""
    #: Sentences about labels that the pod requires of its node, and that no node or fabric has.
    unknown_label_messages: tuple[str, ...] = ()


def ineligible(pod: Pod) -> Ineligible | None:
    """Return the reason for leaving a static pod's mirror or a Windows pod unchanged, else None."""
    if _MIRROR in pod.annotations:
        return Ineligible(MIRROR_POD, in_status=False)
    required = pod.node_selector
    if pod.operating_system == "windows" or "windows" in map(required.get, _OS):
        return Ineligible(WINDOWS_POD, in_status=True)
    return None


def examine(
    pod: Pod,
    annotations: UserAnnotations,
    decision_input: DecisionInput,
    earlier: EarlierCall = NO_CALL,
) -> Examination:
    """Find the targets and the fabric; raise Denial for a request that cannot be met."""
    configuration = decision_input.configuration
    check_annotations(pod, annotations, configuration)
    # All containers count: a GPU of any container determines the pod's node.
    container_devices = _devices_of(pod, configuration)
    commands = Commands(pod)
    claims = claims_of(pod, decision_input.namespace.claim_facts)
    selection = select(pod, container_devices, annotations, commands, configuration, claims=claims)
    from_other_configuration = earlier.config not in ("", configuration.config_hash)
    resolution = _NOT_RESOLVED
    if not selection.reason:
        earlier_fabric = (
            None
            if from_other_configuration
            else fabric_of_earlier_call(pod, earlier, configuration)
        )
        resolution = resolve(
            pod, container_devices, annotations, decision_input, earlier_fabric, claims=claims
        )
    reader = SettingsReader(pod, decision_input.namespace.config_maps)
    analysis = PodAnalysis(
        fabric=resolution.fabric,
        targets=tuple([_as_its_command_runs(target, reader) for target in selection.targets]),
        launchers=selection.launchers,
        annotations=annotations,
        namespace=decision_input.namespace,
        configuration=configuration,
        original=pod,
        containers={container.path: container for container in pod.containers},
        claims=claims,
        commands=commands,
        settings_reader=reader,
        workload_settings=decision_input.workload_settings,
        called_before=bool(earlier.config),
        status_from_other_configuration=from_other_configuration,
    )
    foreign_nic_message = foreign_nic(analysis, container_devices)
    denies = configuration.defaults.on_ambiguous == "deny"
    if denies and resolution.ambiguous and not foreign_nic_message and selection.targets:
        raise Denial(FABRIC_AMBIGUOUS, resolution.message)
    return Examination(
        analysis,
        _applicability(analysis, selection, resolution, foreign_nic_message),
        decision_input.fabric_index,
        "" if foreign_nic_message else resolution.evidence,
        _label_messages(analysis, decision_input.fabric_index),
    )


def _label_messages(analysis: PodAnalysis, fabric_index: FabricIndex) -> tuple[str, ...]:
    if not analysis.targets:
        return ()
    return unknown_label_messages(
        analysis.original,
        analysis.configuration,
        fabric_index,
        fabric_known=analysis.fabric is not None,
    )


def _devices_of(pod: Pod, configuration: CompiledConfiguration) -> ContainerDevices:
    """Return the devices that each container requests.

    Raise ShapeError for the quantities, and the values of nodeSelector, that the API server
    rejects: with all of them, one round of corrections is enough.
    """
    container_devices, problems = [], list[str]()
    for container in pod.containers:
        try:
            container_devices.append((container, requested_devices(container, configuration)))
        except ShapeError as error:
            problems.append(str(error))
    problems += node_selector_problems(pod.node_selector)
    if problems:
        raise ShapeError("; ".join(problems[:_MAX_PROBLEMS]))
    return container_devices


_MAX_PROBLEMS = 4  # the most containers and values that a message names


def _as_its_command_runs(target: Target, reader: SettingsReader) -> Target:
    """Return a target with the user to whom its command certainly changes."""
    user = reader.settings(target.path).user
    return target._replace(user="other") if user is not None and user.certain else target


def _applicability(
    analysis: PodAnalysis, selection: Selection, resolution: Resolution, foreign_nic_message: str
) -> Applicability:
    """Return the pod's access to RDMA, and the reasons why mutations are skipped.

    The messages begin with the specifics, since long warnings are cut off.
    """
    if selection.reason is not None:
        by_foreign = (FOREIGN_NIC, f"{foreign_nic_message}; {FOREIGN_REMEDY}")
        explanation = by_foreign if foreign_nic_message else (selection.reason, selection.message)
        return Applicability(RdmaAccess.NONE, *explanation)
    if foreign_nic_message:
        reason = FOREIGN_NIC if analysis.targets else None
        remedy = f"; {FOREIGN_REMEDY}" if reason else ""
        return Applicability(
            RdmaAccess.ANY_NIC,  # of no fabric
            reason,
            f"{foreign_nic_message}{remedy}",
            not_needed=reason is None,
        )
    if analysis.fabric is None and not analysis.targets:
        return Applicability(RdmaAccess.NONE, not_needed=True)
    if analysis.fabric is None:
        return Applicability(RdmaAccess.NONE, resolution.reason, resolution.message)
    if analysis.fabric.mode == "host-network" and not analysis.original.host_network:
        return Applicability(RdmaAccess.NONE, lacks_host_network=True)
    return Applicability(RdmaAccess.FABRIC)
