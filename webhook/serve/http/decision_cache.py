"""The decisions on the pods of one workload, made once.

Pods with equal views get equal decisions (`webhook.decide.view`), as long as the configuration,
the nodes and the facts on the namespace are the same. A hit takes a tenth of the time of a
decision. Once in CHECKED hits, the decision is made anew from the whole pod; if it differs, which
would be a defect of the view, the new one counts, and nothing is cached any more.

Only the event loop's thread uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import orjson

from webhook.admission.response import answer
from webhook.admission.review import AdmissionRequest
from webhook.decide.analysis import DecisionInput
from webhook.decide.view import view_of
from webhook.model.annotations import asks_for_rdma
from webhook.model.decision import Decision
from webhook.model.pod import PodManifest
from webhook.serve.log import Log
from webhook.serve.metrics import DecisionCacheMetrics

Decide = Callable[[PodManifest, DecisionInput], Decision]

#: The default for the maximum number of decisions; a burst of pods has few workloads.
MAX_DECISIONS = 256
#: The maximum size in bytes of all views and answers, and of one view.
MAX_BYTES, MAX_VIEW_BYTES = 2 * 1024 * 1024, 64 * 1024
#: One hit in so many is compared with a new decision.
CHECKED = 256

#: The namespace of a request, and the view of its pod as JSON.
_Key = tuple[str, bytes]


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
    def without_pod(self) -> Answered:
        """A copy without the patched pod, to keep."""
        return self._replace(decision=self.decision._replace(pod={}))

    def body(self, uid: str) -> bytes:
        """Return the body of the answer to the request with this uid."""
        return b"".join((self.head, orjson.dumps(uid), self.tail))


class _Entry(NamedTuple):
    answered: Answered
    decision_input: DecisionInput
    size: int

    def holds_for(self, other: DecisionInput) -> bool:
        """Return whether a decision with the other input would be the same."""
        own = self.decision_input
        return (
            own.configuration is other.configuration
            and own.fabric_index is other.fabric_index
            and own.namespace == other.namespace
        )


class DecisionCache:
    """The last decisions by namespace and view, the least recently used first."""

    def __init__(
        self, decide: Decide, metrics: DecisionCacheMetrics, log: Log, max_decisions: int
    ) -> None:
        """Prepare it; 0 as `max_decisions` turns it off."""
        self._decide = decide
        self._metrics = metrics
        self._log = log
        self._max_decisions = max_decisions
        self._entries: dict[_Key, _Entry] = {}
        self._bytes = 0
        self._hits = 0

    def answer(self, request: AdmissionRequest, decision_input: DecisionInput) -> Answered:
        """Return the decision on a pod, from the cache if one holds for it."""
        if not self._max_decisions or not asks_for_rdma(request.pod):
            return Answered.of(self._decide(request.pod, decision_input))
        view = view_of(request.pod, decision_input.configuration)
        key = request.namespace, _written(view)
        if not 0 < len(key[1]) <= MAX_VIEW_BYTES:
            return Answered.of(self._decide(request.pod, decision_input))
        entry = self._entries.pop(key, None)
        if entry is not None and entry.holds_for(decision_input):
            self._entries[key] = entry
            return self._checked(entry.answered, request, decision_input)
        self._bytes -= entry.size if entry else 0
        self._metrics.misses.inc()
        answered = Answered.of(self._decide(view, decision_input))
        self._keep(key, answered, decision_input)
        return answered

    def _keep(self, key: _Key, answered: Answered, decision_input: DecisionInput) -> None:
        size = sum(map(len, key)) + len(answered.head) + len(answered.tail)
        self._entries[key] = _Entry(answered.without_pod, decision_input, size)
        self._bytes += size
        while self._bytes > MAX_BYTES or len(self._entries) > self._max_decisions:
            oldest = next(iter(self._entries))
            self._bytes -= self._entries.pop(oldest).size
            self._metrics.evictions.inc()

    def _checked(
        self, cached: Answered, request: AdmissionRequest, decision_input: DecisionInput
    ) -> Answered:
        """Return a cached decision, or a new one if it differs; compare one in CHECKED."""
        self._metrics.hits.inc()
        self._hits += 1
        if self._hits % CHECKED:
            return cached
        new = Answered.of(self._decide(request.pod, decision_input))
        if new.without_pod == cached:
            return cached
        self._metrics.differences.inc()
        self._max_decisions = 0
        self._entries.clear()
        self._log.write(
            "error",
            "a cached decision differs from a new one; nothing is cached until the next start",
            uid=request.uid,
            namespace=request.namespace,
            name=request.name,
        )
        return new


def _written(view: PodManifest) -> bytes:
    """Return a view as JSON, b"" if it is nested too deeply for that."""
    try:
        return orjson.dumps(view)
    except orjson.JSONEncodeError:
        return b""
