"""What the status says was applied, compared with what the pod carries now.

With the configuration of the admission, which the status names by its hash, a call now shows the
difference: what it would apply again has been removed, and what it would remove has been added.
Without, `stand_in` provides a configuration, and `traces` what each mutation leaves on a pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from webhook.decide import Inspection, inspect
from webhook.decide.analysis import DecisionInput, Launcher, RdmaAccess, Target
from webhook.decide.fabric_variables import desired_env
from webhook.decide.mutations import MUTATIONS
from webhook.decide.mutations.config_files import ENV_DROPPED
from webhook.decide.mutations.env import MUTATION as ENV
from webhook.decide.mutations.env import USER_VALUE_REASONS
from webhook.decide.mutations.ipc_lock import MUTATION as IPC_LOCK
from webhook.decide.mutations.memory_limit import MUTATION as MEMORY_LIMIT
from webhook.decide.verdict.devices import DEVICE_REASONS
from webhook.decide.verdict.patched_pod import decisive_targets
from webhook.decide.verdict.pinned_memory import PINNED_MEMORY_REASONS
from webhook.diagnose.why.evidence import PodEvidence, StatusAnnotation
from webhook.diagnose.why.field_changes import FieldChange, field_changes
from webhook.diagnose.why.stand_in import stand_in
from webhook.diagnose.why.traces import TRACES
from webhook.errors import ShapeError
from webhook.kube.objects import Manifest
from webhook.model.config_maps import ConfigMaps
from webhook.model.decision import Outcome, Rdma, Verdict
from webhook.model.fabric import SOCKET_VARIABLES, CompiledConfiguration, Fabric
from webhook.model.facts import NamespaceFacts
from webhook.model.names import capitalized
from webhook.model.nodes import FabricIndex, build_fabric_index
from webhook.model.pod import Pod

_NO_CONFIG_MAPS: ConfigMaps = MappingProxyType({})
#: From the best verdict to the worst.
_ORDER: tuple[Rdma, ...] = ("yes", "none", "unsure", "no")
_CODES = {mutation.name: {reason.code for reason in mutation.reasons} for mutation in MUTATIONS}
#: The mutations whose operations do not depend on the site's configuration.
_OF_EVERY_SITE = frozenset({IPC_LOCK.name, MEMORY_LIMIT.name})
#: The reasons for `unsure` that only the pod and its configuration determine, no fact.
_OF_THE_POD = frozenset(reason.code for reason in (*DEVICE_REASONS, *PINNED_MEMORY_REASONS))
#: The remarks on what a container sets itself; the status has only their codes.
_ON_OWN_SETTINGS = frozenset(reason.code for reason in (*USER_VALUE_REASONS, ENV_DROPPED))
_MAX_REMARKS = 4


class Change(NamedTuple):
    """Something that a mutation did, and that was undone or changed afterwards."""

    mutation: str
    #: A sentence without its period.
    text: str


class Comparison(NamedTuple):
    """What has changed since the call that wrote the status."""

    changes: tuple[Change, ...] = ()
    #: The verdict of what the pod carries now, if it is worse than that of the status.
    worse_verdict: Verdict | None = None
    #: The same, better or worse; None if it cannot be known.
    verdict_now: Verdict | None = None
    #: Whether nothing is left of what the status names, so that no call can have changed this pod.
    nothing_left: bool = False
    #: Code of a remark on the container's own settings → a sentence with their names and values.
    remarks_on_settings: Mapping[str, str] = MappingProxyType({})
    #: The containers that the verdict is about; () if they are unknown.
    targets: tuple[str, ...] = ()

    @property
    def rdma(self) -> Rdma:
        """The best that can be said of the pod now."""
        by_verdict = self.worse_verdict.rdma if self.worse_verdict else "yes"
        return worse(by_verdict, "unsure") if self.changes else by_verdict


#: A pod without a status, one that is as it was when it got its status, or one of no valid shape.
SAME = Comparison()


def worse(first: Rdma, second: Rdma) -> Rdma:
    """Return the worse of two verdicts."""
    return max(first, second, key=_ORDER.index)


def compare(evidence: PodEvidence) -> Comparison:
    """Compare a pod with its status, if it has one; never raise."""
    status = evidence.status
    if status is None:
        return SAME
    try:
        return _compare(evidence, status, Pod(evidence.pod.manifest))
    except (ShapeError, RecursionError):
        return SAME  # no API server has such a pod


def _compare(evidence: PodEvidence, status: StatusAnnotation, pod: Pod) -> Comparison:
    configuration_known = admission_configuration(evidence, status) is not None
    # Facts are left out of changes: the namespace may have changed since.
    inspection = redecide_on_same_fabric(
        evidence, status, NamespaceFacts(name=evidence.namespace_name)
    )
    changes: list[Change] = []
    worse_verdict = None
    if inspection is not None:
        changes += _undone(inspection, status, configuration_known=configuration_known)
        if configuration_known:
            changes += _values_changed(inspection, status)
        worse_verdict = _worse_verdict(inspection, status, configuration_known=configuration_known)
    applied = [name for name in _names(status) if name in TRACES]
    gone = [name for name in applied if not TRACES[name].is_left(pod)]
    if inspection is None or not configuration_known:
        changed = {change.mutation for change in changes}
        changes += [_without_trace(name) for name in gone if name not in changed]
    verdict_now = verdict_of(evidence, status) if inspection else None
    nothing_left = bool(applied) and gone == applied
    remarks_on_settings = dict(_remarks_on_settings(inspection.outcomes)) if inspection else {}
    targets = decisive_targets(inspection.analysis) if inspection else ()
    return Comparison(
        tuple(changes),
        worse_verdict,
        verdict_now,
        nothing_left=nothing_left,
        remarks_on_settings=remarks_on_settings,
        targets=tuple(target.name for target in targets),
    )


def _remarks_on_settings(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, str]]:
    """Yield the codes of remarks on settings, each with all that a call would say now."""
    by_code: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.reason.code in _ON_OWN_SETTINGS:
            remark = f"container {outcome.container}: {outcome.message}"
            by_code.setdefault(outcome.reason.code, []).append(remark)
    for code, remarks in by_code.items():
        text = "; ".join(remarks[:_MAX_REMARKS])
        if len(remarks) > _MAX_REMARKS:
            text = f"{text}; and {len(remarks) - _MAX_REMARKS} more"
        yield code, f"{capitalized(text)}."


def admission_configuration(
    evidence: PodEvidence, status: StatusAnnotation
) -> CompiledConfiguration | None:
    """Return the configuration of the admission; None if it is not known."""
    for configuration in (evidence.configuration, evidence.cluster_configuration):
        if configuration is not None and configuration.config_hash == status.config:
            return configuration
    return None


def verdict_of(
    evidence: PodEvidence,
    status: StatusAnnotation,
    *,
    config_maps: ConfigMaps = _NO_CONFIG_MAPS,
    manifest: Manifest | None = None,
) -> Verdict | None:
    """Return the verdict of what a pod carries, or another manifest in its place; never raise.

    `config_maps`: those from which its containers get variables or scripts. The labels of the
    namespace are used, since a Pod Security level may explain what the pod lacks.
    """
    labels = None if evidence.namespace is None else evidence.namespace.metadata.labels
    facts = NamespaceFacts(
        name=evidence.namespace_name,
        labels=labels,
        config_maps=config_maps,
        memory_limit_rejection=evidence.facts.namespace(
            evidence.namespace_name
        ).memory_limit_rejection,
    )
    try:
        inspection = redecide_on_same_fabric(evidence, status, facts, manifest)
    except (ShapeError, RecursionError):
        return None  # no API server has such a pod
    return inspection.verdict if inspection else None


def verdict_without_fabric(evidence: PodEvidence, status: StatusAnnotation) -> Verdict | None:
    """Return the verdict of a pod for which admission found no fabric.

    The nodes count only if the pod itself does not explain that verdict, as its own node since may
    belong to a fabric. None for any other pod, and if the configuration of the admission is not
    known.
    """
    configuration = admission_configuration(evidence, status)
    if status.fabric or configuration is None:
        return None
    for nodes in ({}, evidence.placement_nodes or evidence.facts.nodes):
        decision_input = DecisionInput(
            configuration=configuration,
            namespace=NamespaceFacts(name=evidence.namespace_name),
            fabric_index=build_fabric_index(nodes, configuration),
        )
        inspection = inspect(evidence.pod.manifest, decision_input)
        if inspection and inspection.verdict.because.code == status.verdict_reason:
            return inspection.verdict
    return None


def redecide_on_same_fabric(
    evidence: PodEvidence,
    status: StatusAnnotation,
    facts: NamespaceFacts,
    manifest: Manifest | None = None,
    *,
    configuration: CompiledConfiguration | None = None,
) -> Inspection | None:
    """Decide on a pod anew; None unless it comes out on the fabric of its status again.

    The nodes do not count, so a pod for which they were the evidence may seem to be on another.
    `configuration`: the one to use instead of that of the admission.
    """
    configuration = configuration or admission_configuration(evidence, status)
    decision_input = DecisionInput(
        configuration=configuration or stand_in(Pod(evidence.pod.manifest), status),
        namespace=facts,
        fabric_index=FabricIndex(),
    )
    inspection = inspect(manifest or evidence.pod.manifest, decision_input)
    if inspection is None or inspection.applicability.access is not RdmaAccess.FABRIC:
        return None
    fabric = inspection.analysis.fabric
    return inspection if fabric is not None and fabric.name == status.fabric else None


def _names(status: StatusAnnotation) -> tuple[str, ...]:
    """Return the mutations that were applied; () if the status has only their count."""
    return () if isinstance(status.applied, int) else status.applied


def _undone(
    inspection: Inspection, status: StatusAnnotation, *, configuration_known: bool
) -> Iterator[Change]:
    """Yield the changes since the call that a call now would reverse."""
    names = _names(status)
    for outcome in inspection.outcomes:
        name = outcome.mutation
        if outcome.status != "applied" or not (configuration_known or name in _OF_EVERY_SITE):
            continue
        # Neither applied nor skipped: at admission the pod had the mutation's fields, or for the
        # memory limit no limit at all.
        had = configuration_known and names and _CODES[name].isdisjoint(status.codes)
        if name in names or had:
            yield from _changes(inspection, outcome)


def _changes(inspection: Inspection, outcome: Outcome) -> Iterator[Change]:
    different = field_changes(outcome, inspection.analysis.original.manifest)
    if outcome.mutation == MEMORY_LIMIT.name:  # the request that it adds was not missing before
        different = (change for change in different if change.name.endswith("limits.memory"))
    place = f"container {outcome.container}" if outcome.container else "the pod"
    for field_change in different:
        yield Change(outcome.mutation, f"In {place}, {field_change}")


def _values_changed(inspection: Inspection, status: StatusAnnotation) -> Iterator[Change]:
    for container, change in differing_variables(inspection, status):
        yield Change(ENV.name, f"In container {container}, {change}")


def differing_variables(
    inspection: Inspection, status: StatusAnnotation
) -> Iterator[tuple[str, FieldChange]]:
    """Yield the fabric's variables whose values differ now, and did not at admission.

    Each has the name of its container; `webhook_value` is the fabric's.
    """
    analysis = inspection.analysis
    fabric, user_value_codes = analysis.fabric, {reason.code for reason in USER_VALUE_REASONS}
    if (
        fabric is None
        or ENV.name not in _names(status)
        or not user_value_codes.isdisjoint(status.codes)
    ):
        return
    host_network = analysis.original.host_network
    containers: list[Target | Launcher] = [*analysis.targets, *analysis.launchers]
    for container in containers:
        env = analysis.containers[container.path].env
        own = _own_interfaces(fabric, env, host_network=host_network)
        for name, value in desired_env(fabric, own, host_network=host_network):
            is_of_site = (name, value) in fabric.env.site_variables
            if not is_of_site and env.get(name) not in (None, value):
                yield container.name, FieldChange(f"env {name}", value, f"{env[name]}")


def _own_interfaces(
    fabric: Fabric, env: Mapping[str, str | None], *, host_network: bool
) -> Mapping[str, str | None]:
    """Return the variables with the interfaces that the user chose.

    The status has no code for them, and the fabric's other variables follow them. {} if one has the
    fabric's value: the webhook adds that only to a container without any of these variables.
    """
    of_fabric = dict(desired_env(fabric, {}, host_network=host_network))
    chosen = {name: env[name] for name in SOCKET_VARIABLES if name in env}
    is_of_fabric = any(value == of_fabric.get(name) for name, value in chosen.items())
    return {} if is_of_fabric else chosen


def _worse_verdict(
    inspection: Inspection, status: StatusAnnotation, *, configuration_known: bool
) -> Verdict | None:
    """Return the verdict of the pod as it is, if it is worse and the pod is why."""
    verdict = inspection.verdict
    by_pod = verdict.rdma == "no" or (configuration_known and verdict.because.code in _OF_THE_POD)
    is_worse = _ORDER.index(verdict.rdma) > _ORDER.index(status.rdma)
    return verdict if by_pod and is_worse else None


def _without_trace(name: str) -> Change:
    description = TRACES[name].description
    return Change(name, f"{name} added {description}, but the pod no longer has it")
