"""The decisions on the pods of one workload, made once.

Pods with the same common part (`webhook.decide.common_part`) get the same decision, as long as the
configuration, the nodes and the facts about the namespace are the same. A hit takes a tenth of the
time of a decision. Once in CHECKED hits, the decision is made anew from the whole pod; if it
differs, which would be a defect, the new one counts, and nothing is cached any more.

Only the event loop's thread uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

import orjson

from webhook.admission.response import answer
from webhook.admission.review import AdmissionRequest
from webhook.decide.analysis import DecisionInput
from webhook.decide.common_part import common_part, json_of
from webhook.model.annotations import asks_for_rdma
from webhook.model.decision import Decision, Outcome
from webhook.model.fabric import CompiledConfiguration
from webhook.model.facts import NamespaceFacts
from webhook.model.nodes import FabricIndex
from webhook.model.pod import PodManifest
from webhook.serve.http.review_body import MAX_NAME_LENGTH
from webhook.serve.log import Log
from webhook.serve.metrics import DecisionCacheMetrics
from webhook.serve.options import DEFAULTS

Decide = Callable[[PodManifest, DecisionInput], Decision]

#: The default for the maximum number of decisions; a burst of pods has few workloads.
MAX_DECISIONS = DEFAULTS.decision_cache
#: The maximum size in bytes of all decisions, and of a pod's common part.
MAX_BYTES, MAX_PART_BYTES = 2 * 1024 * 1024, 64 * 1024
#: Bytes of what is kept of a decision, and for each of its outcomes: 3.0 kB for 12 of them, and
#: 81 kB for 705, those of a pod with 100 containers.
DECISION_BYTES, OUTCOME_BYTES = 1600, 115
#: One hit in so many is compared with a new decision.
CHECKED = 256


class Answered(NamedTuple):
    """A decision, and the body of the answer with it: `head`, the uid as JSON, `tail`."""

    decision: Decision
    head: bytes
    tail: bytes

    @classmethod
    def of(cls, decision: Decision) -> Answered:
        """Write the answer with a decision."""
        head, uid, tail = orjson.dumps(answer("", decision)).partition(b'"uid":""')
        return cls(decision, head + uid[:-2], tail)

    @property
    def copy_to_keep(self) -> Answered:
        """A copy to keep, of whose decision only what the log, metrics and Events need is left.

        The body has the rest. A small copy leaves more of the processor's caches to new decisions.
        """
        outcomes = [
            Outcome(mutation, container, status, reason, "")
            for mutation, container, status, reason, _, _ in self.decision.outcomes
        ]
        decision = self.decision._replace(
            pod={}, patch=(), warnings=(), audit={}, outcomes=tuple(outcomes)
        )
        return self._replace(decision=decision)

    @property
    def size(self) -> int:
        """The number of bytes of the body, without the uid, and about that of the decision."""
        octets = DECISION_BYTES + OUTCOME_BYTES * len(self.decision.outcomes)
        return len(self.head) + len(self.tail) + octets

    def body(self, uid: str) -> bytes:
        """Return the body of the answer to the request with this uid."""
        return b"".join((self.head, orjson.dumps(uid), self.tail))


class _Namespace(NamedTuple):
    """The decisions with the same facts about a namespace."""

    facts: NamespaceFacts
    #: By the SHA-256 of the common part, the least recently used first: the pods of users, with
    #: whatever their variables contain, are not kept.
    by_part: dict[bytes, Answered]


class DecisionCache:
    """The latest decisions; those with an earlier configuration, nodes or facts are dropped."""

    def __init__(
        self, decide: Decide, metrics: DecisionCacheMetrics, log: Log, max_decisions: int
    ) -> None:
        """Prepare it; 0 as `max_decisions` turns it off."""
        self._decide = decide
        self._metrics = metrics
        self._log = log
        self._max_decisions = max_decisions
        self._configuration: CompiledConfiguration | None = None
        self._fabric_index: FabricIndex | None = None
        #: By name, the least recently used first.
        self._namespaces: dict[str, _Namespace] = {}
        self._count = self._bytes = self._hits = 0

    def answer(self, request: AdmissionRequest, decision_input: DecisionInput) -> Answered:
        """Return the decision on a pod, from the cache if it has one for its common part."""
        if not self._max_decisions or not asks_for_rdma(request.pod):
            return Answered.of(self._decide(request.pod, decision_input))
        part = common_part(request.pod, decision_input.configuration)
        written = json_of(part)
        if not 0 < len(written) <= MAX_PART_BYTES:
            return Answered.of(self._decide(request.pod, decision_input))
        key = sha256(written).digest()
        by_part = self._decisions_in(request.namespace, decision_input)
        cached = by_part.pop(key, None)
        if cached is not None:
            by_part[key] = cached
            return self._checked(cached, request, decision_input)
        self._metrics.misses.inc()
        answered = Answered.of(self._decide(part, decision_input))
        namespace = self._namespaces.setdefault(
            request.namespace, _Namespace(decision_input.namespace, by_part)
        )
        namespace.by_part[key] = answered.copy_to_keep
        self._count += 1
        self._bytes += answered.size
        self._evict()
        return answered

    def _decisions_in(self, name: str, decision_input: DecisionInput) -> dict[bytes, Answered]:
        """Return the decisions that hold in a namespace, and drop those that no longer do."""
        configuration, facts, fabric_index = decision_input[:3]
        if self._configuration is not configuration or self._fabric_index is not fabric_index:
            self._clear()
            self._configuration, self._fabric_index = configuration, fabric_index
        namespace = self._namespaces.pop(name, None)
        if namespace is not None and namespace.facts != facts:
            self._count -= len(namespace.by_part)
            self._bytes -= sum(answered.size for answered in namespace.by_part.values())
            namespace = None
        if namespace is None:
            return {}
        self._namespaces[name] = namespace
        return namespace.by_part

    def _evict(self) -> None:
        """Drop the least recently used decisions of the least recently used namespaces."""
        while self._bytes > MAX_BYTES or self._count > self._max_decisions:
            name, namespace = next(iter(self._namespaces.items()))
            self._bytes -= namespace.by_part.pop(next(iter(namespace.by_part))).size
            self._count -= 1
            self._metrics.evictions.inc()
            if not namespace.by_part:
                del self._namespaces[name]

    def _clear(self) -> None:
        self._namespaces.clear()
        self._count = self._bytes = 0

    def _checked(
        self, cached: Answered, request: AdmissionRequest, decision_input: DecisionInput
    ) -> Answered:
        """Return a cached decision, or a new one if it differs; compare one in CHECKED."""
        self._metrics.hits.inc()
        self._hits += 1
        if self._hits % CHECKED:
            return cached
        new = Answered.of(self._decide(request.pod, decision_input))
        if new.copy_to_keep == cached:
            return cached
        self._metrics.differences.inc()
        self._max_decisions = 0
        self._clear()
        self._log.write(
            "error",
            "a cached decision differs from a new one; nothing is cached until the next start",
            uid=request.uid[:MAX_NAME_LENGTH],
            namespace=request.namespace[:MAX_NAME_LENGTH],
            name=request.name[:MAX_NAME_LENGTH],
        )
        return new
