"""The state behind the listeners: one immutable snapshot, swapped by assignment, and the checks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from webhook.app.former import Former
from webhook.app.namespace_waits import Arrivals
from webhook.config.load import FabricsText
from webhook.decision.claim_facts import ClaimFacts
from webhook.decision.facts import Facts
from webhook.decision.nodes import Node, NodeInventory
from webhook.decision.scope import Context
from webhook.fabric.records import Fabrics
from webhook.pipeline.status_text import configuration_named_in
from webhook.pod.manifest import PodManifest

_NO_TEXT = FabricsText("")
_NO_TEMPLATES = ClaimFacts(complete=True)


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
    #: What the fabrics were read from, for the worker that computes previews.
    source: FabricsText = _NO_TEXT

    @staticmethod
    def of(
        fabrics: Fabrics, facts: Facts | None = None, source: FabricsText = _NO_TEXT
    ) -> Snapshot:
        """Return a snapshot of fabrics and facts, with the inventory of nodes by fabric."""
        facts = facts or Facts()
        inventory = facts.inventory(fabrics)
        return Snapshot(fabrics=fabrics, facts=facts, inventory=inventory, source=source)

    def knowing(self, facts: Facts, inventory: NodeInventory | None = None) -> Snapshot:
        """Return a copy with other facts; a new inventory is made only if the nodes differ.

        `inventory`: that of the new nodes by these fabrics, if it has been made.
        """
        if facts.nodes is self.facts.nodes:
            return replace(self, facts=facts)
        return replace(self, facts=facts, inventory=inventory or facts.inventory(self.fabrics))


class State:
    """The state of one server; only the event loop's thread writes it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        #: None without a valid configuration that has fabrics.
        self.snapshot: Snapshot | None = None
        #: Why there is none, and what to do, for whoever creates a pod.
        self.lacking = "its configuration has not been read yet"
        self._former = Former[Snapshot](clock)
        #: Those that come into use in a moment, by their hashes.
        self._coming: dict[str, Snapshot] = {}
        #: Requests that wait for a namespace missing in the facts; None if nothing delivers it.
        self.arrivals: Arrivals | None = None
        self._facts = Facts()
        #: The templates of each namespace that has any; None if they are not known, and then the
        #: facts say what is known of them.
        self.templates: Mapping[str, ClaimFacts] | None = None
        self.draining = False
        #: The other checks of `/readyz`: configuration, facts, certificate.
        self.probes: list[Callable[[], Check]] = []

    def expect(self, fabrics: Fabrics) -> None:
        """Know fabrics that come into use in a moment: another replica may use them already."""
        self._coming[fabrics.config_hash] = Snapshot.of(fabrics, self._facts)

    def configure(self, fabrics: Fabrics, source: FabricsText = _NO_TEXT) -> None:
        """Use other fabrics from now on; `source`: what they were read from.

        Those in use so far are kept for a minute, for second calls.
        """
        expected = self._coming.pop(fabrics.config_hash, None)
        made = expected.knowing(self._facts) if expected else Snapshot.of(fabrics, self._facts)
        self._replace(replace(made, fabrics=fabrics, source=source))

    def unconfigure(self) -> None:
        """Use no configuration from now on, but for second calls."""
        self._replace(None)

    def _replace(self, snapshot: Snapshot | None) -> None:
        old, self.snapshot = self.snapshot, snapshot
        if old is not None and (snapshot is None or snapshot.fabrics != old.fabrics):
            self._former.replaced(old)

    def context_for(self, namespace: str, pod: PodManifest) -> Context | None:
        """Return what a decision on a pod depends on; None without a configuration.

        A pod whose status names a configuration that was replaced in the last minute, or that comes
        into use in a moment, is decided with that one.
        """
        used = now = self.snapshot
        named = configuration_named_in(pod)
        if named and (now is None or named != now.fabrics.config_hash):
            used = self._former.get(named) or self._coming.get(named) or now
        if used is None:
            return None
        facts = (now.facts if now else self._facts).namespace(namespace)
        if self.templates is not None:
            facts = replace(facts, claims=self.templates.get(namespace, _NO_TEMPLATES))
        return Context(used.fabrics, facts, used.inventory)

    def learn(self, facts: Facts) -> None:
        """Use other facts from now on."""
        self._facts = facts
        if self.snapshot is not None:
            self.snapshot = self.snapshot.knowing(facts)

    def learn_namespaces(self, facts: Facts) -> None:
        """Use other facts from now on, beside the nodes that are known."""
        self.learn(replace(facts, nodes=self._facts.nodes))

    def learn_nodes(
        self, nodes: Mapping[str, Node], fabrics: Fabrics | None, inventory: NodeInventory | None
    ) -> None:
        """Use other nodes from now on, with their inventory, which was made by these fabrics.

        It is made again if the fabrics are no longer in use.
        """
        self._facts = replace(self._facts, nodes=nodes)
        if self.snapshot is not None:
            made = inventory if self.snapshot.fabrics is fabrics else None
            self.snapshot = self.snapshot.knowing(self._facts, made)

    def checks(self) -> list[Check]:
        """Return the results of all probes, and whether the server is draining."""
        serving = Check("serving", not self.draining, "draining" if self.draining else "ok")
        return [*(probe() for probe in self.probes), serving]
