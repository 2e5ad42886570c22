"""Large requests, which take long to decide: they take turns, so that others hardly notice them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import pytest
from starlette.types import Receive

from tests.api_server import review_of
from tests.builders import fabrics, gpu, pod
from tests.server_state import configured
from tests.unit.serve.client import JSON, Answer, Lines, request
from tests.virtual_time import run, virtual_loop, virtual_time
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.model.decision import Decision
from webhook.model.facts import Facts
from webhook.serve.http import mutate
from webhook.serve.http.asgi import DisconnectedError
from webhook.serve.http.mutate import CROWDED, LARGE, Mutate
from webhook.serve.metrics import Metrics

#: Seconds that each decision takes.
SLOW = 0.0625


@pytest.fixture(autouse=True)
def _virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutate, "perf_counter", virtual_time)


class Server:
    """The application, which takes long to decide; it records the names of pods in their order."""

    def __init__(self, seconds: float = SLOW) -> None:
        self.decided: list[str] = []
        self._seconds = seconds
        state = configured(fabrics(), Facts())
        self.app = Mutate(state, Metrics(), Lines().log, self._decide, max_decisions=0)

    def _decide(self, manifest: Any, decision_input: DecisionInput) -> Decision:
        self.decided.append(manifest["metadata"]["name"])
        virtual_loop().advance(self._seconds)
        return decide(manifest, decision_input)

    def ask(
        self, name: str, client: str = "10.0.0.1", *, size: int = LARGE + 1
    ) -> asyncio.Task[Answer]:
        """Send a request of this size for a pod."""
        manifest = pod(gpu())
        body = review_of({**manifest, "metadata": {**manifest["metadata"], "name": name}})
        body += b" " * (size - len(body))
        headers = [JSON, (b"content-length", b"%d" % len(body))]
        return asyncio.create_task(
            request(self.app, "POST", "/mutate", body, headers=headers, client=client)
        )


def test_a_small_request_waits_for_one_large_request_at_most() -> None:
    """Also if many came before it."""

    async def crowd() -> None:
        server = Server()
        large = [server.ask(f"large-{number}") for number in range(9)]
        await asyncio.sleep(SLOW / 2)
        answer = await server.ask("small", size=LARGE)
        assert answer.response["allowed"]
        assert server.decided.index("small") <= 2
        assert all([(await task).status == 200 for task in large])

    run(crowd())


def test_a_rest_is_as_long_as_the_request_before_it() -> None:
    """So large requests take half of the time at most; the first waits for nothing."""

    async def in_sequence() -> list[float]:
        server = Server()
        began = virtual_time()
        tasks = [server.ask("first"), server.ask("second"), server.ask("third")]
        ends = []
        for task in tasks:
            await task
            ends.append(virtual_time() - began)
        return ends

    first, second, third = run(in_sequence())
    assert SLOW <= first < 2 * SLOW
    assert second >= 3 * SLOW
    assert third >= 5 * SLOW


def test_a_rest_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a request that took very long, the next one need not wait as long again."""
    monkeypatch.setattr(mutate, "MAX_REST", 0.0)

    async def in_sequence() -> float:
        server = Server(0.1)
        began = virtual_time()
        await asyncio.gather(server.ask("first"), server.ask("second"))
        return virtual_time() - began

    assert run(in_sequence()) < 0.3


def test_addresses_take_turns() -> None:
    """Many large requests from one address delay one from another by one request."""

    async def crowd() -> list[str]:
        server = Server(0.12)
        tasks = [server.ask(f"many-{number}") for number in range(4)]
        tasks.append(server.ask("other", "10.0.0.2"))
        await asyncio.gather(*tasks)
        return server.decided

    assert run(crowd()).index("other") == 1


def test_a_request_that_waits_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server has given up by then; failurePolicy decides."""
    monkeypatch.setattr(mutate, "MAX_TURN_WAIT", 0.01)

    async def crowd() -> Answer:
        server = Server()
        async with server.app._large_requests.turn("10.0.0.2", 60), asyncio.timeout(5):
            return await server.ask("late")

    answer = run(crowd())
    assert answer.status == 503
    assert json.loads(answer.body)["message"] == CROWDED


def test_a_request_whose_client_has_left_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server closes the connection of a call that takes too long."""

    async def disconnected(work: Coroutine[Any, Any, Any], _receive: Receive) -> None:
        work.close()
        raise DisconnectedError

    async def leave() -> None:
        server = Server()
        assert (await server.ask("stays", size=LARGE)).status == 200
        assert (await server.ask("leaves")).status == 0
        assert server.decided == ["stays"]

    monkeypatch.setattr(mutate, "until_disconnect", disconnected)
    run(leave())
