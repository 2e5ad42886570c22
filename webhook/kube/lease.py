"""A Lease of Kubernetes, held by one replica at a time.

The algorithm comes from the official client (kubernetes.leaderelection), which compares times of
one clock only. Its own loop is not used: it cannot be stopped, and ends the process on a mistake.
The Lease itself comes with the manifests, so that no right to create Leases is needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from kubernetes.client import CoordinationV1Api
from kubernetes.leaderelection.electionconfig import Config
from kubernetes.leaderelection.leaderelection import LeaderElection
from kubernetes.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from webhook.kube.client import BROKEN, SECONDS, Client

#: Seconds after which another replica takes over an unrenewed Lease.
LEASE_SECONDS = 60
#: Seconds between attempts to acquire or renew: 13,000 requests a day from two replicas.
RENEW_SECONDS = 20
_DEADLINE = 50  # only the loop that is not used reads it


class Lease:
    """A Lease that this process tries to hold; every method blocks, and none raises."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare, without a request. `identity`: a name that differs between replicas."""
        self._clock = clock
        self._lock = _Lock(client, namespace, name, identity)
        config = Config(self._lock, LEASE_SECONDS, _DEADLINE, RENEW_SECONDS, _ignore, _ignore)  # type: ignore[no-untyped-call]
        self._election = LeaderElection(config)  # type: ignore[no-untyped-call]
        self._held = False
        self._next = 0.0

    def held(self) -> bool:
        """Acquire or renew the Lease if due; return whether this process holds it."""
        now = self._clock()
        if now >= self._next:
            self._next = now + RENEW_SECONDS
            self._held = self._tried()
        return self._held

    def release(self) -> None:
        """Give the Lease back, so that another replica need not wait for its expiry."""
        if not self._held:
            return
        self._held = False
        now = str(datetime.now(UTC))
        nobody = LeaderElectionRecord("", "1", now, now)  # type: ignore[no-untyped-call]
        with suppress(*BROKEN):
            # `update` replaces the record that was read last.
            self._lock.get(self._lock.name, self._lock.namespace)  # type: ignore[no-untyped-call]
            self._lock.update(self._lock.name, self._lock.namespace, nobody)  # type: ignore[no-untyped-call]

    def _tried(self) -> bool:
        try:
            return bool(self._election.try_acquire_or_renew())  # type: ignore[no-untyped-call]
        except BROKEN:
            return False


class _Lock(LeaseLock):
    """The official client's lock, with our credentials and a timeout for each request."""

    def __init__(self, client: Client, namespace: str, name: str, identity: str) -> None:
        super().__init__(name, namespace, identity)  # type: ignore[no-untyped-call]
        api = CoordinationV1Api(client.api)
        for method in (
            "read_namespaced_lease",
            "create_namespaced_lease",
            "replace_namespaced_lease",
        ):
            setattr(api, method, partial(getattr(api, method), _request_timeout=SECONDS))
        self.api_instance = api


def _ignore() -> None:
    """Do nothing: callers of `held` act on its result."""
