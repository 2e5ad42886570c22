from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client import V1Lease, V1LeaseSpec, V1ObjectMeta
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from webhook.kube import lease as module
from webhook.kube.client import SECONDS
from webhook.kube.lease import HELD_SECONDS, LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS, Lease

GONE = (
    "the Lease rdma-webhook/status does not exist: apply the webhook's manifests again "
    "(kubectl apply -k, docs/installation.md), since the webhook may not create it"
)


def answered(status: int) -> ApiException:
    """Return an answer of the API server."""
    return ApiException(status, body=json.dumps({"code": status, "message": "because"}))


class Server:
    """The Leases of an API server, with one Lease that nobody holds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stored: V1Lease | None = V1Lease(
            metadata=V1ObjectMeta(name="status"), spec=V1LeaseSpec()
        )
        self.failures: dict[str, Exception] = {}
        self.requests: list[str] = []
        self.now = 1000.0
        monkeypatch.setattr(module, "CoordinationV1Api", lambda _api: self)

    def replica(self, name: str = "first") -> Lease:
        """Return a candidate."""
        unreachable = lambda error: f"cannot reach the API server: {error}"  # noqa: E731
        client: Any = SimpleNamespace(api=None, unreachable=unreachable)
        return Lease(client, "rdma-webhook", "status", name, clock=lambda: self.now)

    def _request(self, verb: str, timeout: tuple[float, float]) -> None:
        assert timeout == SECONDS
        self.requests.append(verb)
        if failure := self.failures.get(verb):
            raise failure
        if self.stored is None:
            raise answered(404)

    def read_namespaced_lease(
        self, name: str, namespace: str, *, _request_timeout: tuple[float, float]
    ) -> V1Lease | None:
        """Return the Lease."""
        assert (name, namespace) == ("status", "rdma-webhook")
        self._request("read", _request_timeout)
        return self.stored

    def replace_namespaced_lease(
        self,
        name: str,
        namespace: str,
        body: V1Lease,
        *,
        field_manager: str,
        _request_timeout: tuple[float, float],
    ) -> None:
        """Replace the Lease."""
        assert (name, namespace) == ("status", "rdma-webhook")
        assert field_manager == "rdma-webhook"
        self._request("update", _request_timeout)
        self.stored = body


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return an API server with a Lease."""
    return Server(monkeypatch)


def test_the_times_are_those_of_controllers() -> None:
    """Another replica takes over within 15 s and two attempts; the holder stops before that."""
    assert (LEASE_SECONDS, HELD_SECONDS, RETRY_SECONDS) == (15, 10, 2)
    assert RENEW_SECONDS + sum(SECONDS) < LEASE_SECONDS + HELD_SECONDS


def test_a_holder_renews_and_another_retries(server: Server) -> None:
    """Each learns when its next attempt is due; between attempts there is no request."""
    first, second = server.replica(), server.replica("second")
    assert not first.held
    assert (first.attempt(), second.attempt()) == (RENEW_SECONDS, RETRY_SECONDS)
    assert (first.held, second.held) == (True, False)
    assert (first.problem, second.problem) == ("", "")
    assert server.requests == ["read", "update", "read"]
    assert server.stored is not None
    assert server.stored.spec is not None
    assert server.stored.spec.lease_duration_seconds == LEASE_SECONDS
    assert server.stored.spec.holder_identity == "first"


def test_a_holder_that_cannot_renew_stops_in_time(server: Server) -> None:
    """Its thread may wait for an answer; meanwhile, the Lease expires."""
    first = server.replica()
    first.attempt()
    server.now += HELD_SECONDS - 0.1
    assert first.held
    server.now += 0.1
    assert not first.held


def test_a_lease_that_is_gone_has_a_remedy(server: Server) -> None:
    """The webhook creates none; it holds the Lease again once somebody has created it."""
    first, stored = server.replica(), server.stored
    first.attempt()
    server.stored = None
    server.requests.clear()
    assert first.attempt() == RETRY_SECONDS
    assert (first.held, first.missing, first.problem) == (False, True, GONE)
    assert server.requests == ["read"]
    server.stored = stored
    first.attempt()
    assert (first.held, first.missing, first.problem) == (True, False, "")


@pytest.mark.parametrize("verb", ["read", "update"])
def test_a_refusal_is_a_problem(server: Server, verb: str) -> None:
    """The sentence has the verb and the API server's message."""
    first = server.replica()
    server.failures[verb] = answered(403)
    assert first.attempt() == RETRY_SECONDS
    text = f"cannot {verb} the Lease rdma-webhook/status: the API server answered 403: because"
    assert (first.held, first.missing, first.problem) == (False, False, text)


def test_a_lost_race_is_no_problem(server: Server) -> None:
    """Another replica has updated the Lease meanwhile."""
    first = server.replica()
    server.failures["update"] = answered(409)
    first.attempt()
    assert (first.held, first.missing, first.problem) == (False, False, "")


def test_a_lease_deleted_before_its_update_is_missing(server: Server) -> None:
    """This may happen between the two requests."""
    first = server.replica()
    server.failures["update"] = answered(404)
    first.attempt()
    assert (first.held, first.missing, first.problem) == (False, True, GONE)


@pytest.mark.parametrize("verb", ["read", "update"])
def test_without_an_answer_nobody_holds_it(server: Server, verb: str) -> None:
    """It is not missing: another replica may still hold it."""
    first = server.replica()
    first.attempt()
    server.failures[verb] = HTTPError("refused")
    first.attempt()
    assert (first.held, first.missing) == (False, False)
    assert first.problem == "cannot reach the API server: refused"


def test_an_answer_without_a_status_object(server: Server) -> None:
    """A proxy may have sent it."""
    first = server.replica()
    server.failures["read"] = ApiException(502, body=None)
    first.attempt()
    assert first.problem.endswith("the API server answered 502: no reason given")


def test_a_released_lease_is_free_at_once(server: Server) -> None:
    """The holder gives it back when it stops, and nobody gives back another's."""
    first, second = server.replica(), server.replica("second")
    first.attempt()
    second.attempt()
    server.requests.clear()
    second.release()
    assert server.requests == []
    first.release()
    assert not first.held
    assert second.attempt() == RENEW_SECONDS
    server.failures["read"] = HTTPError("refused")
    second.release()
    assert not second.held


def test_an_expired_lease_is_taken_over(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other replica counts from the moment at which it saw the last renewal."""
    first, second = server.replica(), server.replica("second")
    first.attempt()
    second.attempt()
    begin = time.time()

    def at(seconds: float) -> bool:
        monkeypatch.setattr(time, "time", lambda: begin + seconds)
        second.attempt()
        return second.held

    assert [at(LEASE_SECONDS - 2), at(LEASE_SECONDS + 1)] == [False, True]
