from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.serve.client import Lines
from tests.waiting import until
from webhook.errors import ClusterError
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.status.content import Condition
from webhook.serve.status.lease import LeaseSource, lease_of


class Replica:
    """A replica with a Lease that a test sets."""

    def __init__(self) -> None:
        self.held, self.missing, self.problem = False, False, ""
        self.failure: Exception | None = None
        self.released = 0
        self.metrics, self.lines = Metrics(), Lines()
        self.source = LeaseSource(self._connect)

    def _connect(self) -> Replica:
        if self.failure:
            raise self.failure
        return self

    def attempt(self) -> float:
        """Try nothing."""
        if self.failure:
            raise self.failure
        return 2.0

    def release(self) -> None:
        """Count."""
        self.released += 1

    def report(self) -> tuple[list[float | None], list[tuple[str, str, str]]]:
        """Make an attempt, and return the gauges and the new lines of the log."""
        self.source.attempt()
        if self.source.poll():
            self.source.apply(self.metrics, self.lines.log)
        names = ("rdma_webhook_lease_held", "rdma_webhook_lease_last_check_successful")
        gauges = [self.metrics.registry.get_sample_value(name) for name in names]
        lines = self.lines.read()
        return gauges, [(line["level"], line["msg"], line.get("problem", "")) for line in lines]


def test_nothing_is_reported_before_the_first_attempt() -> None:
    """The gauges do not exist where nobody tries."""
    replica = Replica()
    assert (replica.source.held, replica.source.missing) == (False, False)
    replica.source.apply(replica.metrics, replica.lines.log)
    assert replica.lines.read() == []
    names = {family.name for family in replica.metrics.registry.collect()}
    assert not any("lease" in name for name in names)


def test_each_change_is_one_line() -> None:
    """The gauges show who holds the Lease, and whether there is a problem."""
    replica = Replica()
    assert replica.report() == ([0, 1], [])
    replica.held = True
    assert replica.report() == ([1, 1], [("info", "lease held", "")])
    assert replica.report() == ([1, 1], [])
    replica.held, replica.problem = False, "it does not exist"
    lost = [("info", "lease lost", ""), ("warning", "lease not usable", "it does not exist")]
    assert replica.report() == ([0, 0], lost)
    assert replica.report() == ([0, 0], [])
    replica.problem = "403"
    assert replica.report() == ([0, 0], [("warning", "lease not usable", "403")])
    replica.held, replica.problem = True, ""
    again = [("info", "lease held", ""), ("info", "lease usable", "")]
    assert replica.report() == ([1, 1], again)


@pytest.mark.parametrize(
    ("failure", "problem"),
    [(ClusterError("no token"), "no token"), (ValueError("secret"), "internal error: ValueError")],
    ids=["refused", "defect"],
)
def test_a_failure_is_a_problem_and_not_the_end(failure: Exception, problem: str) -> None:
    """There may be no client yet; the next attempt may succeed."""
    replica = Replica()
    replica.failure = failure
    assert replica.report() == ([0, 0], [("warning", "lease not usable", problem)])
    replica.failure = None
    assert replica.report() == ([0, 1], [("info", "lease usable", "")])
    replica.failure = failure
    assert replica.report()[0] == [0, 0]


@pytest.mark.parametrize(
    ("held", "missing", "writes"), [(True, False, True), (False, True, True), (False, False, False)]
)
def test_the_holder_writes_the_status(held: bool, missing: bool, writes: bool) -> None:
    """While there is no Lease, every replica writes it, so that it stays current."""
    replica = Replica()
    assert not replica.source.is_writer()
    replica.held, replica.missing = held, missing
    replica.source.attempt()
    assert replica.source.is_writer() == writes


def test_a_missing_lease_is_a_condition() -> None:
    """Another problem does not count: the Lease may have a holder."""
    replica = Replica()
    replica.problem = "403"
    replica.source.attempt()
    assert replica.source.condition().holds
    replica.missing, replica.problem = True, "it does not exist"
    replica.source.attempt()
    expected = Condition("Lease", False, "NoLease", "it does not exist.")
    assert replica.source.condition() == expected


def test_it_works_in_a_thread_and_gives_the_lease_back() -> None:
    """The next holder thus need not wait until the Lease expires."""
    replica = Replica()
    replica.held = True
    replica.source.start()
    until(lambda: replica.source.held)
    replica.source.stop()
    assert replica.released == 1
    unused = Replica()
    unused.failure = ClusterError("no token")
    unused.source.start()
    until(lambda: unused.source.problem == "no token")
    unused.source.stop()
    assert unused.released == 0


def test_a_source_that_was_never_started_can_be_stopped() -> None:
    """The server may fail before."""
    Replica().source.stop()


def test_the_candidate_is_this_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Lease is that of the manifests, in the namespace of the pod."""
    made: list[object] = []
    replica = Replica()

    def lease(*arguments: object) -> Replica:
        made.extend(arguments)
        return replica

    monkeypatch.setattr("webhook.kube.client.Client", lambda kubeconfig, _: kubeconfig)
    monkeypatch.setattr("webhook.kube.lease.Lease", lease)
    options = ServeOptions(kubeconfig=Path("config"))
    source = lease_of(options, replica="rdma-webhook-0", namespace="lab")
    source.attempt()
    assert made == [Path("config"), "lab", "rdma-webhook", "rdma-webhook-0"]
