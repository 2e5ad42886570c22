"""Pods of one workload share a decision, and no other pods do."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from tests.builders import decision_input, gpu, pod
from tests.server_state import configured
from tests.siblings import sibling_of
from tests.unit.serve.client import Lines
from webhook.admission.response import answer
from webhook.admission.review import AdmissionRequest
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.model.claims import ClaimFacts
from webhook.model.decision import Decision, PatchOp
from webhook.model.facts import NamespaceFacts
from webhook.model.nodes import FabricIndex
from webhook.model.pod import at
from webhook.serve.http.decision_cache import (
    CHECKED,
    MAX_BYTES,
    MAX_PART_BYTES,
    OUTCOME_BYTES,
    DecisionCache,
)
from webhook.serve.metrics import Metrics

INPUT = decision_input()
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
#: Another value of each fact about a namespace.
OTHER_FACTS: dict[str, Any] = {
    "name": "other",
    "is_loaded": False,
    "labels": RESTRICTED,
    "annotations": {"rdma.lab/fabric": "x"},
    "memory_limit_rejection": "a quota",
    "claim_facts": ClaimFacts(has_all_templates=True),
    "config_maps": {"site": {"NCCL_IB_DISABLE": "1"}},
}


class Cache:
    """A cache, with a count of the decisions that it made."""

    def __init__(self, max_decisions: int = 8, decide: Any = decide) -> None:
        self.made = 0
        self.metrics = Metrics()
        self.lines = Lines()
        self._decide = decide
        self.cache = DecisionCache(
            self._count, self.metrics.decision_cache, self.lines.log, max_decisions
        )

    def _count(self, manifest: Any, cluster: DecisionInput) -> Decision:
        self.made += 1
        decision: Decision = self._decide(manifest, cluster)
        return decision

    def body(
        self,
        manifest: Any,
        cluster: DecisionInput = INPUT,
        *,
        uid: str = "u",
        namespace: str = "lab",
    ) -> Any:
        """Return the answer to a request for a pod."""
        request = AdmissionRequest(uid, namespace, "a", False, "", manifest)
        return json.loads(self.cache.answer(request, cluster).body(uid))

    def count(self, event: str) -> float:
        """Return the number of events of one kind."""
        metric = f"rdma_webhook_decision_cache_{event}_total"
        return self.metrics.registry.get_sample_value(metric) or 0


def trainer(**fields: Any) -> dict[str, Any]:
    """Make a pod with a GPU."""
    manifest = pod(gpu(**fields), hostname="a-0")
    manifest["metadata"]["name"] = "a-0"
    return manifest


@pytest.mark.parametrize("uid", ["0-1", 'é"\\', '"uid":""'])
@pytest.mark.parametrize("manifest", [trainer(), pod(annotations={"rdma.lab/enable": "yes"})])
def test_pods_of_a_workload_share_a_decision(manifest: Any, uid: str) -> None:
    """Each answer has its own uid, and is what a decision on the whole pod gives."""
    cache = Cache()
    for sibling in (manifest, sibling_of(manifest), manifest):
        expected = json.loads(json.dumps(answer(uid, decide(sibling, INPUT))))
        assert cache.body(sibling, uid=uid) == expected
    assert (cache.made, cache.count("hits"), cache.count("misses")) == (1, 2, 1)


def test_the_decision_is_known_at_a_hit() -> None:
    """The log, the metrics and the Events get the same; the pod and its patch are not kept."""
    cache = Cache()
    request = AdmissionRequest("u", "lab", "a", False, "", trainer())
    first, second = (cache.cache.answer(request, INPUT).decision for _ in range(2))
    for field in ("allowed", "reason", "message", "verdict", "fabric", "fabric_evidence"):
        assert getattr(second, field) == getattr(first, field)
    labels = [
        [(outcome.mutation, outcome.status, outcome.reason) for outcome in decision.outcomes]
        for decision in (first, second)
    ]
    assert labels[0] == labels[1] != []
    assert first.pod
    assert (second.pod, second.patch) == ({}, ())
    assert not any(outcome.ops or outcome.message for outcome in second.outcomes)


@pytest.mark.parametrize(
    "other",
    [
        decision_input()._replace(fabric_index=INPUT.fabric_index),
        INPUT._replace(fabric_index=FabricIndex()),
        *(
            INPUT._replace(namespace=replace(INPUT.namespace, **{fact: value}))
            for fact, value in OTHER_FACTS.items()
        ),
    ],
    ids=["configuration", "nodes", *OTHER_FACTS],
)
def test_a_change_between_two_pods_is_obeyed(other: DecisionInput) -> None:
    """Each changed fact leads to a new decision, at once, and so does the change back."""
    cache = Cache()
    for number, cluster in enumerate((INPUT, other, INPUT), start=1):
        expected = json.loads(json.dumps(answer("u", decide(trainer(), cluster))))
        assert cache.body(trainer(), cluster) == expected
        assert cache.made == number


def test_every_fact_is_changed() -> None:
    """A fact that somebody adds needs a row; the server sets nothing else besides the facts."""
    assert OTHER_FACTS.keys() == {fact.name for fact in fields(NamespaceFacts)}
    state = configured(INPUT.configuration)
    served = state.decision_input_for("lab", trainer())
    assert served
    assert served[3:] == DecisionInput(*served[:3])[3:]


def test_namespaces_do_not_share() -> None:
    """Pods are equal in both, and so are the facts."""
    cache = Cache()
    cache.body(trainer())
    cache.body(trainer(), namespace="other")
    assert cache.made == 2


def test_equal_facts_are_the_same_facts() -> None:
    """An unknown namespace gets new facts at each request."""
    cache = Cache()
    for _ in range(2):
        unknown = NamespaceFacts(name="lab", is_loaded=False)
        cache.body(trainer(), INPUT._replace(namespace=unknown))
    assert cache.made == 1


@pytest.mark.parametrize("annotations", [{}, {"rdma.lab/enable": "false"}])
def test_a_pod_that_did_not_opt_in_is_not_kept(annotations: dict[str, str]) -> None:
    """Its decision takes no time."""
    cache = Cache()
    manifest = trainer()
    manifest["metadata"]["annotations"] = annotations
    assert [cache.body(manifest)["response"]["allowed"] for _ in range(2)] == [True, True]
    assert (cache.made, cache.count("misses")) == (2, 0)


def test_no_cache() -> None:
    """With 0 decisions, each pod is decided anew."""
    cache = Cache(0)
    assert cache.body(trainer()) == cache.body(trainer())
    assert (cache.made, cache.count("misses")) == (2, 0)


def test_the_least_recently_used_decision_is_dropped() -> None:
    """A use makes a decision the latest one."""
    cache = Cache(2)
    a, b, c = (trainer(name=name) for name in "abc")
    for manifest in (a, b, a, c):
        cache.body(manifest)
    assert (cache.made, cache.count("evictions")) == (3, 1)
    cache.body(a)
    assert cache.made == 3
    cache.body(b)
    assert cache.made == 4


def test_the_least_recently_used_namespace_is_dropped_first() -> None:
    """A decision in a namespace that is used now stays, even if it is older."""
    cache = Cache(3)
    a, b = (trainer(name=name) for name in "ab")
    for manifest, namespace in ((a, "x"), (b, "x"), (a, "y"), (b, "x"), (a, "z")):
        cache.body(manifest, namespace=namespace)
    assert (cache.made, cache.count("evictions")) == (4, 1)
    for manifest, namespace in ((a, "x"), (b, "x"), (a, "z")):
        cache.body(manifest, namespace=namespace)
    assert cache.made == 4


def test_outdated_decisions_are_dropped() -> None:
    """Otherwise, they would keep the facts and the nodes of each time."""
    cache = Cache()
    for name in "ab":
        cache.body(trainer(name=name))
    changed = INPUT._replace(namespace=replace(INPUT.namespace, memory_limit_rejection="a quota"))
    cache.body(trainer(name="a"), changed)
    assert (cache.cache._count, len(cache.cache._namespaces["lab"].by_part)) == (1, 1)
    cache.body(trainer(name="a"), changed, namespace="other")
    cache.body(trainer(name="a"), changed._replace(fabric_index=FabricIndex()))
    assert (cache.cache._count, list(cache.cache._namespaces)) == (1, ["lab"])


def by_long_message(manifest: Any, cluster: DecisionInput) -> Decision:
    """Decide with a patch of 100 kB."""
    patch = PatchOp(op="add", path="/x", value="x" * 75_000)  # 100 kB in base64
    return decide(manifest, cluster)._replace(patch=(patch,))


def test_all_answers_together_are_limited_in_bytes() -> None:
    """An answer that is replaced does not count any more."""
    cache = Cache(1000, by_long_message)
    fitting = MAX_BYTES // 104_000
    for number in range(fitting):
        cache.body(trainer(name=f"c{number}"))
    assert cache.count("evictions") == 0
    for quota in ("a", "b", "c"):  # the same pod, each time with other facts
        changed = replace(INPUT.namespace, memory_limit_rejection=quota)
        cache.body(trainer(name="c0"), INPUT._replace(namespace=changed))
    for number in range(fitting - 1):
        cache.body(trainer(name=f"d{number}"), namespace="other")
    assert cache.count("evictions") == 0
    for number in range(fitting):
        cache.body(trainer(name=f"e{number}"), namespace="third")
    assert cache.count("evictions") == fitting


def test_outcomes_count_as_well() -> None:
    """A pod that lacks nothing has a short answer, but an outcome of each mutation."""
    outcomes = decide(trainer(), INPUT).outcomes
    repeated = outcomes * (2 * MAX_BYTES // (5 * OUTCOME_BYTES * len(outcomes)))
    cache = Cache(
        1000, lambda manifest, cluster: decide(manifest, cluster)._replace(outcomes=repeated)
    )
    for number in range(2):
        cache.body(trainer(name=f"c{number}"))
    assert cache.count("evictions") == 0
    for number in range(2, 5):
        cache.body(trainer(name=f"c{number}"))
    assert cache.count("evictions") == 3


def test_the_pods_of_users_are_not_kept() -> None:
    """Their variables may contain passwords."""
    cache = Cache()
    cache.body(trainer(env=[{"name": "PASSWORD", "value": "hunter2"}]))
    assert cache.count("misses") == 1
    assert "hunter2" not in repr(cache.cache._namespaces)


@pytest.mark.parametrize(
    "manifest",
    [
        trainer(image="x" * MAX_PART_BYTES),
        trainer(lifecycle=json.loads('{"a":' * 300 + "1" + "}" * 300)),
    ],
    ids=["large", "deep"],
)
def test_a_large_pod_is_not_kept(manifest: Any) -> None:
    """Its answer is that of any other pod."""
    cache = Cache()
    assert cache.body(manifest) == cache.body(manifest)
    assert (cache.made, cache.count("misses")) == (2, 0)


def by_hostname(manifest: Any, cluster: DecisionInput) -> Decision:
    """Decide by a field that the common part lacks, as a rule might that somebody adds."""
    host = str(at(manifest, ("spec", "hostname")))
    return decide(manifest, cluster)._replace(message=host, warnings=(host,))


def test_a_rule_that_reads_what_pods_do_not_share_is_noticed() -> None:
    """The new decision counts, the difference is counted and logged, and nothing is kept."""
    cache = Cache(decide=by_hostname)
    bodies = [cache.body(trainer()) for _ in range(CHECKED + 1)]
    assert bodies[CHECKED]["response"]["warnings"] == ["a-0"]
    assert bodies[1]["response"]["warnings"] == ["None"]
    assert cache.count("differences") == 1
    (line,) = cache.lines.read()
    assert (line["level"], line["uid"], line["namespace"]) == ("error", "u", "lab")
    assert cache.body(trainer())["response"]["warnings"] == ["a-0"]
    assert cache.count("hits") == CHECKED


def test_a_hit_in_so_many_is_compared() -> None:
    """Without a difference, the kept decision stays."""
    cache = Cache()
    for _ in range(2 * CHECKED + 1):
        cache.body(trainer())
    assert cache.made == 3
    assert (cache.count("hits"), cache.count("differences")) == (2 * CHECKED, 0)
