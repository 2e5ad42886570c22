"""Requests that take long to decide take turns, so that others hardly notice them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.types import Receive, Scope

from tests.api_server import review_of
from tests.builders import fabrics, gpu, pod
from tests.server_state import configured
from tests.unit.serve.client import JSON, Answer, Lines, request
from tests.virtual_time import run, virtual_loop, virtual_time
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.model.decision import Decision
from webhook.model.facts import Facts
from webhook.serve import fair_queue
from webhook.serve.http import asgi, mutate
from webhook.serve.http.asgi import DisconnectedError
from webhook.serve.http.mutate import CROWDED, LARGE, Mutate
from webhook.serve.metrics import Metrics
from webhook.serve.state import NamespacesChanged
from webhook.serve.waiting_requests import WaitingRequests

#: Seconds that each decision takes.
SLOW = 0.0625


@pytest.fixture(autouse=True)
def _virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (mutate, fair_queue):
        monkeypatch.setattr(module, "perf_counter", virtual_time)
    monkeypatch.setattr(mutate, "MAX_BURST", 0.05)


class Server:
    """The application, which takes long to decide; it records the names of pods in their order."""

    def __init__(self, seconds: float = SLOW) -> None:
        self.decided: list[str] = []
        self._seconds = seconds
        self.state = configured(fabrics(), Facts())
        self.app = Mutate(self.state, Metrics(), Lines().log, self._decide, max_decisions=0)

    def _decide(self, manifest: Any, decision_input: DecisionInput) -> Decision:
        self.decided.append(manifest["metadata"]["name"])
        virtual_loop().advance(self._seconds)
        return decide(manifest, decision_input)

    def ask(
        self,
        name: str,
        client: str = "10.0.0.1",
        *,
        size: int = LARGE + 1,
        namespace: str = "default",
    ) -> asyncio.Task[Answer]:
        """Send a request of this size for a pod."""
        manifest = pod(gpu())
        metadata = {**manifest["metadata"], "name": name, "namespace": namespace}
        body = review_of({**manifest, "metadata": metadata})
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


def test_namespaces_take_turns() -> None:
    """A user with many large pods delays one in another namespace by two requests."""

    async def crowd() -> list[str]:
        server = Server()
        tasks = [server.ask(f"many-{number}", namespace="crowd") for number in range(9)]
        tasks.append(server.ask("other", namespace="quiet"))
        await asyncio.gather(*tasks)
        return server.decided

    assert run(crowd()).index("other") <= 2


def test_small_requests_take_turns_after_a_burst() -> None:
    """A pod with a hundred containers takes 40 ms, and has a few kilobytes."""

    async def crowd() -> list[str]:
        server = Server()
        tasks = [server.ask(f"many-{number}", size=LARGE, namespace="crowd") for number in range(9)]
        tasks.append(server.ask("other", size=LARGE, namespace="quiet"))
        assert all([(await task).status == 200 for task in tasks])
        return server.decided

    assert run(crowd()).index("other") <= 3


def test_nobody_overtakes_requests_that_wait() -> None:
    """Otherwise requests of the next iteration of the event loop would be decided first."""

    async def crowd() -> list[str]:
        server = Server()
        tasks = [server.ask(f"many-{number}", size=LARGE) for number in range(4)]
        for _ in range(3):
            await asyncio.sleep(0)
        tasks.append(server.ask("late", size=LARGE))
        await asyncio.gather(*tasks)
        return server.decided

    assert run(crowd())[-1] == "late"


@pytest.fixture
def in_turn(monkeypatch: pytest.MonkeyPatch) -> list[Coroutine[Any, Any, Any]]:
    """Return the list of requests that need a turn; their clients leave before it comes."""
    crowded: list[Coroutine[Any, Any, Any]] = []

    async def leave(work: Coroutine[Any, Any, Any], _receive: Receive) -> None:
        crowded.append(work)
        work.close()
        raise DisconnectedError

    monkeypatch.setattr(mutate, "until_disconnect", leave)
    return crowded


def test_a_short_burst_needs_no_turns(in_turn: list[Coroutine[Any, Any, Any]]) -> None:
    """Turns take time, and usually requests are few and quick."""

    async def crowd(*sizes: int) -> int:
        server = Server(1 / 128)
        for size in sizes:
            names = [f"quick-{number}" for number in range(size)]
            await asyncio.gather(*(server.ask(name, size=LARGE) for name in names))
        return len(in_turn)

    assert run(crowd(6, 6, 6)) == 0
    assert run(crowd(12)) == 5


def test_a_wait_for_facts_is_no_burst(in_turn: list[Coroutine[Any, Any, Any]]) -> None:
    """Only decisions keep others waiting."""

    class Crowded(Server):
        """Another request arrives during the first decision."""

        late: asyncio.Task[Answer] | None = None

        def _decide(self, manifest: Any, decision_input: DecisionInput) -> Decision:
            self.late = self.late or self.ask("late", size=LARGE)
            return super()._decide(manifest, decision_input)

    async def crowd() -> None:
        server = Crowded(seconds=0)
        server.state.waiting_requests = WaitingRequests(0.25)
        server.state.send(NamespacesChanged(Facts(unlisted_is_unknown=True)))
        assert (await server.ask("unknown", size=LARGE)).status == 200
        server.state.send(NamespacesChanged(Facts()))
        assert server.late is not None
        assert (await server.late).status == 200

    run(crowd())
    assert not in_turn


def test_a_connection_may_be_closed_until_the_turn_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients with many requests that wait would otherwise use all memory of the listener."""
    closable: list[str] = []

    @contextmanager
    def recorded(_scope: Scope) -> Iterator[None]:
        closable.append("begin")
        yield
        closable.append("end")

    async def crowd() -> None:
        server = Server()
        tasks = [server.ask("first"), server.ask("second")]
        await tasks[0]
        assert closable == ["begin", "end", "begin"]
        await tasks[1]
        assert closable[3:] == ["end"]

    monkeypatch.setattr(asgi, "connection_closable", recorded)
    run(crowd())


def test_facts_are_not_awaited_in_a_turn() -> None:
    """Others would wait as long for each request of a namespace that does not exist."""

    async def crowd(size: int) -> float:
        server = Server()
        server.state.waiting_requests = waiting = WaitingRequests(0.25)
        server.state.send(NamespacesChanged(Facts(unlisted_is_unknown=True)))
        began = virtual_time()
        tasks = [server.ask(f"unknown-{number}", size=size) for number in range(4)]
        assert all([(await task).status == 200 for task in tasks])
        assert waiting.counts[False] == len(tasks)
        return virtual_time() - began

    assert run(crowd(LARGE)) < 0.75
    assert run(crowd(LARGE + 1)) < 1.0


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
