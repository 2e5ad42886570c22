"""A pod created right after its namespace is patched or decided as unknown, but always answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.cluster.install import Webhook
from tests.e2e.admission.pods import Answer
from tests.e2e.documents import ENABLE, namespace
from tests.e2e.live.lab import ChangingNamespace, ask, send
from tests.waiting import until

ROUNDS = 20


@pytest.fixture
def clean() -> Iterator[ExitStack]:
    """Delete the objects of a test."""
    with ExitStack() as stack:
        yield stack


def test_a_pod_right_after_its_namespace(webhook: Webhook, clean: ExitStack) -> None:
    """A pod that follows its namespace without a pause gets an answer, each of twenty times.

    How many come too early depends on the load of the machine; in the end each namespace is known.
    """
    outcomes = Counter(
        _outcome(_create_and_ask(webhook, f"live-new-{number}", clean)) for number in range(ROUNDS)
    )
    waited = webhook.counted("rdma_webhook_facts_waits_total", "arrived")
    print(  # noqa: T201
        f"pods right behind their namespaces: {dict(outcomes)}; waits by `arrived`: {dict(waited)}"
    )
    assert set(outcomes) <= {"patched", "unknown"}
    for number in range(ROUNDS):
        name = f"live-new-{number}"
        until(lambda name=name: _outcome(ask(webhook, name)) == "patched")  # type: ignore[misc]


def test_a_pod_right_after_the_label(lab: ChangingNamespace) -> None:
    """Whenever the API server calls after the label was set, the answer is a patch."""
    outcomes: Counter[str] = Counter()
    for _ in range(5):
        lab.label(ENABLE, None)
        while _outcome(lab.ask()) != "not called":
            pass
        lab.label(ENABLE, "true")
        outcome = ""
        while outcome != "patched":
            outcome = _outcome(lab.ask())
            outcomes[outcome] += 1
    print(f"pods right behind the label: {dict(outcomes)}")  # noqa: T201 -- figures
    # The API server learns about the label from its own watch: until then it does not call.
    assert set(outcomes) <= {"patched", "not called"}


def _create_and_ask(webhook: Webhook, name: str, clean: ExitStack) -> Answer:
    send(webhook, "POST", "namespaces", namespace(name, "true"))
    clean.callback(send, webhook, "DELETE", f"namespaces/{name}")
    # A pod needs a service account, which its controller may have made meanwhile.
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    send(webhook, "POST", f"namespaces/{name}/serviceaccounts", account)
    return ask(webhook, name)


def _outcome(answer: Answer) -> str:
    assert answer.object, answer.refusal
    if "rdma.lab/status" not in answer.object["metadata"].get("annotations", {}):
        return "not called"
    unknown = "NamespaceUnknown" in str(answer.status.get("skipped", {}))
    if unknown:
        assert answer.memory() == ("64Gi", "64Gi")
    return "unknown" if unknown else "patched"
