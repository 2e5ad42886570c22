"""The state behind the listeners: one immutable snapshot, swapped by assignment, and the checks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from webhook.app.former import Former
from webhook.app.namespace_waits import Arrivals
from webhook.config.load import FabricsText
from webhook.decision.claim_facts import KnownClaims
from webhook.decision.facts import Facts
from webhook.decision.nodes import Node, NodeInventory
from webhook.decision.scope import Context
from webhook.fabric.records import Fabrics
from webhook.pipeline.status_text import configuration_named_in
from webhook.pod.manifest import PodManifest

_NO_TEXT = FabricsText("")
#: Inventories of the same nodes, each with the fabrics by which it was made.
Inventories = Sequence[tuple[Fabrics, NodeInventory]]


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
    #: That of the nodes of `facts`, by `fabrics`: the three are replaced together.
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

    def knowing(self, facts: Facts) -> Snapshot:
        """Return a copy with other facts, but with the same nodes, of which the inventory is."""
        return replace(self, facts=replace(facts, nodes=self.facts.nodes))

    def with_nodes(self, nodes: Mapping[str, Node], made: Inventories) -> Snapshot:
        """Return a copy with other nodes, if an inventory of them was made by these fabrics."""
        for fabrics, inventory in made:
            if fabrics is self.fabrics:
                return replace(self, facts=replace(self.facts, nodes=nodes), inventory=inventory)
        return self


class State:
    """The state of one server; only the event loop's thread writes it.

    An inventory of 10,000 nodes takes some 50 ms to make, so nothing here makes one but `prepare`,
    which may be called in any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        #: None without a valid configuration that has fabrics.
        self.snapshot: Snapshot | None = None
        #: Why there is none, and what to do, for whoever creates a pod.
        self.lacking = "its configuration has not been read yet"
        self._former = Former[Snapshot](clock)
        #: Those that come into use in a moment, by their hashes; replaced, since threads read it.
        self._coming: Mapping[str, Snapshot] = {}
        #: Requests that wait for a namespace missing in the facts; None if nothing delivers it.
        self.arrivals: Arrivals | None = None
        self._facts = Facts()
        #: The ResourceClaimTemplates and ResourceClaims; None if they are not known, and then the
        #: facts say what is known of them.
        self.claims: KnownClaims | None = None
        self.draining = False
        #: The other checks of `/readyz`: configuration, facts, certificate.
        self.probes: list[Callable[[], Check]] = []

    def prepare(self, fabrics: Fabrics, source: FabricsText = _NO_TEXT) -> Snapshot:
        """Return what decisions by these fabrics depend on; `source`: what they were read from."""
        return Snapshot.of(fabrics, self._facts, source)

    def expect(self, prepared: Snapshot) -> None:
        """Know fabrics that come into use in a moment: another replica may use them already."""
        self._coming = {**self._coming, prepared.fabrics.config_hash: prepared}

    def configure(self, prepared: Snapshot) -> None:
        """Use other fabrics from now on, with what is known of namespaces now.

        Those in use so far are kept for a minute, for second calls.
        """
        fabrics, source = prepared.fabrics, prepared.source
        coming = dict(self._coming)
        made = coming.pop(fabrics.config_hash, prepared)  # its nodes may be newer
        self._coming = coming
        self._replace(replace(made.knowing(self._facts), fabrics=fabrics, source=source))

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
        if self.claims is not None:
            facts = replace(facts, claims=self.claims.of(namespace))
        return Context(used.fabrics, facts, used.inventory)

    @property
    def uses_claims(self) -> bool:
        """Whether a fabric, in use or about to be, has NICs that come by claim."""
        known = (self.snapshot, *self._coming.values())
        return any(one is not None and bool(one.fabrics.by_template) for one in known)

    def learn(self, facts: Facts) -> None:
        """Use other facts from now on; other nodes only by configurations that follow."""
        self._facts = facts
        if self.snapshot is not None:
            self.snapshot = self.snapshot.knowing(facts)

    def learn_namespaces(self, facts: Facts) -> None:
        """Use other facts from now on, beside the nodes that are known."""
        self.learn(replace(facts, nodes=self._facts.nodes))

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes that were learnt last."""
        return self._facts.nodes

    def without(self, nodes: Mapping[str, Node]) -> list[Fabrics]:
        """Return the fabrics, in use or about to be, that have no inventory of these nodes.

        Any thread may ask.
        """
        known = (self.snapshot, *self._coming.values())
        return [one.fabrics for one in known if one and one.facts.nodes is not nodes]

    def learn_nodes(self, nodes: Mapping[str, Node], made: Inventories) -> None:
        """Use other nodes from now on, where an inventory of them was made by the same fabrics."""
        self._facts = replace(self._facts, nodes=nodes)
        self._coming = {key: one.with_nodes(nodes, made) for key, one in self._coming.items()}
        if self.snapshot is not None:
            self.snapshot = self.snapshot.with_nodes(nodes, made)

    def checks(self) -> list[Check]:
        """Return the results of all probes, and whether the server is draining."""
        serving = Check("serving", not self.draining, "draining" if self.draining else "ok")
        return [*(probe() for probe in self.probes), serving]
