"""The Lease whose holder writes the status of the FabricConfiguration, and reports on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from webhook.errors import ClusterError
from webhook.kube.access import connect
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.sources.periodic import Periodic
from webhook.serve.status.content import Condition

#: The name of the Lease in the manifests.
NAME = "rdma-webhook"
#: Seconds until the next attempt after an exception.
_RECONNECT = 5.0
_NOT_TRIED = "not tried yet"


class Candidacy(Protocol):
    """The attempts of this replica to hold the Lease; see `webhook.kube.lease.Lease`."""

    @property
    def held(self) -> bool:
        """Whether this replica holds the Lease now."""

    @property
    def missing(self) -> bool:
        """Whether the Lease does not exist."""

    @property
    def problem(self) -> str:
        """The problem of the last attempt; "" without one."""

    def attempt(self) -> float:
        """Acquire or renew the Lease; return the seconds until the next attempt."""

    def release(self) -> None:
        """Give the Lease back."""


class LeaseSource:
    """A source that holds the Lease in a thread, and reports in the log and in metrics."""

    def __init__(self, connect: Callable[[], Candidacy]) -> None:
        """Prepare; the thread calls `connect`, which may be slow."""
        self._connect = connect
        self._candidacy: Candidacy | None = None
        #: The problem of the last attempt; "" without one.
        self.problem = _NOT_TRIED
        #: What was reported last: whether the Lease was held, and the problem.
        self._reported = (False, _NOT_TRIED)
        self._periodic = Periodic("lease", self.attempt, self._release)
        self.start, self.stop = self._periodic.start, self._periodic.stop

    @property
    def held(self) -> bool:
        """Whether this replica holds the Lease now."""
        return self._candidacy is not None and self._candidacy.held

    @property
    def missing(self) -> bool:
        """Whether the Lease does not exist."""
        return self._candidacy is not None and self._candidacy.missing

    def is_writer(self) -> bool:
        """Return whether this replica is to write the status.

        Without a Lease, every replica is: a status that nobody updates would mislead its readers.
        All of them write the same, and only after a change of their own state.
        """
        return self.held or self.missing

    def condition(self) -> Condition:
        """Return whether there is a Lease, for an Event."""
        if self.missing:
            return Condition("Lease", False, "NoLease", f"{self.problem}.")
        return Condition("Lease", True, "Lease", "The Lease exists.")

    def attempt(self) -> float:
        """Acquire or renew the Lease; return the seconds until the next attempt; never raises."""
        try:
            if self._candidacy is None:
                self._candidacy = self._connect()
            seconds = self._candidacy.attempt()
        except ClusterError as error:
            self.problem = str(error)
        except Exception as error:  # noqa: BLE001 -- the thread must go on to the next attempt
            self.problem = f"internal error: {type(error).__name__}"
        else:
            self.problem = self._candidacy.problem
            return seconds
        return _RECONNECT

    def _release(self) -> None:
        if self._candidacy is not None:
            self._candidacy.release()

    def poll(self) -> bool:
        """Return whether there is a change to report."""
        return (self.held, self.problem) != self._reported

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Report the current state: one line for each change."""
        (was_held, before), now = self._reported, (self.held, self.problem)
        if now[1] == _NOT_TRIED:
            return
        self._reported = held, problem = now
        metrics.lease.held.set(held)
        metrics.lease.successful.set(not problem)
        if held != was_held:
            log.write("info", "lease held" if held else "lease lost")
        if problem and problem != before:
            log.write("warning", "lease not usable", problem=problem)
        elif before not in ("", _NOT_TRIED) and not problem:
            log.write("info", "lease usable")


def lease_of(options: ServeOptions, *, replica: str, namespace: str) -> LeaseSource:
    """Return the Lease of the installation in a namespace, with this replica as a candidate."""
    return LeaseSource(partial(_connect, options.kubeconfig, namespace, replica))


def _connect(kubeconfig: Path | None, namespace: str, replica: str) -> Candidacy:
    client = connect(kubeconfig)
    from webhook.kube.lease import Lease  # noqa: PLC0415 -- slow to import

    return Lease(client, namespace, NAME, replica)
