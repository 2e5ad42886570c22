"""The state machine as tables: snapshot and event → snapshot; snapshot and pod → decision input."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from tests.builders import H100, V100, pod
from tests.server_state import prepared
from webhook.config.load import FabricsText
from webhook.decide.analysis import DecisionInput
from webhook.model.claims import ClaimFacts, KnownClaims
from webhook.model.fabric import build_configuration
from webhook.model.facts import Facts, NamespaceFacts
from webhook.model.nodes import FabricIndex, Node
from webhook.serve.state import (
    RETENTION,
    ClaimsChanged,
    ConfigurationApplied,
    ConfigurationLearned,
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
#: The hashes of SMALL and LARGE, and of no configuration.
FIRST, SECOND, THIRD = "000000000001", "000000000002", "000000000003"


def on(name: str) -> dict[str, Node]:
    """Make one node with V100s."""
    labels = {"nvidia.com/gpu.product": "Tesla-V100-SXM2"}
    return {name: Node(labels=labels, resources={"nvidia.com/v100": 8})}


OLD, NEW = on("old"), on("new")
SMALL = prepared(build_configuration((V100,), config_hash=FIRST), OLD)
LARGE = prepared(build_configuration((V100, H100), config_hash=SECOND), OLD)
SMALL_NEW, LARGE_NEW = prepared(SMALL.compiled, NEW), prepared(LARGE.compiled, NEW)
#: The same configuration, read from another text.
SMALL_REREAD = replace(SMALL, fabrics_text=FabricsText("# a comment"))
FABRIC_INDEXES = {FIRST: SMALL_NEW.fabric_index, SECOND: LARGE_NEW.fabric_index}
LAB = {"lab": NamespaceFacts(name="lab", annotations={"a": "b"})}
IN_LAB = Facts(namespaces=LAB, nodes=OLD, unlisted_is_unknown=True)
CLAIMS = KnownClaims(
    {"lab": ClaimFacts(claims={"mine": {}})}, ClaimFacts(has_all_templates=True), True
)
RETIRED_SMALL = RetiredConfigurations().retire(SMALL, NOW)
RETIRED_LARGE = RetiredConfigurations().retire(LARGE, NOW)
RETIRED_BEFORE = RetiredConfigurations().retire(SMALL, NOW - 1)
#: Makes a snapshot with a current configuration.
using = partial(Snapshot, reason_without_fabrics="")


#: Title → the snapshot before, the event, and the snapshot after it.
TRANSITIONS: dict[str, tuple[Snapshot, Event, Snapshot]] = {
    "a first configuration is learned": (
        Snapshot(),
        ConfigurationLearned(SMALL),
        Snapshot(upcoming={FIRST: SMALL}),
    ),
    "another configuration is learned": (
        using(current_configuration=SMALL, upcoming={THIRD: SMALL}),
        ConfigurationLearned(LARGE),
        using(current_configuration=SMALL, upcoming={THIRD: SMALL, SECOND: LARGE}),
    ),
    "a configuration is learned again": (
        Snapshot(upcoming={FIRST: SMALL}),
        ConfigurationLearned(SMALL_REREAD),
        Snapshot(upcoming={FIRST: SMALL_REREAD}),
    ),
    "a first configuration is applied": (
        Snapshot(reason_without_fabrics="apply one"),
        ConfigurationApplied(SMALL),
        using(current_configuration=SMALL),
    ),
    "another configuration is applied": (
        using(current_configuration=SMALL),
        ConfigurationApplied(LARGE),
        using(current_configuration=LARGE, retired_configurations=RETIRED_SMALL),
    ),
    "the current configuration is applied again": (
        using(current_configuration=SMALL),
        ConfigurationApplied(SMALL_REREAD),
        using(current_configuration=SMALL_REREAD),
    ),
    "a retired configuration is applied again": (
        using(current_configuration=LARGE, retired_configurations=RETIRED_BEFORE),
        ConfigurationApplied(SMALL_NEW),
        using(
            current_configuration=SMALL_NEW,
            retired_configurations=RETIRED_BEFORE.retire(LARGE, NOW),
        ),
    ),
    "an upcoming configuration is applied": (
        using(current_configuration=LARGE, upcoming={FIRST: SMALL, THIRD: LARGE}),
        ConfigurationApplied(SMALL),
        using(
            current_configuration=SMALL,
            upcoming={THIRD: LARGE},
            retired_configurations=RETIRED_LARGE,
        ),
    ),
    "an upcoming configuration has newer nodes when it is applied": (
        Snapshot(upcoming={FIRST: SMALL_NEW}),
        ConfigurationApplied(SMALL_REREAD),
        using(current_configuration=replace(SMALL_NEW, fabrics_text=SMALL_REREAD.fabrics_text)),
    ),
    "the configuration is deleted": (
        using(current_configuration=SMALL, upcoming={SECOND: LARGE}),
        ConfigurationMissing("apply one"),
        Snapshot(
            reason_without_fabrics="apply one",
            upcoming={SECOND: LARGE},
            retired_configurations=RETIRED_SMALL,
        ),
    ),
    "the first configuration is not usable": (
        Snapshot(retired_configurations=RETIRED_LARGE),
        ConfigurationMissing("correct it"),
        Snapshot(reason_without_fabrics="correct it", retired_configurations=RETIRED_LARGE),
    ),
    "namespaces change": (
        using(
            current_configuration=SMALL,
            upcoming={SECOND: LARGE},
            facts=Facts(nodes=OLD),
            retired_configurations=RETIRED_LARGE,
        ),
        NamespacesChanged(replace(IN_LAB, nodes=NEW)),
        using(
            current_configuration=SMALL,
            upcoming={SECOND: LARGE},
            facts=IN_LAB,
            retired_configurations=RETIRED_LARGE,
        ),
    ),
    "nodes come before a configuration": (
        Snapshot(facts=Facts(namespaces=LAB)),
        NodesChanged(NEW, {}),
        Snapshot(facts=Facts(namespaces=LAB, nodes=NEW)),
    ),
    "nodes change for the current and the upcoming configurations": (
        using(current_configuration=SMALL, upcoming={SECOND: LARGE}, facts=IN_LAB),
        NodesChanged(NEW, FABRIC_INDEXES),
        using(
            current_configuration=SMALL_NEW,
            upcoming={SECOND: LARGE_NEW},
            facts=replace(IN_LAB, nodes=NEW),
        ),
    ),
    "nodes change, with no index by the current configuration": (
        using(current_configuration=SMALL, upcoming={SECOND: LARGE}),
        NodesChanged(NEW, {SECOND: LARGE_NEW.fabric_index}),
        using(current_configuration=SMALL, upcoming={SECOND: LARGE_NEW}, facts=Facts(nodes=NEW)),
    ),
    "nodes change, with no index by the upcoming configuration": (
        using(current_configuration=SMALL, upcoming={SECOND: LARGE}),
        NodesChanged(NEW, {FIRST: SMALL_NEW.fabric_index}),
        using(current_configuration=SMALL_NEW, upcoming={SECOND: LARGE}, facts=Facts(nodes=NEW)),
    ),
    "nodes change after a configuration retired": (
        using(current_configuration=LARGE, retired_configurations=RETIRED_SMALL),
        NodesChanged(NEW, FABRIC_INDEXES),
        using(
            current_configuration=LARGE_NEW,
            retired_configurations=RETIRED_SMALL,
            facts=Facts(nodes=NEW),
        ),
    ),
    "the last node goes": (
        using(current_configuration=SMALL, facts=Facts(nodes=OLD)),
        NodesChanged({}, {FIRST: FabricIndex()}),
        using(current_configuration=replace(SMALL, nodes={}, fabric_index=FabricIndex())),
    ),
    "claims change": (
        using(current_configuration=SMALL),
        ClaimsChanged(CLAIMS),
        using(current_configuration=SMALL, claims=CLAIMS),
    ),
    "claims are no longer watched": (
        using(current_configuration=SMALL, claims=CLAIMS),
        ClaimsChanged(None),
        using(current_configuration=SMALL),
    ),
}


@pytest.mark.parametrize(("before", "event", "after"), TRANSITIONS.values(), ids=TRANSITIONS)
def test_an_event_makes_a_new_snapshot(before: Snapshot, event: Event, after: Snapshot) -> None:
    """Nothing else changes; the snapshot before stays, since requests may be decided with it."""
    as_it_was = repr(before)
    assert advance(before, event, NOW) == after
    assert repr(before) == as_it_was


def second_call(config: str) -> dict[str, object]:
    """Make a pod whose first call was decided with this configuration."""
    status = f'{{"rdma":"yes","because":"Equipped","fabric":null,"applied":[],"config":"{config}"}}'
    return pod(annotations={"rdma.lab/status": status})


NOTHING_IN_USE = Snapshot(retired_configurations=RETIRED_SMALL, upcoming={SECOND: LARGE})
#: A snapshot, the configuration of the first call ("": this is the first call), the time of this
#: call → the configuration that decides.
CHOICES: dict[str, tuple[Snapshot, str, float, PreparedConfiguration | None]] = {
    "a first call": (using(current_configuration=SMALL), "", NOW, SMALL),
    "a first call, nothing in use": (NOTHING_IN_USE, "", NOW, None),
    "the current one": (
        using(current_configuration=SMALL, upcoming={SECOND: LARGE}),
        FIRST,
        NOW,
        SMALL,
    ),
    "an upcoming one": (
        using(current_configuration=SMALL, upcoming={SECOND: LARGE}),
        SECOND,
        NOW,
        LARGE,
    ),
    "an upcoming one, nothing in use": (NOTHING_IN_USE, SECOND, NOW, LARGE),
    "a retired one": (
        using(current_configuration=LARGE_NEW, retired_configurations=RETIRED_SMALL),
        FIRST,
        NOW + RETENTION,
        SMALL,
    ),
    "a retired one, nothing in use": (NOTHING_IN_USE, FIRST, NOW + RETENTION, SMALL),
    "one that retired long ago": (
        using(current_configuration=LARGE, retired_configurations=RETIRED_SMALL),
        FIRST,
        NOW + RETENTION + 0.1,
        LARGE,
    ),
    "one that retired long ago, nothing in use": (
        NOTHING_IN_USE,
        FIRST,
        NOW + RETENTION + 0.1,
        None,
    ),
    "one that retired and is current again": (
        using(current_configuration=SMALL_NEW, retired_configurations=RETIRED_SMALL),
        FIRST,
        NOW,
        SMALL_NEW,
    ),
    "one that retired and is upcoming again": (
        using(
            current_configuration=LARGE,
            retired_configurations=RETIRED_SMALL,
            upcoming={FIRST: SMALL_NEW},
        ),
        FIRST,
        NOW,
        SMALL,
    ),
    "one that nobody knows": (
        using(current_configuration=SMALL, upcoming={SECOND: LARGE}),
        THIRD,
        NOW,
        SMALL,
    ),
    "one that nobody knows, nothing in use": (NOTHING_IN_USE, THIRD, NOW, None),
}


@pytest.mark.parametrize(("snapshot", "first", "now", "expected"), CHOICES.values(), ids=CHOICES)
def test_a_pod_is_decided_with_the_configuration_of_its_first_call(
    snapshot: Snapshot, first: str, now: float, expected: PreparedConfiguration | None
) -> None:
    """Its fabrics and its index count; if it is unknown, the current configuration decides."""
    decision_input = snapshot.decision_input_for("lab", second_call(first) if first else pod(), now)
    if expected is None:
        assert decision_input is None
    else:
        assert decision_input == DecisionInput(
            expected.compiled, Facts().namespace("lab"), expected.fabric_index
        )


def test_a_second_call_is_decided_with_the_nodes_of_its_first_call() -> None:
    """This holds even if nodes and configuration have changed several times since."""
    snapshot = using(current_configuration=SMALL, facts=Facts(nodes=OLD))
    for event in (
        ConfigurationLearned(LARGE),
        ConfigurationApplied(LARGE),
        NodesChanged(NEW, FABRIC_INDEXES),
        ConfigurationMissing("apply one"),
    ):
        snapshot = advance(snapshot, event, NOW)
        decision_input = snapshot.decision_input_for("lab", second_call(FIRST), NOW)
        assert decision_input is not None
        assert decision_input.configuration is SMALL.compiled
        assert list(decision_input.fabric_index.by_node) == ["old"], event


@pytest.mark.parametrize(
    "snapshot",
    [
        using(current_configuration=SMALL, facts=Facts(namespaces=LAB)),
        using(
            current_configuration=LARGE,
            retired_configurations=RETIRED_SMALL,
            facts=Facts(namespaces=LAB),
        ),
        replace(NOTHING_IN_USE, facts=Facts(namespaces=LAB)),
    ],
    ids=["current", "retired", "nothing in use"],
)
@pytest.mark.parametrize("claims", [None, CLAIMS], ids=["no claims", "claims"])
def test_any_call_sees_today_s_namespaces_and_claims(
    snapshot: Snapshot, claims: KnownClaims | None
) -> None:
    """Only fabrics and nodes come from the first call."""
    snapshot = replace(snapshot, claims=claims)
    lab = snapshot.decision_input_for("lab", second_call(FIRST), NOW)
    assert lab is not None
    expected = ClaimFacts(claims={"mine": {}}) if claims else ClaimFacts()
    assert lab.namespace == replace(LAB["lab"], claim_facts=expected)
    other = snapshot.decision_input_for("other", second_call(FIRST), NOW)
    assert other is not None
    assert other.namespace.claim_facts == ClaimFacts(has_all_templates=claims is not None)


def test_the_configurations_that_keep_up_with_nodes() -> None:
    """The current and the upcoming ones do; a retired configuration keeps its nodes."""
    assert Snapshot().current_and_upcoming == []
    assert using(
        current_configuration=SMALL, retired_configurations=RETIRED_LARGE
    ).current_and_upcoming == [SMALL]
    assert Snapshot(
        upcoming={SECOND: LARGE}, retired_configurations=RETIRED_SMALL
    ).current_and_upcoming == [LARGE]
    assert using(current_configuration=SMALL, upcoming={SECOND: LARGE}).current_and_upcoming == [
        SMALL,
        LARGE,
    ]


def test_a_state_changes_by_events_at_the_time_of_its_clock() -> None:
    """It starts empty; the clock counts when a configuration retires, and when it is used."""
    times = [NOW]
    state = State(lambda: times[-1])
    assert state.snapshot == Snapshot()
    state.send(ConfigurationApplied(SMALL))
    times.append(NOW + 1)
    state.send(ConfigurationApplied(LARGE))
    retired = RetiredConfigurations().retire(SMALL, NOW + 1)
    assert state.snapshot == using(current_configuration=LARGE, retired_configurations=retired)
    chosen = []
    for now in (NOW + 1 + RETENTION, NOW + 1.1 + RETENTION):
        times.append(now)
        decision_input = state.decision_input_for("lab", second_call(FIRST))
        assert decision_input is not None
        chosen.append(decision_input.configuration)
    assert chosen == [SMALL.compiled, LARGE.compiled]
