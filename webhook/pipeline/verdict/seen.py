"""What the parts of the verdict look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.decision.draft import Draft
from webhook.decision.facts import NodeInventory
from webhook.decision.outcome import Outcome
from webhook.decision.scope import Scope, Target
from webhook.fabric.records import Fabric
from webhook.pipeline.examine import Examined, Standing
from webhook.pipeline.surroundings import Surroundings
from webhook.pod.manifest import PodManifest, flag, mapping


class Seen(NamedTuple):
    """The pod after the patch, and the facts of its decision."""

    pod: PodManifest
    scope: Scope
    standing: Standing
    outcomes: tuple[Outcome, ...]
    inventory: NodeInventory
    around: Surroundings
    #: Whether any container has a GPU, or a device that may be one.
    has_gpu: bool

    @classmethod
    def of(cls, draft: Draft, examined: Examined, around: Surroundings) -> Seen:
        """Return what is seen of a pod after all mutations."""
        scope, standing, inventory = examined.scope, examined.standing, examined.inventory
        has_gpu = any(one.gpus or one.shared_gpu for one in scope.targets) or scope.has_gpu
        outcomes = tuple(draft.outcomes)
        return cls(draft.pod, scope, standing, outcomes, inventory, around, has_gpu)

    @property
    def fabric(self) -> Fabric | None:
        """The fabric whose NIC the pod uses; None if it is unknown, or the NIC is another."""
        return None if self.standing.foreign else self.scope.fabric

    @property
    def annotations(self) -> Mapping[str, Any]:
        """The pod's annotations after the patch."""
        return mapping(self.pod, ("metadata", "annotations"))

    def privileged(self, target: Target) -> bool:
        """Return whether a target sees all devices of the node."""
        return flag(self.pod, (*target.path, "securityContext", "privileged"))
