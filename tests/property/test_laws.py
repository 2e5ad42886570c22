"""Laws that hold for every decision, whatever the pod."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from tests.api_server import defaulted, patched, without_status
from tests.property.allowed import forbidden, names_of
from tests.property.changes import keeps_key_order
from tests.property.strategies import anything, decision_inputs, pods, spoilt_pods
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.model.annotations import MAX_ANNOTATIONS_SIZE, STATUS_ANNOTATION, size_of
from webhook.model.decision import Decision


@given(pod=spoilt_pods() | anything(), decision_input=decision_inputs())
def test_any_json_gets_a_decision(pod: Any, decision_input: DecisionInput) -> None:
    """Whatever the input is, the result is a decision, and the input does not change."""
    before = orjson.dumps(pod)
    decision = decide(pod, decision_input)
    assert orjson.dumps(pod) == before
    if not decision.allowed:
        assert decision.patch == ()
        assert decision.pod is pod
        assert decision.message


@given(pod=spoilt_pods() | pods(), decision_input=decision_inputs())
def test_operations_rebuild_the_pod(pod: Any, decision_input: DecisionInput) -> None:
    """An independent implementation of RFC 6902 makes the decision's pod."""
    decision = decide(pod, decision_input)
    if decision.patch:
        assert _sorted_json(patched(pod, decision.patch)) == _sorted_json(decision.pod)
    else:
        assert decision.pod == pod


@given(pod=pods(), decision_input=decision_inputs())
def test_the_patch_has_the_operations_of_the_outcomes(
    pod: dict[str, Any], decision_input: DecisionInput
) -> None:
    """The patch has the outcomes' operations in order, and then the status's operations."""
    decision = decide(pod, decision_input)
    of_outcomes = [op for outcome in decision.outcomes for op in outcome.ops]
    patch = list(decision.patch)
    if decision.allowed:
        assert patch[: len(of_outcomes)] == of_outcomes
        assert all(
            "rdma.lab~1status" in str(op) or STATUS_ANNOTATION in str(op)
            for op in patch[len(of_outcomes) :]
        )


@given(pod=spoilt_pods() | pods(), decision_input=decision_inputs())
def test_deciding_again_changes_nothing(pod: Any, decision_input: DecisionInput) -> None:
    """The result of a decision needs no further operation, not even for its status."""
    first = decide(pod, decision_input)
    if first.allowed:
        assert list(decide(first.pod, decision_input).patch) == []


@given(
    pod=pods(), decision_input=decision_inputs(), room=st.integers(0, 700) | st.integers(4000, 6000)
)
def test_deciding_again_changes_nothing_where_annotations_are_full(
    pod: dict[str, Any], decision_input: DecisionInput, room: int
) -> None:
    """Both passes agree to the byte on whether there is room for the annotations."""
    pod["metadata"]["annotations"]["note"] = ""
    pod["metadata"]["annotations"]["note"] = "x" * (MAX_ANNOTATIONS_SIZE - _sizes(pod) - room)
    first = decide(pod, decision_input)
    if first.allowed:
        networked = any(
            outcome.mutation == "networks" and outcome.ops for outcome in first.outcomes
        )
        assert networked or _sizes(first.pod) <= MAX_ANNOTATIONS_SIZE
        assert list(decide(first.pod, decision_input).patch) == []


def _sizes(pod: dict[str, Any]) -> int:
    annotations = pod["metadata"]["annotations"]
    return sum(map(size_of, (*annotations, *annotations.values())))


@given(pod=pods(), decision_input=decision_inputs())
def test_deciding_again_after_defaulting_changes_nothing(
    pod: dict[str, Any], decision_input: DecisionInput
) -> None:
    """The same holds after the API server's defaulting, and no new complaint appears."""
    first = decide(defaulted(pod), decision_input)
    if first.allowed:
        second = decide(defaulted(first.pod), decision_input)
        assert list(second.patch) == []
        assert _complaints(second) <= _complaints(first)


@given(pod=pods(), decision_input=decision_inputs())
def test_each_container_has_a_single_outcome(
    pod: dict[str, Any], decision_input: DecisionInput
) -> None:
    """A mutation gives a container one of applied, already, skipped, failed, and then warnings."""
    places: set[tuple[str, str]] = set()
    for outcome in decide(pod, decision_input).outcomes:
        place = (outcome.mutation, outcome.container)
        if outcome.status != "warned":
            assert place not in places
            places.add(place)


@given(pod=pods(enable=None) | pods(enable="false"), decision_input=decision_inputs())
def test_a_pod_without_opt_in_gets_nothing(
    pod: dict[str, Any], decision_input: DecisionInput
) -> None:
    """Without the annotation there is no patch and no warning, whatever else the pod sets."""
    decision = decide(pod, decision_input)
    assert (decision.allowed, decision.patch, decision.warnings) == (True, (), ())
    assert decision.pod is pod


@given(pod=pods(), decision_input=decision_inputs())
def test_every_answer_to_a_pod_that_opted_in_has_a_status(
    pod: dict[str, Any], decision_input: DecisionInput
) -> None:
    """An allowed pod that opted in has a status, of bounded size."""
    decision = decide(pod, decision_input)
    if decision.allowed:
        status = decision.pod["metadata"]["annotations"][STATUS_ANNOTATION]
        assert len(status) <= 4096
        assert orjson.loads(status)["config"] == decision_input.configuration.config_hash


@given(pod=pods(), decision_input=decision_inputs())
def test_warnings_fit_the_api_server(pod: dict[str, Any], decision_input: DecisionInput) -> None:
    """Warnings are single lines of printable ASCII, at most 120 characters each, 4096 in total."""
    warnings = decide(pod, decision_input).warnings
    assert all(len(line) <= 120 and line.isascii() and line.isprintable() for line in warnings)
    assert sum(map(len, warnings)) < 4096


@given(pod=pods(), decision_input=decision_inputs())
def test_the_user_wins(pod: dict[str, Any], decision_input: DecisionInput) -> None:
    """Only changes that the design lists are made; additions are in known places only."""
    decision = decide(pod, decision_input)
    assert list(forbidden(pod, decision.pod, names_of(decision_input.configuration))) == []


@given(pod=spoilt_pods() | pods(), decision_input=decision_inputs())
def test_order_survives(pod: Any, decision_input: DecisionInput) -> None:
    """All keys keep their order, including unknown ones."""
    assert keeps_key_order(pod, decide(pod, decision_input).pod)


@given(pod=pods(), decision_input=decision_inputs())
def test_a_patch_of_the_template_and_of_the_pod_agree(
    pod: dict[str, Any], decision_input: DecisionInput
) -> None:
    """Preview then default gives the same as default then mutate, with equal status content."""
    previewed, mutated = decide(pod, decision_input), decide(defaulted(pod), decision_input)
    assert _summary(previewed) == _summary(mutated)
    assert without_status(defaulted(previewed.pod)) == without_status(defaulted(mutated.pod))


def _sorted_json(pod: Any) -> bytes:
    """Write a pod with sorted keys, since a key that an operation replaced may have moved."""
    return orjson.dumps(pod, option=orjson.OPT_SORT_KEYS)


def _summary(decision: Decision) -> tuple[object, ...]:
    fields = (decision.allowed, decision.reason.code, decision.message, decision.fabric)
    return (*fields, decision.fabric_evidence, decision.warnings)


def _complaints(decision: Decision) -> set[tuple[str, str, str, str]]:
    return {
        (outcome.mutation, outcome.container, outcome.status, outcome.reason.code)
        for outcome in decision.outcomes
        if outcome.status in ("skipped", "warned") and outcome.reason.reportable
    }
