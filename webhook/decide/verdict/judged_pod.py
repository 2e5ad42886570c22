"""What the parts of the verdict look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from webhook.decide.admission_warnings import Surroundings
from webhook.decide.draft import Draft
from webhook.decide.examine import Examined, FabricKnowledge
from webhook.decide.scope import Scope, Target
from webhook.model.claims import Claim, claims_by_user, claims_of
from webhook.model.decision import Outcome
from webhook.model.fabric import Fabric
from webhook.model.nodes import NodeInventory
from webhook.model.pod import Container, Path, Pod

#: The claims of each container by its path, and under () those that none uses.
Claims = Mapping[Path, Sequence[Claim]]
_NO_CLAIMS: Claims = {}


class JudgedTarget(NamedTuple):
    """A target after the patch."""

    target: Target
    #: The container after the patch.
    container: Container
    #: Its `env` and the words of its command, as the user wrote them.
    own: Mapping[str, str | None]
    command: str
    #: Its DRA claims after the patch, with those of the pod that no container uses.
    claims: tuple[Claim, ...] = ()

    @classmethod
    def of(
        cls, target: Target, pod: Pod, scope: Scope, claims: Claims = _NO_CLAIMS
    ) -> JudgedTarget:
        """Return what is seen of a target in the pod after all mutations."""
        path, original = target.path, scope.containers[target.path]
        own = (*claims.get(path, ()), *claims.get((), ())) if claims else ()
        return cls(target, pod.container(path), original.env, original.command_text, own)


class JudgedPod(NamedTuple):
    """The pod after the patch, and the facts of its decision."""

    pod: Pod
    scope: Scope
    standing: FabricKnowledge
    #: The fabric whose NIC the pod uses; None if it is unknown, or the NIC is another.
    fabric: Fabric | None
    #: The targets that are judged.
    targets: tuple[JudgedTarget, ...]
    outcomes: tuple[Outcome, ...]
    inventory: NodeInventory
    around: Surroundings
    #: Whether any container has a GPU, or a device that may be one.
    has_gpu: bool

    @classmethod
    def of(cls, draft: Draft, examined: Examined, around: Surroundings) -> JudgedPod:
        """Return what is seen of a pod after all mutations."""
        scope, standing = examined.scope, examined.standing
        pod = draft.view
        claims = _claims(pod, scope)
        return cls(
            pod=pod,
            scope=scope,
            standing=standing,
            fabric=None if standing.foreign else scope.fabric,
            targets=tuple([JudgedTarget.of(one, pod, scope, claims) for one in _judged(scope)]),
            outcomes=tuple(draft.outcomes),
            inventory=examined.inventory,
            around=around,
            has_gpu=any(one.gpus or one.shared_gpu for one in scope.targets) or scope.has_gpu,
        )


def _claims(pod: Pod, scope: Scope) -> Claims:
    if "resourceClaims" not in pod.spec:
        return _NO_CLAIMS
    if scope.fabric is None or not scope.fabric.claims:  # then no mutation adds one
        return claims_by_user(scope.claims)
    return claims_by_user(claims_of(pod, scope.namespace.claims))


def _judged(scope: Scope) -> Sequence[Target]:
    """Leave out init containers and sidecars, which get no device; but judge at least one."""
    return [target for target in scope.targets if target.kind == "app"] or scope.targets
