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
from http import HTTPStatus

from kubernetes.client import CoordinationV1Api
from kubernetes.client.exceptions import ApiException
from kubernetes.leaderelection.electionconfig import Config
from kubernetes.leaderelection.leaderelection import LeaderElection
from kubernetes.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from webhook.kube.api import message_of
from webhook.kube.client import BROKEN, FIELD_MANAGER, SECONDS, Client, parsed

#: Seconds after which another replica takes over an unrenewed Lease. These are the times of
#: controllers. Source: client-go and component-base, config/v1alpha1/defaults.go.
LEASE_SECONDS = 15
#: Seconds after its last renewal in which a replica counts as the holder: less than LEASE_SECONDS,
#: so that it stops before another one starts.
HELD_SECONDS = 10
#: Seconds between renewals by the holder, and between attempts of the other replicas.
RENEW_SECONDS, RETRY_SECONDS = 5, 2
_REMEDY = (
    "apply the webhook's manifests again (kubectl apply -k, docs/installation.md), since the "
    "webhook may not create it"
)


class Lease:
    """A Lease that this process tries to hold; `attempt` and `release` block, and none raises."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare, without a request. `identity`: a name that differs between replicas."""
        self._client = client
        self._clock = clock
        self._lock = _Lock(client, namespace, name, identity)
        config = Config(  # type: ignore[no-untyped-call]
            self._lock, LEASE_SECONDS, HELD_SECONDS, RETRY_SECONDS, _ignore, _ignore
        )
        self._election = LeaderElection(config)  # type: ignore[no-untyped-call]
        self._held_until = 0.0

    @property
    def held(self) -> bool:
        """Whether this process holds the Lease; any thread may ask."""
        return self._clock() < self._held_until

    @property
    def missing(self) -> bool:
        """Whether the Lease did not exist at the last attempt, so that no replica holds it."""
        return self._lock.missing

    @property
    def problem(self) -> str:
        """The problem of the last attempt; "" if this process or another one may hold the Lease."""
        return self._lock.problem

    def attempt(self) -> float:
        """Acquire or renew the Lease; return the seconds until the next attempt."""
        began = self._clock()
        self._lock.clear()
        try:
            acquired = bool(self._election.try_acquire_or_renew())  # type: ignore[no-untyped-call]
        except BROKEN as error:
            acquired, self._lock.problem = False, str(self._client.unreachable(error))
        self._held_until = began + HELD_SECONDS if acquired else 0.0
        return RENEW_SECONDS if acquired else RETRY_SECONDS

    def release(self) -> None:
        """Give the Lease back, so that another replica need not wait for its expiry."""
        if not self.held:
            return
        self._held_until = 0.0
        now = str(datetime.now(UTC))
        nobody = LeaderElectionRecord("", "1", now, now)  # type: ignore[no-untyped-call]
        with suppress(*BROKEN):
            # `update` replaces the record that was read last.
            self._lock.get(self._lock.name, self._lock.namespace)
            self._lock.update(self._lock.name, self._lock.namespace, nobody)


class _Lock(LeaseLock):
    """The official client's lock, with our credentials, timeouts, and the reasons of failures."""

    def __init__(self, client: Client, namespace: str, name: str, identity: str) -> None:
        super().__init__(name, namespace, identity)  # type: ignore[no-untyped-call]
        api = CoordinationV1Api(client.api)
        for method in ("read_namespaced_lease", "replace_namespaced_lease"):
            setattr(api, method, partial(getattr(api, method), _request_timeout=SECONDS))
        self.api_instance = api
        self.missing, self.problem = False, ""

    def clear(self) -> None:
        """Forget the problem of the last attempt."""
        self.missing, self.problem = False, ""

    def get(self, name: str, namespace: str) -> tuple[bool, object]:
        """Read the Lease, and note why that fails."""
        exists, answer = super().get(name, namespace)  # type: ignore[no-untyped-call]
        if isinstance(answer, ApiException):
            self._note("read", answer)
        return exists, answer

    def create(self, *_: object, **__: object) -> bool:
        """Create nothing: the webhook has no right to."""
        return False

    def update(self, name: str, namespace: str, updated_record: LeaderElectionRecord) -> bool:
        """Write a record, and note why that fails."""
        assert self.lease_reference is not None
        self.lease_reference.spec = self.get_lease_spec(  # type: ignore[no-untyped-call]
            updated_record, self.lease_reference.spec
        )
        try:
            self.api_instance.replace_namespaced_lease(
                name, namespace, self.lease_reference, field_manager=FIELD_MANAGER
            )
        except ApiException as error:
            self._note("update", error)
            return False
        return True

    def _note(self, verb: str, error: ApiException) -> None:
        lease = f"the Lease {self.namespace}/{self.name}"
        self.missing = error.status == HTTPStatus.NOT_FOUND
        if self.missing:
            self.problem = f"{lease} does not exist: {_REMEDY}"
        elif error.status != HTTPStatus.CONFLICT:  # another replica was faster
            answer = message_of(parsed((error.body or "").encode()))
            self.problem = (
                f"cannot {verb} {lease}: the API server answered {error.status}: {answer}"
            )


def _ignore() -> None:
    """Do nothing: callers of `attempt` act on its result."""
