from __future__ import annotations

from typing import Any

import pytest

from tests.unit.certs.objects import INSTALLATION, MUTATING, VALIDATING
from tests.unit.serve.client import Lines
from tests.waiting import until
from webhook.errors import ClusterError, ConfigError
from webhook.kube.access import IN_CLUSTER
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.sources import permission_check
from webhook.serve.sources.permission_check import (
    CONFIRM,
    RETRY_WHEN_ALLOWED,
    RETRY_WHEN_FINE,
    RETRY_WHEN_UNKNOWN,
    PermissionCheck,
    permission_check_of,
    require_guarded_account,
)
from webhook.serve.state import State

MAY = "this account may change more than caBundle of"
APPLY = (
    "apply the webhook's manifests again (kubectl apply -k or helm upgrade; see "
    "docs/installation.md), which contain the policy rdma-webhook-guard and its binding"
)
BOTH_CONFIGURATIONS = f"{MUTATING} and {VALIDATING}"


class Server:
    """A server, and the codes with which an API server answers for each configuration."""

    def __init__(self) -> None:
        self.codes = {MUTATING.path: 403, VALIDATING.path: 403}
        self.connections, self.reachable = 0, False
        self.state, self.metrics, self.lines = State(), Metrics(), Lines()
        self.proof = PermissionCheck(self._connect, INSTALLATION.webhook_configurations, self.state)

    def _connect(self) -> Server:
        self.connections += 1
        if not self.reachable:
            raise ClusterError("no service account")
        return self

    def send(self, _method: str, path: str, *_: Any) -> tuple[int, dict[str, Any]]:
        """Answer."""
        return self.codes[path], {"message": "why"}

    def attempt(self) -> tuple[float, str]:
        """Try once, and report; return the pause, and the detail in `/readyz`."""
        pause = self.proof.attempt()
        if self.proof.poll():
            self.proof.apply(self.metrics, self.lines.log)
        ((name, ready, detail),) = (probe() for probe in self.state.probes)
        assert (name, ready) == ("guard", True)
        return pause, detail

    def measured(self) -> list[float | None]:
        """Return the metric of each configuration; None without one."""
        return [
            self.metrics.registry.get_sample_value(
                "rdma_webhook_guarded", {"kind": configuration.kind}
            )
            for configuration in INSTALLATION.webhook_configurations
        ]

    def logged(self) -> list[tuple[str, str, Any]]:
        """Return level, message and content of the lines since the last call."""
        return [
            (line["level"], line["msg"], line.get("problem") or line.get("configurations"))
            for line in self.lines.read()
        ]


@pytest.fixture
def server() -> Server:
    """Return a server that has connected at its second attempt."""
    connected = Server()
    assert connected.attempt() == (RETRY_WHEN_UNKNOWN, "unknown: no service account")
    assert connected.measured() == [None, None]
    assert connected.logged() == []
    connected.connections, connected.reachable = 0, True
    return connected


def test_what_is_forbidden_is_guarded(server: Server) -> None:
    """It is measured, logged once, and tried again after an hour."""
    well = (RETRY_WHEN_FINE, f"this account may change at most caBundle of {BOTH_CONFIGURATIONS}")
    assert [server.attempt(), server.attempt()] == [well, well]
    assert server.measured() == [1, 1]
    assert server.logged() == [("info", "guarded", [str(MUTATING), str(VALIDATING)])]
    assert server.connections == 1


def test_what_is_allowed_is_a_warning(server: Server) -> None:
    """It is logged once; a new policy may take effect late, so it is tried twice."""
    server.codes[VALIDATING.path] = 200
    assert server.attempt()[0] == CONFIRM
    assert (server.measured(), server.logged()) == ([None, None], [])
    problem = f"{MAY} {VALIDATING}; {APPLY}"
    for _ in range(2):
        assert server.attempt() == (RETRY_WHEN_ALLOWED, f"warning: {problem}")
    assert server.measured() == [1, 0]
    assert server.logged() == [("warning", "not guarded", problem)]

    server.codes[MUTATING.path] = 200
    server.attempt()
    assert server.measured() == [0, 0]
    assert server.logged() == [("warning", "not guarded", f"{MAY} {BOTH_CONFIGURATIONS}; {APPLY}")]

    server.codes |= dict.fromkeys(server.codes, 403)
    server.attempt()
    assert server.measured() == [1, 1]
    assert server.logged() == [("info", "guarded", [str(MUTATING), str(VALIDATING)])]


def test_the_first_warning_is_checked_again() -> None:
    """Everything may have been installed a moment ago."""
    server = Server()
    server.reachable = True
    server.codes |= dict.fromkeys(server.codes, 200)
    assert server.attempt() == (CONFIRM, "unknown: not tried yet")
    assert server.attempt()[0] == RETRY_WHEN_ALLOWED
    assert server.measured() == [0, 0]


def test_a_late_guard_is_not_a_warning(server: Server) -> None:
    """This happens when everything is installed at once."""
    server.codes[MUTATING.path] = 200
    server.attempt()
    server.codes[MUTATING.path] = 403
    assert server.attempt()[0] == RETRY_WHEN_FINE
    assert [level for level, *_ in server.logged()] == ["info"]


def test_an_unknown_state_is_tried_soon(server: Server) -> None:
    """A missing configuration is reported; its previous state stays."""
    server.codes[VALIDATING.path] = 404
    missing = "unknown: the API server answered 404: why"
    assert server.attempt() == (RETRY_WHEN_UNKNOWN, missing)
    assert (server.measured(), server.logged()) == ([1, None], [])
    server.codes[VALIDATING.path] = 200
    server.attempt()
    server.attempt()
    server.codes[VALIDATING.path] = 503
    assert server.attempt() == (RETRY_WHEN_UNKNOWN, f"warning: {MAY} {VALIDATING}; {APPLY}")
    assert server.measured() == [1, 0]


def test_it_begins_with_the_server_and_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempt is at the start, in a thread, which then waits for the next."""
    monkeypatch.setattr(permission_check, "RETRY_WHEN_UNKNOWN", 0.01)
    server = Server()
    server.proof.start()
    until(lambda: server.connections > 4)  # two of each attempt
    server.proof.stop()
    server.proof._thread.join(60)
    assert not server.proof._thread.is_alive()


@pytest.mark.parametrize(
    ("options", "environment", "count"),
    [
        ({}, {IN_CLUSTER: "10.0.0.1"}, 1),
        ({"kubeconfig": "config"}, {}, 1),
        ({}, {}, 0),
        ({"dev": True}, {IN_CLUSTER: "10.0.0.1"}, 0),
    ],
    ids=["in a cluster", "with a kubeconfig", "without a cluster", "for a try"],
)
def test_when_there_is_a_check(
    options: dict[str, Any], environment: dict[str, str], count: int
) -> None:
    """It needs an API server; no request is sent before the start."""
    state = State()
    checks = permission_check_of(ServeOptions(**options), state, environment)
    assert (len(checks), len(state.probes)) == (count, count)


def test_the_account_must_have_the_name_that_the_guards_match() -> None:
    """A renamed account is refused; without the variable, the server does not run as one."""
    require_guarded_account({"POD_SERVICE_ACCOUNT": "rdma-webhook"})
    require_guarded_account({})
    for renamed in ("team-rdma-webhook", "rdma-webhook-2", ""):
        with pytest.raises(ConfigError, match=f"ServiceAccount of this pod is {renamed},"):
            require_guarded_account({"POD_SERVICE_ACCOUNT": renamed})
