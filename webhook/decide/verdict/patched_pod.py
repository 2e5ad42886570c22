"""The pod and the targets after the patch, as the parts of the verdict judge them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.decide.admission_warnings import PodHazards
from webhook.decide.analysis import PodAnalysis, Target
from webhook.decide.draft import Draft
from webhook.decide.examine import Applicability, Examination
from webhook.decide.settings.effective import effective_env, settings_in_effect, uncertain
from webhook.decide.settings.library_files import with_library_files
from webhook.decide.settings.ranks import overridden_by
from webhook.decide.settings.setting import (
    NO_SETTINGS,
    CommandSettings,
    Setting,
    with_possible,
)
from webhook.model.claims import (
    Claim,
    ClaimFacts,
    claims_by_container,
    claims_of,
    has_nic_of,
)
from webhook.model.config_maps import ReadEnv
from webhook.model.decision import Outcome, Reason, Verdict
from webhook.model.fabric import Fabric, Transport
from webhook.model.nodes import FabricIndex
from webhook.model.pod import Container, Path, Pod
from webhook.model.traffic_libraries import TrafficLibrary

#: The claims of each container by its path, and the claims of no container under ().
Claims = Mapping[Path, Sequence[Claim]]
_NO_CLAIMS: Claims = {}


class PatchedTarget(NamedTuple):
    """A target after the patch."""

    target: Target
    #: The container after the patch, and as the user wrote it.
    container: Container
    original: Container
    #: The user's variables, with those of known ConfigMaps.
    declared_env: ReadEnv
    #: The same as the command changes them.
    effective_env: Mapping[str, str | None]
    #: The words of its command as the program gets them, and the text of scripts in ConfigMaps.
    command: str
    #: The DRA claims that it uses after the patch.
    claims: tuple[Claim, ...] = ()
    #: The settings that its command makes.
    settings: CommandSettings = NO_SETTINGS
    #: The libraries that move its data between nodes, as `libraries.usage` finds them.
    carriers: tuple[TrafficLibrary, ...] = ()
    #: Whether MPI starts its program, and may move the data in place of NCCL.
    may_use_mpi: bool = False

    @classmethod
    def of(
        cls, target: Target, pod: Pod, analysis: PodAnalysis, claims: Claims = _NO_CLAIMS
    ) -> PatchedTarget:
        """Return the view of a target in `pod`, the pod after all mutations."""
        path, reader = target.path, analysis.settings_reader
        settings = _settings(analysis, path)
        container, declared_env = pod.container(path), reader.env(path)
        changed_user = settings.user
        is_changed = changed_user is not None and changed_user.certain
        user = "other" if is_changed else pod.user_of(container)
        patched = cls(
            target=target if target.user == user else target._replace(user=user),
            container=container,
            original=analysis.containers[path],
            declared_env=declared_env,
            effective_env=declared_env.variables,
            command=reader.text_with_files(path),
            claims=tuple(claims.get(path, ())),
            settings=settings,
        )
        if not settings.changes_env:
            return patched
        env = effective_env(declared_env.variables, settings, present=patched.present)
        return patched._replace(effective_env=env)

    @property
    def present(self) -> Mapping[str, str | None]:
        """The variables after the patch, before the command.

        A default in the command (`${NAME:-1}`) applies to none of these.
        """
        env = self.container.env
        return {**self.declared_env.variables, **env} if self.original.env_from else env

    def origin(self, name: str) -> str:
        """Return what sets a variable of `effective_env`: "env", "export in its command", ...

        Where `env` has no literal, it is such as "$(NAME) in env", or the key of a ConfigMap.
        """
        setting = self._setting(name)
        if setting is not None:
            return setting.source
        key = self.declared_env.keys.get(name)
        return (key.title if key else self.original.derivation(name)) or "env"

    def verdict(self, because: Reason, message: str, name: str) -> Verdict:
        """Return the verdict on a variable of `effective_env`, with the key that has its value."""
        setting, verdict = self._setting(name), Verdict.of(because, message)
        if setting is None:
            return verdict.with_key(self.declared_env.keys.get(name))
        return verdict.with_key(setting.key, overrides_env=not setting.yields_to_env)

    def is_set_by_command(self, name: str) -> bool:
        """Return whether a command, or a file that it reads, sets a variable of `effective_env`."""
        return self._setting(name) is not None

    def _setting(self, name: str) -> Setting | None:
        if not self.settings.certain:
            return None
        settings = settings_in_effect(self.settings, present=self.present)
        return next((setting for setting in settings if setting.name == name), None)

    def origin_suffix(self, name: str) -> str:
        """Return what sets a variable, in parentheses after a space; "" for env."""
        origin = self.origin(name)
        return "" if origin == "env" else f" ({origin})"

    def removal(self, name: str) -> str:
        """Return how to unset a variable, as the end of a message that names it and its origin."""
        return "remove the variable" if self.origin(name) == "env" else "remove that setting"

    def uncertain_settings(self) -> Iterator[Setting]:
        """Yield the settings of its command that may keep a library off RDMA."""
        if self.settings.certain or self.settings.possible:
            yield from uncertain(self.settings, present=self.present)


class UnusedClaims(NamedTuple):
    """The pod's DRA claims that no container uses, and which all of them share."""

    templates: frozenset[str] = frozenset()
    #: Whether one of them is a NIC of the fabric.
    has_nic: bool = False

    @classmethod
    def of(cls, claims: Sequence[Claim], fabric: Fabric | None, facts: ClaimFacts) -> UnusedClaims:
        """Look at each of the claims once; there may be thousands."""
        if not claims or fabric is None:
            return cls()
        templates = frozenset([claim.template for claim in claims])
        return cls(templates, any(has_nic_of(claim, fabric, facts) for claim in claims))


class PatchedPod(NamedTuple):
    """The pod after the patch, and the facts of its decision."""

    view: Pod
    analysis: PodAnalysis
    applicability: Applicability
    #: The fabric whose NIC the pod uses; None if it is unknown, or the NIC is foreign.
    used_fabric: Fabric | None
    #: The targets that the verdict depends on.
    decisive_targets: tuple[PatchedTarget, ...]
    unused_claims: UnusedClaims
    outcomes: tuple[Outcome, ...]
    fabric_index: FabricIndex
    #: Istio's proxy, and hostPath volumes with RDMA devices.
    hazards: PodHazards
    #: Whether any container has a GPU, or a device that may be one.
    has_gpu: bool

    @property
    def transport(self) -> Transport:
        """How NCCL reaches the devices of the pod's fabric; `verbs` without a fabric."""
        return self.used_fabric.transport if self.used_fabric is not None else "verbs"

    @classmethod
    def of(cls, draft: Draft, examination: Examination, hazards: PodHazards) -> PatchedPod:
        """Return the view of a pod after all mutations."""
        analysis, applicability = examination.analysis, examination.applicability
        view = draft.view
        claims = _claims(view, analysis)
        used_fabric = None if applicability.uses_foreign_nic else analysis.fabric
        return cls(
            view=view,
            analysis=analysis,
            applicability=applicability,
            used_fabric=used_fabric,
            decisive_targets=tuple(
                [
                    PatchedTarget.of(target, view, analysis, claims)
                    for target in decisive_targets(analysis)
                ]
            ),
            unused_claims=UnusedClaims.of(
                claims.get((), ()), used_fabric, analysis.namespace.claim_facts
            ),
            outcomes=tuple(draft.outcomes),
            fabric_index=examination.fabric_index,
            hazards=hazards,
            has_gpu=any(target.gpus or target.partial_gpu for target in analysis.targets)
            or analysis.has_gpu,
        )


def _settings(analysis: PodAnalysis, path: Path) -> CommandSettings:
    """Return what the command of a container, its hooks, its workload and its files set."""
    reader, original = analysis.settings_reader, analysis.containers[path]
    by_command = with_possible(reader.settings_with_files(path), reader.written_by_hooks(path))
    settings = overridden_by(by_command, analysis.workload_settings)
    return with_library_files(settings, analysis.original, original, analysis.namespace.config_maps)


def _claims(pod: Pod, analysis: PodAnalysis) -> Claims:
    if "resourceClaims" not in pod.spec:
        return _NO_CLAIMS
    if analysis.fabric is None or not analysis.fabric.claim_templates:  # then no mutation adds one
        return claims_by_container(analysis.claims)
    return claims_by_container(claims_of(pod, analysis.namespace.claim_facts))


def decisive_targets(analysis: PodAnalysis) -> Sequence[Target]:
    """Return the targets that the verdict is about.

    Init containers and sidecars, which get no device, are left out unless nothing else is left.
    """
    return [target for target in analysis.targets if target.kind == "app"] or analysis.targets
