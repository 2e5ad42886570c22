"""The state machine as tables: snapshot and event → snapshot; snapshot and pod → context."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from tests.builders import H100, V100, pod
from tests.server_state import prepared
from webhook.config.load import FabricsText
from webhook.decide.scope import Context
from webhook.model.claims import ClaimFacts, KnownClaims
from webhook.model.fabric import index
from webhook.model.facts import Facts, NamespaceFacts
from webhook.model.nodes import Node, NodeInventory
from webhook.serve.state import (
    RETENTION,
    ClaimsChanged,
    ConfigurationApplied,
    ConfigurationLearnt,
    ConfigurationMissing,
    Event,
    NamespacesChanged,
    NodesChanged,
    PreparedConfiguration,
    RetiredConfigurations,
    Snapshot,
    State,
    advance,
)

NOW = 100.0
#: The hashes of ONE and TWO, and one of no configuration.
FIRST, SECOND, THIRD = "000000000001", "000000000002", "000000000003"


def on(name: str) -> dict[str, Node]:
    """Make one node with V100s."""
    labels = {"nvidia.com/gpu.product": "Tesla-V100-SXM2"}
    return {name: Node(labels=labels, resources={"nvidia.com/v100": 8})}


OLD, NEW = on("old"), on("new")
ONE = prepared(index((V100,), config_hash=FIRST), OLD)
TWO = prepared(index((V100, H100), config_hash=SECOND), OLD)
ONE_NEW, TWO_NEW = prepared(ONE.fabrics, NEW), prepared(TWO.fabrics, NEW)
#: The same configuration, read from another text.
ONE_AGAIN = replace(ONE, source=FabricsText("# a comment"))
INVENTORIES = {FIRST: ONE_NEW.inventory, SECOND: TWO_NEW.inventory}
LAB = {"lab": NamespaceFacts(name="lab", annotations={"a": "b"})}
IN_LAB = Facts(namespaces=LAB, nodes=OLD, complete=True)
CLAIMS = KnownClaims({"lab": ClaimFacts(claims={"mine": {}})}, ClaimFacts(complete=True), True)
RETIRED_ONE = RetiredConfigurations().adding(ONE, NOW)
RETIRED_TWO = RetiredConfigurations().adding(TWO, NOW)
RETIRED_BEFORE = RetiredConfigurations().adding(ONE, NOW - 1)
#: Makes a snapshot with a current configuration.
using = partial(Snapshot, missing="")


#: What happens → the snapshot before, the event, and the snapshot after it.
TRANSITIONS: dict[str, tuple[Snapshot, Event, Snapshot]] = {
    "a first configuration is learnt": (
        Snapshot(),
        ConfigurationLearnt(ONE),
        Snapshot(upcoming={FIRST: ONE}),
    ),
    "another configuration is learnt": (
        using(current=ONE, upcoming={THIRD: ONE}),
        ConfigurationLearnt(TWO),
        using(current=ONE, upcoming={THIRD: ONE, SECOND: TWO}),
    ),
    "a configuration is learnt again": (
        Snapshot(upcoming={FIRST: ONE}),
        ConfigurationLearnt(ONE_AGAIN),
        Snapshot(upcoming={FIRST: ONE_AGAIN}),
    ),
    "a first configuration is applied": (
        Snapshot(missing="apply one"),
        ConfigurationApplied(ONE),
        using(current=ONE),
    ),
    "another configuration is applied": (
        using(current=ONE),
        ConfigurationApplied(TWO),
        using(current=TWO, retired=RETIRED_ONE),
    ),
    "the current configuration is applied again": (
        using(current=ONE),
        ConfigurationApplied(ONE_AGAIN),
        using(current=ONE_AGAIN),
    ),
    "a retired configuration is applied again": (
        using(current=TWO, retired=RETIRED_BEFORE),
        ConfigurationApplied(ONE_NEW),
        using(current=ONE_NEW, retired=RETIRED_BEFORE.adding(TWO, NOW)),
    ),
    "an upcoming configuration is applied": (
        using(current=TWO, upcoming={FIRST: ONE, THIRD: TWO}),
        ConfigurationApplied(ONE),
        using(current=ONE, upcoming={THIRD: TWO}, retired=RETIRED_TWO),
    ),
    "an upcoming configuration has newer nodes when it is applied": (
        Snapshot(upcoming={FIRST: ONE_NEW}),
        ConfigurationApplied(ONE_AGAIN),
        using(current=replace(ONE_NEW, source=ONE_AGAIN.source)),
    ),
    "the configuration is deleted": (
        using(current=ONE, upcoming={SECOND: TWO}),
        ConfigurationMissing("apply one"),
        Snapshot(missing="apply one", upcoming={SECOND: TWO}, retired=RETIRED_ONE),
    ),
    "the first configuration is not usable": (
        Snapshot(retired=RETIRED_TWO),
        ConfigurationMissing("correct it"),
        Snapshot(missing="correct it", retired=RETIRED_TWO),
    ),
    "namespaces change": (
        using(current=ONE, upcoming={SECOND: TWO}, facts=Facts(nodes=OLD), retired=RETIRED_TWO),
        NamespacesChanged(replace(IN_LAB, nodes=NEW)),
        using(current=ONE, upcoming={SECOND: TWO}, facts=IN_LAB, retired=RETIRED_TWO),
    ),
    "nodes come before a configuration": (
        Snapshot(facts=Facts(namespaces=LAB)),
        NodesChanged(NEW, {}),
        Snapshot(facts=Facts(namespaces=LAB, nodes=NEW)),
    ),
    "nodes change for the current and the upcoming configurations": (
        using(current=ONE, upcoming={SECOND: TWO}, facts=IN_LAB),
        NodesChanged(NEW, INVENTORIES),
        using(current=ONE_NEW, upcoming={SECOND: TWO_NEW}, facts=replace(IN_LAB, nodes=NEW)),
    ),
    "nodes change, with no inventory by the current configuration": (
        using(current=ONE, upcoming={SECOND: TWO}),
        NodesChanged(NEW, {SECOND: TWO_NEW.inventory}),
        using(current=ONE, upcoming={SECOND: TWO_NEW}, facts=Facts(nodes=NEW)),
    ),
    "nodes change, with no inventory by the upcoming configuration": (
        using(current=ONE, upcoming={SECOND: TWO}),
        NodesChanged(NEW, {FIRST: ONE_NEW.inventory}),
        using(current=ONE_NEW, upcoming={SECOND: TWO}, facts=Facts(nodes=NEW)),
    ),
    "nodes change after a configuration retired": (
        using(current=TWO, retired=RETIRED_ONE),
        NodesChanged(NEW, INVENTORIES),
        using(current=TWO_NEW, retired=RETIRED_ONE, facts=Facts(nodes=NEW)),
    ),
    "the last node goes": (
        using(current=ONE, facts=Facts(nodes=OLD)),
        NodesChanged({}, {FIRST: NodeInventory()}),
        using(current=replace(ONE, nodes={}, inventory=NodeInventory())),
    ),
    "claims change": (using(current=ONE), ClaimsChanged(CLAIMS), using(current=ONE, claims=CLAIMS)),
    "claims are no longer watched": (
        using(current=ONE, claims=CLAIMS),
        ClaimsChanged(None),
        using(current=ONE),
    ),
}


@pytest.mark.parametrize(("before", "event", "after"), TRANSITIONS.values(), ids=TRANSITIONS)
def test_an_event_makes_of_a_snapshot_another_one(
    before: Snapshot, event: Event, after: Snapshot
) -> None:
    """Nothing else changes, nor does the snapshot before: requests may be decided with it."""
    as_it_was = repr(before)
    assert advance(before, event, NOW) == after
    assert repr(before) == as_it_was


def second_call(config: str) -> dict[str, object]:
    """Make a pod whose first call was decided with this configuration."""
    status = f'{{"rdma":"yes","because":"Equipped","fabric":null,"applied":[],"config":"{config}"}}'
    return pod(annotations={"rdma.lab/status": status})


NOTHING_IN_USE = Snapshot(retired=RETIRED_ONE, upcoming={SECOND: TWO})
#: A snapshot, the configuration of the first call ("": this is the first call), the time of this
#: call → the configuration that decides.
CHOICES: dict[str, tuple[Snapshot, str, float, PreparedConfiguration | None]] = {
    "a first call": (using(current=ONE), "", NOW, ONE),
    "a first call, nothing in use": (NOTHING_IN_USE, "", NOW, None),
    "the current one": (using(current=ONE, upcoming={SECOND: TWO}), FIRST, NOW, ONE),
    "an upcoming one": (using(current=ONE, upcoming={SECOND: TWO}), SECOND, NOW, TWO),
    "an upcoming one, nothing in use": (NOTHING_IN_USE, SECOND, NOW, TWO),
    "a retired one": (using(current=TWO_NEW, retired=RETIRED_ONE), FIRST, NOW + RETENTION, ONE),
    "a retired one, nothing in use": (NOTHING_IN_USE, FIRST, NOW + RETENTION, ONE),
    "one that retired long ago": (
        using(current=TWO, retired=RETIRED_ONE),
        FIRST,
        NOW + RETENTION + 0.1,
        TWO,
    ),
    "one that retired long ago, nothing in use": (
        NOTHING_IN_USE,
        FIRST,
        NOW + RETENTION + 0.1,
        None,
    ),
    "one that retired and is current again": (
        using(current=ONE_NEW, retired=RETIRED_ONE),
        FIRST,
        NOW,
        ONE_NEW,
    ),
    "one that retired and is upcoming again": (
        using(current=TWO, retired=RETIRED_ONE, upcoming={FIRST: ONE_NEW}),
        FIRST,
        NOW,
        ONE,
    ),
    "one that nobody knows": (using(current=ONE, upcoming={SECOND: TWO}), THIRD, NOW, ONE),
    "one that nobody knows, nothing in use": (NOTHING_IN_USE, THIRD, NOW, None),
}


@pytest.mark.parametrize(("snapshot", "first", "now", "expected"), CHOICES.values(), ids=CHOICES)
def test_a_pod_is_decided_with_the_configuration_of_its_first_call(
    snapshot: Snapshot, first: str, now: float, expected: PreparedConfiguration | None
) -> None:
    """With its fabrics and its inventory of nodes; with the current one if it is not known."""
    context = snapshot.context_for("lab", second_call(first) if first else pod(), now)
    if expected is None:
        assert context is None
    else:
        assert context == Context(expected.fabrics, Facts().namespace("lab"), expected.inventory)


def test_a_second_call_is_decided_with_the_nodes_of_its_first_call() -> None:
    """Also if nodes and configuration have changed since, and changed again afterwards."""
    snapshot = using(current=ONE, facts=Facts(nodes=OLD))
    for event in (
        ConfigurationLearnt(TWO),
        ConfigurationApplied(TWO),
        NodesChanged(NEW, INVENTORIES),
        ConfigurationMissing("apply one"),
    ):
        snapshot = advance(snapshot, event, NOW)
        context = snapshot.context_for("lab", second_call(FIRST), NOW)
        assert context is not None
        assert context.fabrics is ONE.fabrics
        assert list(context.inventory.by_node) == ["old"], event


@pytest.mark.parametrize(
    "snapshot",
    [
        using(current=ONE, facts=Facts(namespaces=LAB)),
        using(current=TWO, retired=RETIRED_ONE, facts=Facts(namespaces=LAB)),
        replace(NOTHING_IN_USE, facts=Facts(namespaces=LAB)),
    ],
    ids=["current", "retired", "nothing in use"],
)
@pytest.mark.parametrize("claims", [None, CLAIMS], ids=["no claims", "claims"])
def test_any_call_sees_today_s_namespaces_and_claims(
    snapshot: Snapshot, claims: KnownClaims | None
) -> None:
    """Only fabrics and nodes are those of the first call."""
    snapshot = replace(snapshot, claims=claims)
    lab = snapshot.context_for("lab", second_call(FIRST), NOW)
    assert lab is not None
    expected = ClaimFacts(claims={"mine": {}}) if claims else ClaimFacts()
    assert lab.namespace == replace(LAB["lab"], claims=expected)
    other = snapshot.context_for("other", second_call(FIRST), NOW)
    assert other is not None
    assert other.namespace.claims == ClaimFacts(complete=claims is not None)


def test_the_configurations_that_keep_up_with_nodes() -> None:
    """The current and the upcoming ones; a retired one keeps its nodes."""
    assert Snapshot().live == []
    assert using(current=ONE, retired=RETIRED_TWO).live == [ONE]
    assert Snapshot(upcoming={SECOND: TWO}, retired=RETIRED_ONE).live == [TWO]
    assert using(current=ONE, upcoming={SECOND: TWO}).live == [ONE, TWO]


def test_a_state_changes_by_events_at_the_time_of_its_clock() -> None:
    """It starts with nothing; the clock counts both when a configuration retires and is used."""
    times = [NOW]
    state = State(lambda: times[-1])
    assert state.snapshot == Snapshot()
    state.send(ConfigurationApplied(ONE))
    times.append(NOW + 1)
    state.send(ConfigurationApplied(TWO))
    retired = RetiredConfigurations().adding(ONE, NOW + 1)
    assert state.snapshot == using(current=TWO, retired=retired)
    chosen = []
    for now in (NOW + 1 + RETENTION, NOW + 1.1 + RETENTION):
        times.append(now)
        context = state.context_for("lab", second_call(FIRST))
        assert context is not None
        chosen.append(context.fabrics)
    assert chosen == [ONE.fabrics, TWO.fabrics]
