from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import pytest

from webhook.errors import ClusterError
from webhook.kube.client import SECONDS, Client
from webhook.kube.lease import HELD_SECONDS, LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS, Lease

PATH = "/apis/coordination.k8s.io/v1/namespaces/rdma-webhook/leases/status"
GONE = (
    "the Lease rdma-webhook/status does not exist; apply the webhook's manifests again (kubectl "
    "apply -k or helm upgrade; see docs/installation.md), since the webhook has no right to create "
    "it"
)
FIELDS = {"holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime"}
TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


class Server(Client):
    """The Leases of an API server, with one Lease that nobody holds."""

    def __init__(self) -> None:  # without credentials
        self.stored: dict[str, Any] | None = {"metadata": {"name": "status"}}
        #: The answers to requests by their methods, instead of the usual ones.
        self.failures: dict[str, tuple[int, dict[str, Any]] | ClusterError] = {}
        self.requests: list[str] = []
        self.now = 1000.0

    def replica(self, name: str = "first") -> Lease:
        """Return a candidate."""
        return Lease(self, "rdma-webhook", "status", name, clock=lambda: self.now)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "",
        query: list[tuple[str, str]] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        """Read or replace the Lease."""
        assert path == PATH
        self.requests.append(method)
        failure = self.failures.get(method)
        if isinstance(failure, ClusterError):
            raise failure
        if failure is not None:
            return failure
        if self.stored is None:
            return HTTPStatus.NOT_FOUND, {}
        if method == "PUT":
            assert (content_type, query) == ("application/json", [("fieldManager", "rdma-webhook")])
            self.stored = body
        return HTTPStatus.OK, self.stored

    @property
    def spec(self) -> dict[str, Any]:
        """The spec of the stored Lease."""
        assert self.stored is not None
        spec: dict[str, Any] = self.stored["spec"]
        return spec


@pytest.fixture
def server() -> Server:
    """Return an API server with a Lease."""
    return Server()


def answered(status: int) -> tuple[int, dict[str, Any]]:
    """Return an answer of the API server."""
    return status, {"message": "because"}


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
    assert server.requests == ["GET", "PUT", "GET"]
    assert server.stored is not None
    assert server.stored["metadata"] == {"name": "status"}
    assert server.spec["leaseDurationSeconds"] == LEASE_SECONDS
    assert server.spec["holderIdentity"] == "first"
    assert TIME.fullmatch(server.spec["renewTime"])


def test_a_renewal_keeps_the_time_of_the_acquisition(server: Server) -> None:
    """After a loss, the next acquisition has its own time."""
    first = server.replica()
    first.attempt()
    acquired = server.spec["acquireTime"]
    assert acquired == server.spec["renewTime"]
    first.attempt()
    assert server.spec["acquireTime"] == acquired < server.spec["renewTime"]
    server.now += HELD_SECONDS
    first.attempt()
    assert acquired < server.spec["acquireTime"] == server.spec["renewTime"]


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
    assert server.requests == ["GET"]
    server.stored = stored
    first.attempt()
    assert (first.held, first.missing, first.problem) == (True, False, "")


@pytest.mark.parametrize(("method", "verb"), [("GET", "read"), ("PUT", "update")])
def test_a_refusal_is_a_problem(server: Server, method: str, verb: str) -> None:
    """The sentence has the verb and the API server's message."""
    first = server.replica()
    server.failures[method] = answered(403)
    assert first.attempt() == RETRY_SECONDS
    text = f"cannot {verb} the Lease rdma-webhook/status: the API server answered 403: because"
    assert (first.held, first.missing, first.problem) == (False, False, text)


def test_a_lost_race_is_no_problem(server: Server) -> None:
    """Another replica has updated the Lease meanwhile."""
    first = server.replica()
    server.failures["PUT"] = answered(409)
    first.attempt()
    assert (first.held, first.missing, first.problem) == (False, False, "")


def test_a_lease_deleted_before_its_update_is_missing(server: Server) -> None:
    """This may happen between the two requests."""
    first = server.replica()
    server.failures["PUT"] = answered(404)
    first.attempt()
    assert (first.held, first.missing, first.problem) == (False, True, GONE)


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_without_an_answer_nobody_holds_it(server: Server, method: str) -> None:
    """It is not missing: another replica may still hold it."""
    first = server.replica()
    first.attempt()
    server.failures[method] = ClusterError("cannot reach the API server: refused")
    first.attempt()
    assert (first.held, first.missing) == (False, False)
    assert first.problem == "cannot reach the API server: refused"


def test_an_answer_without_a_status_object(server: Server) -> None:
    """A proxy may have sent it."""
    first = server.replica()
    server.failures["GET"] = (502, {})
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
    assert (server.spec["holderIdentity"], server.spec["leaseDurationSeconds"]) == ("", 1)
    assert second.attempt() == RENEW_SECONDS
    server.failures["GET"] = ClusterError("refused")
    second.release()
    assert not second.held


def test_a_lease_that_another_took_is_not_released(server: Server) -> None:
    """Nor is one that cannot be read."""
    first = server.replica()
    first.attempt()
    server.spec["holderIdentity"] = "second"
    first.release()
    assert server.spec["holderIdentity"] == "second"
    assert server.requests == ["GET", "PUT", "GET"]
    server.spec["holderIdentity"] = "first"
    first.attempt()
    server.failures["GET"] = (500, {"spec": server.spec})
    server.requests.clear()
    first.release()
    assert server.requests == ["GET"]


#: Specs that the API server accepts. The official client cannot read the year 0.
STRANGERS: dict[str, dict[str, object]] = {
    "year 0": {"renewTime": "0000-01-01T00:00:00.000000Z"},
    "far future": {"renewTime": "9999-12-31T23:59:59.000000Z", "leaseDurationSeconds": 2**31 - 1},
    "no times": {},
    "other elections": {"strategy": "OldestEmulationVersion", "preferredHolder": "third"},
}


@pytest.mark.parametrize("name", STRANGERS)
def test_any_lease_of_others_expires(server: Server, name: str) -> None:
    """A replica counts from its first sight of the content, which may say anything.

    It replaces the whole spec: the policy on the Lease refuses fields of other elections.
    """
    assert server.stored is not None
    server.stored["spec"] = {"holderIdentity": "stranger", **STRANGERS[name]}
    first = server.replica()
    assert (first.attempt(), first.problem) == (RETRY_SECONDS, "")
    server.now += LEASE_SECONDS - 0.1
    assert (first.attempt(), first.problem) == (RETRY_SECONDS, "")
    server.now += 0.1
    assert first.attempt() == RENEW_SECONDS
    assert set(server.spec) == {
        "holderIdentity",
        "leaseDurationSeconds",
        "acquireTime",
        "renewTime",
    }


def test_a_renewal_of_another_counts_anew(server: Server) -> None:
    """Whatever its times are, a change shows that its holder lives."""
    assert server.stored is not None
    first = server.replica()
    for renewals in range(3):
        server.stored["spec"] = {"holderIdentity": "stranger", "leaseTransitions": renewals}
        server.now += LEASE_SECONDS - 1
        assert first.attempt() == RETRY_SECONDS
    server.now += LEASE_SECONDS
    assert first.attempt() == RENEW_SECONDS
