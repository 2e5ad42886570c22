"""Tests of requests for a pod whose namespace is not known yet."""

from __future__ import annotations

import asyncio
import json
import time
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api_server import review_of
from tests.builders import fabric, fabrics, gpu, pod, quantities
from tests.server_state import configured, use
from tests.unit.serve.client import JSON, Answer, Lines, request
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.model.claims import ClaimFacts, KnownClaims
from webhook.model.decision import Decision
from webhook.model.fabric import ClaimTemplateReference
from webhook.model.facts import Facts
from webhook.serve.http.mutate import Mutate
from webhook.serve.metrics import Metrics
from webhook.serve.state import ClaimsChanged, NamespacesChanged
from webhook.serve.waiting_requests import WaitingRequests, claim_key

LIMITED = pod(gpu(resources=quantities({"nvidia.com/v100": "1", "memory": "64Gi"})))
STRICT = "LimitRange sizes sets max.memory"


class Server:
    """The application, with a count of its decisions."""

    def __init__(self, seconds: float) -> None:
        self.decided = 0
        self.state = configured(fabrics(), Facts(unlisted_is_unknown=True))
        self.state.waiting_requests = WaitingRequests(seconds)
        self._app = Mutate(self.state, Metrics(), Lines().log, self._decide)

    def _decide(self, manifest: Any, decision_input: DecisionInput) -> Decision:
        self.decided += 1
        return decide(manifest, decision_input)

    def ask(self, namespace: str = "lab", manifest: Any = LIMITED) -> asyncio.Task[Answer]:
        """Send a request for a pod, by default one with a memory limit."""
        metadata = {**manifest["metadata"], "namespace": namespace}
        body = review_of({**manifest, "metadata": metadata})
        headers = [JSON, (b"content-length", b"%d" % len(body))]
        return asyncio.create_task(request(self._app, "POST", "/mutate", body, headers=headers))

    def bring(self, name: str = "lab") -> None:
        """Deliver a namespace that requires memory limits, as the watch does."""
        items: Iterator[dict[str, Any]] = iter(
            [
                {"kind": "Namespace", "metadata": {"name": name}},
                {
                    "kind": "LimitRange",
                    "metadata": {"name": "sizes", "namespace": name},
                    "spec": {"limits": [{"type": "Container", "max": {"memory": "1Ti"}}]},
                },
            ]
        )
        self.state.send(NamespacesChanged(Facts.from_objects(items)))
        if self.state.waiting_requests is not None:
            self.state.waiting_requests.resume({name})


def why_kept(answer: Answer) -> list[str]:
    """Return the codes in the status that explain why the memory limit stays."""
    patch = json.loads(b64decode(answer.response["patch"]))
    (status,) = (op["value"] for op in patch if "rdma.lab~1status" in op["path"])
    codes: list[str] = json.loads(status)["skipped"]
    return codes


def test_it_is_decided_as_soon_as_the_namespace_is_known() -> None:
    """Both pods get the decision that is made with the namespace's facts."""

    async def run() -> None:
        server = Server(seconds=600)
        waiting = [server.ask(), server.ask()]
        await asyncio.sleep(0.02)
        assert server.decided == 0
        server.bring()
        for answer in await asyncio.gather(*waiting):
            assert why_kept(answer) == ["LimitRequired"]
        assert server.decided == 1

    asyncio.run(run())


def test_others_do_not_wait() -> None:
    """Requests for known namespaces are decided at once."""

    async def run() -> None:
        server = Server(seconds=600)
        server.bring("known")
        unknown = server.ask()
        assert why_kept(await server.ask("known")) == ["LimitRequired"]
        assert not unknown.done()
        server.bring()
        await unknown

    asyncio.run(run())


def test_without_the_namespace_the_limit_stays() -> None:
    """A request waits no longer than configured; the status names what was unknown."""

    async def run() -> None:
        server = Server(seconds=0.1)
        began = time.monotonic()
        answer = await server.ask()
        assert time.monotonic() - began >= 0.1
        assert (answer.response["allowed"], why_kept(answer)) == (True, ["NamespaceUnknown"])

    asyncio.run(run())


@pytest.mark.parametrize("complete", [True, False])
def test_where_nothing_is_watched_nothing_waits(complete: bool) -> None:
    """There is no wait with facts from a file, before the first list, or without facts."""

    async def run() -> None:
        server = Server(seconds=600)
        server.state.waiting_requests = None
        server.state.send(NamespacesChanged(Facts(unlisted_is_unknown=complete)))
        answer = await server.ask()
        assert answer.response["allowed"]
        assert server.decided == 1

    asyncio.run(run())


NICS = fabric(
    "h100",
    gpu_resources=frozenset({"nvidia.com/h100"}),
    mode="dra",
    device_classes=frozenset({"rdma.example.com"}),
    claim_templates=(ClaimTemplateReference(template="nics"),),
)
CLAIMING = pod(
    gpu(resources={**quantities({"nvidia.com/h100": "1"}), "claims": [{"name": "mine"}]}),
    resourceClaims=[{"name": "mine", "resourceClaimName": "shared"}],
)


class ClaimServer(Server):
    """A server with a fabric with claims, which has read the namespace lab."""

    def __init__(self, seconds: float, *, are_watched: bool = True) -> None:
        super().__init__(seconds)
        use(self.state, fabrics(NICS))
        self.bring()
        self.learn(are_watched=are_watched)

    def learn(self, *, are_watched: bool = True, **claims: str) -> None:
        """Deliver ResourceClaims of the namespace, each with the class that it requests."""
        by_name = {name: {"": (device_class,)} for name, device_class in claims.items()}
        facts = ClaimFacts(templates={"nics": {}}, claims=by_name, has_all_templates=True)
        elsewhere = ClaimFacts(has_all_templates=True)
        self.state.send(ClaimsChanged(KnownClaims({"lab": facts}, elsewhere, are_watched)))
        assert self.state.waiting_requests is not None
        self.state.waiting_requests.resume(claim_key("lab", name) for name in claims)


def codes(answer: Answer, key: str) -> list[str]:
    """Return the codes of the status below a key."""
    patch = json.loads(b64decode(answer.response["patch"]))
    (status,) = (op["value"] for op in patch if "rdma.lab~1status" in op["path"])
    listed: list[str] = json.loads(status).get(key, [])
    return listed


def test_it_is_decided_as_soon_as_the_claim_is_known() -> None:
    """Otherwise a claim that was created with its pod would be claimed twice."""

    async def run() -> None:
        server = ClaimServer(seconds=600)
        waiting = server.ask(manifest=CLAIMING)
        await asyncio.sleep(0.02)
        assert server.decided == 0
        server.learn(shared="rdma.example.com")
        answer = await waiting
        assert "claims" not in codes(answer, "applied")
        assert "ClaimUnknown" not in codes(answer, "warned")
        assert answer.response["auditAnnotations"]["rdma"] == "yes"

    asyncio.run(run())


def test_without_the_claim_its_names_count() -> None:
    """After the wait, which is as long as for a namespace, the status names what was unknown."""

    async def run() -> None:
        answer = await ClaimServer(seconds=0.05).ask(manifest=CLAIMING)
        assert "ClaimUnknown" in codes(answer, "warned")
        assert "claims" in codes(answer, "applied")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("manifest", "are_watched"),
    [
        (CLAIMING, False),
        ({**CLAIMING, "metadata": {"name": "x", "annotations": {}}}, True),
        (pod(gpu(), resourceClaims=[{"name": "own", "resourceClaimTemplateName": "x"}]), True),
        (pod(gpu(), resourceClaims="none"), True),
        (pod(gpu()), True),
    ],
    ids=["not watched", "not asked", "by template", "nonsense", "no claim"],
)
def test_no_other_pod_waits_for_claims(manifest: Any, *, are_watched: bool) -> None:
    """A wait would be useless where claims are not watched, or if the pod names none."""

    async def run() -> None:
        server = ClaimServer(seconds=600, are_watched=are_watched)
        await server.ask(manifest=manifest)
        assert server.decided == 1

    asyncio.run(run())
