"""The state behind the listeners: one immutable snapshot, swapped by assignment, and the checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from webhook.app.namespace_waits import Arrivals
from webhook.decision.facts import Facts, NodeInventory
from webhook.decision.scope import Context
from webhook.fabric.records import Fabrics


class Check(NamedTuple):
    """One line of `/readyz`."""

    name: str
    #: False if the server must not get requests.
    ready: bool
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that decisions depend on besides the pod."""

    fabrics: Fabrics
    facts: Facts
    inventory: NodeInventory
    #: The text that the fabrics were read from, for the worker that computes previews.
    source: str = ""

    @staticmethod
    def of(fabrics: Fabrics, facts: Facts | None = None, source: str = "") -> Snapshot:
        """Return a snapshot of fabrics and facts, with the inventory of nodes by fabric."""
        facts = facts or Facts()
        inventory = facts.inventory(fabrics)
        return Snapshot(fabrics=fabrics, facts=facts, inventory=inventory, source=source)

    def knowing(self, facts: Facts) -> Snapshot:
        """Return a copy with other facts; a new inventory is made only if the nodes differ."""
        if facts.nodes is not self.facts.nodes:
            return Snapshot.of(self.fabrics, facts, self.source)
        return replace(self, facts=facts)

    def context_for(self, namespace: str) -> Context:
        """Return what a decision on a pod of this namespace depends on."""
        return Context(
            fabrics=self.fabrics,
            namespace=self.facts.namespace(namespace),
            inventory=self.inventory,
        )


class State:
    """The state of one server; only the event loop's thread writes it."""

    def __init__(self) -> None:
        #: None until the first valid configuration.
        self.snapshot: Snapshot | None = None
        #: Requests that wait for a namespace missing in the facts; None if nothing delivers it.
        self.arrivals: Arrivals | None = None
        self._facts = Facts()
        self.draining = False
        #: The other checks of `/readyz`: configuration, facts, certificate.
        self.probes: list[Callable[[], Check]] = []

    def configure(self, fabrics: Fabrics, source: str = "") -> None:
        """Use other fabrics from now on; `source`: the text that they were read from."""
        self.snapshot = Snapshot.of(fabrics, self._facts, source)

    def learn(self, facts: Facts) -> None:
        """Use other facts from now on."""
        self._facts = facts
        if self.snapshot is not None:
            self.snapshot = self.snapshot.knowing(facts)

    def checks(self) -> list[Check]:
        """Return the results of all probes, and whether the server is draining."""
        serving = Check("serving", not self.draining, "draining" if self.draining else "ok")
        return [*(probe() for probe in self.probes), serving]
