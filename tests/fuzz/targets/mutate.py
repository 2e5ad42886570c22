"""`/mutate`: AdmissionReviews, from real ones down to bytes that are not JSON."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import orjson

from tests.fuzz.dice import Dice
from tests.fuzz.laws.mutations import MUTATE_LAWS, Answered, World
from tests.fuzz.many import fill_with_copies
from tests.fuzz.pods import pod_of, review_of
from tests.fuzz.spoil import grown, perhaps_corrupted_json, spoilt
from tests.fuzz.target import Parts, Target
from tests.fuzz.worlds import CLUSTERS, FABRICS
from tests.property.allowed import names_of
from tests.server_state import configured
from webhook.config.load import parse_fabrics
from webhook.decide import decide
from webhook.decide.mutations import MUTATIONS
from webhook.decide.reasons import (
    DECISION_REASONS,
    FACTS_UNKNOWN,
    NAMESPACE_FABRIC,
    OTHER_INJECTOR,
    UNKNOWN_ANNOTATION,
)
from webhook.model.facts import Facts
from webhook.serve.http.decision_cache import MAX_DECISIONS
from webhook.serve.http.mutate import Mutate
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics

_OF_REQUESTS = (UNKNOWN_ANNOTATION, FACTS_UNKNOWN, NAMESPACE_FABRIC, OTHER_INJECTOR)
#: Bytes of a body with many copies of one thing.
_SIZES = (16_000, 64_000, 64_000, 64_000, 256_000)


def build(dice: Dice, *, large: bool) -> Parts:
    """Make a case: the fabrics file, the objects of the cluster, and the body."""
    fabrics, cluster = dice.pick(FABRICS[1:] if large else FABRICS), dice.pick(CLUSTERS)
    # Words are shared objects, and the edits are in place.
    pod = orjson.loads(orjson.dumps(pod_of(dice, admissible=large)))
    kind = 2 if large else dice.below(10)
    if kind > 5:
        pod = spoilt(dice, pod)
    for _ in range(large and 1 + dice.small(2)):
        (grown if dice.one_in(4) else fill_with_copies)(dice, pod, dice.pick(_SIZES))
        pod = orjson.loads(orjson.dumps(pod))  # repeated values are shared objects
    review: Any = review_of(dice, pod)
    if kind == 0:
        review = spoilt(dice, review)
    body = perhaps_corrupted_json(dice, review) if kind in (1, 9) else orjson.dumps(review)
    earlier = dice.pick(FABRICS) if dice.one_in(20) else None
    objects = None if cluster is None else list(cluster)
    return {"fabrics": fabrics, "earlier": earlier, "cluster": objects, "body": body}


def observe(parts: Parts) -> Answered:
    """Call one replica, sometimes after one with another configuration."""
    cluster = orjson.dumps(parts["cluster"])
    world = world_of(parts["fabrics"], cluster)
    body = parts["body"]
    if parts["earlier"] is not None:
        first = Answered(body, world_of(parts["earlier"], cluster))
        body = first.body_after if first.decided else body
    return Answered(body, world)


def codes(observed: Answered) -> Iterable[str]:
    """Yield the codes: the HTTP status, the pod's reason, and the reasons of its mutations."""
    yield f"HTTP {observed.answer.status}"
    for answer in (observed.answer, *(observed.second_call if observed.decided else ())):
        decision = answer.decision
        if decision is not None:
            yield decision.reason.code
            for outcome in decision.outcomes:
                yield f"{outcome.mutation}: {outcome.reason.code}"


@lru_cache(maxsize=64)
def world_of(fabrics: str, cluster: bytes) -> World:
    """Make two replicas with the same configuration and cluster."""
    objects = orjson.loads(cluster)
    facts = Facts() if objects is None else Facts.from_objects(objects)
    loaded = parse_fabrics(fabrics, "fabrics.yaml").compiled
    pair = _replica(fabrics, facts), _replica(fabrics, facts)
    caching = _replica(fabrics, facts, max_decisions=MAX_DECISIONS)
    return World(pair, names_of(loaded), loaded, caching)


def _replica(fabrics: str, facts: Facts, max_decisions: int = 0) -> Mutate:
    state = configured(parse_fabrics(fabrics, "fabrics.yaml").compiled, facts)
    return Mutate(state, Metrics(), Log("error"), decide, max_decisions=max_decisions)


TARGET = Target(
    name="mutate",
    build=build,
    observe=observe,
    laws=MUTATE_LAWS,
    codes=codes,
    expected=frozenset(
        {
            *("HTTP 200", "HTTP 400"),
            *(reason.code for reason in DECISION_REASONS),
            *(
                f"{mutation.name}: {reason.code}"
                for mutation in MUTATIONS
                for reason in mutation.reasons
            ),
            *(f"request: {reason.code}" for reason in _OF_REQUESTS),
        }
    ),
    weight=12,
)
