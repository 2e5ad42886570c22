"""Laws that hold for every decision, whatever the pod."""

from __future__ import annotations

import re
from typing import Any

import orjson
from hypothesis import given

from tests.api_server import defaulted, patched, without_status
from tests.property.changes import Change, changes, key_orders
from tests.property.strategies import anything, contexts, pods, spoilt_pods
from webhook.core.annotations import STATUS
from webhook.core.decision import Decision
from webhook.core.path import dotted
from webhook.core.quantity import parse
from webhook.core.scope import Context
from webhook.pipeline import decide


@given(pod=spoilt_pods() | anything(), context=contexts())
def test_any_json_gets_a_decision(pod: Any, context: Context) -> None:
    """Whatever is sent, the answer is a decision without an error, and the input is untouched."""
    before = orjson.dumps(pod)
    decision = decide(pod, context)
    if decision.error is not None:
        raise decision.error
    assert orjson.dumps(pod) == before
    if not decision.allowed:
        assert decision.patch == ()
        assert decision.pod is pod
        assert decision.message


@given(pod=spoilt_pods() | pods(), context=contexts())
def test_operations_rebuild_the_pod(pod: Any, context: Context) -> None:
    """Another library's idea of RFC 6902 gives the pod that the decision shows."""
    decision = decide(pod, context)
    if decision.patch:
        assert _orders(patched(pod, decision.patch)) == _orders(decision.pod)
    else:
        assert decision.pod == pod


@given(pod=pods(), context=contexts())
def test_operations_are_those_of_the_outcomes(pod: dict[str, Any], context: Context) -> None:
    """The patch is the operations of the outcomes in their order, then the status."""
    decision = decide(pod, context)
    of_outcomes = [op for outcome in decision.outcomes for op in outcome.ops]
    patch = list(decision.patch)
    if decision.allowed:
        assert patch[: len(of_outcomes)] == of_outcomes
        assert all(
            "rdma.lab~1status" in str(op) or STATUS in str(op) for op in patch[len(of_outcomes) :]
        )


@given(pod=spoilt_pods() | pods(), context=contexts())
def test_deciding_again_changes_nothing(pod: Any, context: Context) -> None:
    """The result of a decision needs no further operation, its status included."""
    first = decide(pod, context)
    if first.allowed:
        assert list(decide(first.pod, context).patch) == []


@given(pod=pods(), context=contexts())
def test_deciding_again_after_defaulting_changes_nothing(
    pod: dict[str, Any], context: Context
) -> None:
    """Nor does it where the API server added its defaults, and the reasons are the same."""
    first = decide(defaulted(pod), context)
    if first.allowed:
        second = decide(defaulted(first.pod), context)
        assert list(second.patch) == []
        assert _complaints(second) <= _complaints(first)


@given(pod=pods(), context=contexts())
def test_each_container_has_one_verdict(pod: dict[str, Any], context: Context) -> None:
    """Each mutation gives a container one of applied, already, skipped, failed, then warnings."""
    verdicts: set[tuple[str, str]] = set()
    for outcome in decide(pod, context).outcomes:
        where = (outcome.mutation, outcome.container)
        if outcome.status != "warned":
            assert where not in verdicts
            verdicts.add(where)


@given(pod=pods(enable=None) | pods(enable="false"), context=contexts())
def test_who_did_not_opt_in_gets_nothing(pod: dict[str, Any], context: Context) -> None:
    """Without the annotation there is no patch and no warning, whatever else the pod says."""
    decision = decide(pod, context)
    assert (decision.allowed, decision.patch, decision.warnings) == (True, (), ())
    assert decision.pod is pod


@given(pod=pods(), context=contexts())
def test_every_answer_to_a_pod_that_opted_in_has_a_status(
    pod: dict[str, Any], context: Context
) -> None:
    """A pod that we were called for and allowed says so, and its size is bounded."""
    decision = decide(pod, context)
    if decision.allowed:
        status = decision.pod["metadata"]["annotations"][STATUS]
        assert len(status) <= 4096
        assert orjson.loads(status)["config"] == context.fabrics.config_hash


@given(pod=pods(), context=contexts())
def test_warnings_fit_the_api_server(pod: dict[str, Any], context: Context) -> None:
    """Warnings are single lines of printable ASCII, at most 120 characters, 4096 in all."""
    warnings = decide(pod, context).warnings
    assert all(len(line) <= 120 and line.isascii() and line.isprintable() for line in warnings)
    assert sum(map(len, warnings)) < 4096


@given(pod=pods(), context=contexts())
def test_the_user_wins(pod: dict[str, Any], context: Context) -> None:
    """What the user wrote changes only where the design lists it; we add in known places only."""
    decision = decide(pod, context)
    aliases = {
        alias: resource.name
        for fabric in context.fabrics.fabrics.values()
        for resource in fabric.resources
        for alias in resource.aliases
    }
    for change in changes(pod, decision.pod):
        allowed = {"added": _may_add, "removed": _may_remove, "replaced": _may_replace}
        assert allowed[change.kind](change, decision.pod, aliases), change


@given(pod=spoilt_pods() | pods(), context=contexts())
def test_order_survives(pod: Any, context: Context) -> None:
    """Keys keep their order, and so do the unknown ones."""
    assert key_orders(pod, decide(pod, context).pod)


@given(pod=pods(), context=contexts())
def test_a_patch_of_the_template_and_of_the_pod_agree(
    pod: dict[str, Any], context: Context
) -> None:
    """Preview then default is the same as default then mutate, the status compared by content."""
    previewed, mutated = decide(pod, context), decide(defaulted(pod), context)
    assert _told(previewed) == _told(mutated)
    assert without_status(defaulted(previewed.pod)) == without_status(defaulted(mutated.pod))


# What the design allows


_ADDITIONS = tuple(
    re.compile(pattern)
    for pattern in (
        r"metadata\.annotations\[\"rdma\.lab/(status|nccl-conf)\"\]",
        r"metadata\.annotations\[\"k8s\.v1\.cni\.cncf\.io/networks\"\]",
        r"spec\.nodeSelector(\[\"site\.lab/fabric\"\])?",
        r"spec\.volumes(\[\d+\])?",
        r"spec\.resources\.requests(\.memory)?",
        r"spec\.(initC|c)ontainers\[\d+\]\.env(\[\d+\])?",
        r"spec\.(initC|c)ontainers\[\d+\]\.volumeMounts(\[\d+\])?",
        r"spec\.(initC|c)ontainers\[\d+\]\.resources\.requests(\.memory)?",
        r"spec\.(initC|c)ontainers\[\d+\]\.securityContext(\.capabilities(\.add(\[\d+\])?)?)?",
        r"spec\.containers\[\d+\]\.resources\.(limits|requests)(\[\"(rdma|nvidia\.com)/\w+\"\])?",
    )
)
_LIMIT = re.compile(r"spec\.((initC|c)ontainers\[\d+\]\.)?resources\.limits\.memory")
_AMOUNT = re.compile(r"spec\.containers\[\d+\]\.resources\.(limits|requests)\[\"(.*)\"\]")
_FLAG = re.compile(r" -mca coll_hcoll_enable 0(?=\s|$)")


def _may_add(change: Change, after: Any, aliases: Any) -> bool:
    del after, aliases
    where = dotted(change.path)
    return any(pattern.fullmatch(where) for pattern in _ADDITIONS) and "privileged" not in str(
        change.after
    )


def _may_remove(change: Change, after: Any, aliases: Any) -> bool:
    """Allow limits.memory, with the request in its place, and an alias, with the real resource."""
    where = dotted(change.path)
    section = _at(after, change.path[:-1])
    if _LIMIT.fullmatch(where):
        return _at(after, (*change.path[:-2], "requests", "memory")) is not None
    return bool(_AMOUNT.fullmatch(where)) and aliases[change.path[-1]] in section


def _may_replace(change: Change, after: Any, aliases: Any) -> bool:
    """Allow words put into commands, an append to the networks, a merged quantity, the status."""
    del after
    if change.path[-1] in ("command", "args"):
        return _only_inserted(change.before, change.after)
    if change.path[-1] == STATUS:
        return True
    if change.path[-1] == "k8s.v1.cni.cncf.io/networks":
        kept = str(change.before).rstrip()
        kept = kept[:-1].rstrip() if kept.startswith("[") else kept.rstrip(",")
        return str(change.after).startswith(kept)
    merged = _AMOUNT.fullmatch(dotted(change.path))
    real = merged is not None and merged[2] in aliases.values()
    return real and parse(change.after) > parse(change.before)


def _only_inserted(before: list[str], after: list[str]) -> bool:
    """Whether the words are there in their order, each as it was or with the flag put into it."""
    rest = iter(after)
    return all(
        any(word == own or _FLAG.sub("", word) == _FLAG.sub("", own) for word in rest)
        for own in before
    )


def _at(node: Any, path: Any) -> Any:
    for step in path:
        node = node[step]
    return node


def _orders(pod: Any) -> bytes:
    """Write a pod; keys that an operation replaced may stand elsewhere."""
    return orjson.dumps(pod, option=orjson.OPT_SORT_KEYS)


def _told(decision: Decision) -> tuple[object, ...]:
    told = (decision.allowed, decision.reason.code, decision.message, decision.fabric)
    return (*told, decision.evidence, decision.warnings)


def _complaints(decision: Decision) -> set[tuple[str, str, str, str]]:
    return {
        (outcome.mutation, outcome.container, outcome.status, outcome.reason.code)
        for outcome in decision.outcomes
        if outcome.status in ("skipped", "warned") and not outcome.reason.quiet
    }
