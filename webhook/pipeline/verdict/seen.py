"""What the parts of the verdict look at."""

from __future__ import annotations

from typing import NamedTuple

from webhook.decision.draft import Draft
from webhook.decision.facts import NodeInventory
from webhook.decision.outcome import Outcome
from webhook.decision.scope import Scope, Target
from webhook.fabric.records import Fabric
from webhook.pipeline.examine import Examined, Standing
from webhook.pipeline.surroundings import Surroundings
from webhook.pod.manifest import PodManifest, flag


class Seen(NamedTuple):
    """The pod after the patch, and the facts of its decision."""

    pod: PodManifest
    scope: Scope
    standing: Standing
    outcomes: tuple[Outcome, ...]
    inventory: NodeInventory
    around: Surroundings

    @classmethod
    def of(cls, draft: Draft, examined: Examined, around: Surroundings) -> Seen:
        """Return what is seen of a pod after all mutations."""
        scope, standing, inventory = examined.scope, examined.standing, examined.inventory
        return cls(draft.pod, scope, standing, tuple(draft.outcomes), inventory, around)

    @property
    def fabric(self) -> Fabric | None:
        """The fabric whose NIC the pod uses; None if it is unknown, or the NIC is another."""
        return None if self.standing.foreign else self.scope.fabric

    def privileged(self, target: Target) -> bool:
        """Return whether a target sees all devices of the node."""
        return flag(self.pod, (*target.path, "securityContext", "privileged"))
