"""A Lease of Kubernetes, held by one replica at a time.

The algorithm is that of client-go (tools/leaderelection): a replica compares times of its own clock
only, so a Lease may contain any times, of any writer. The official Python client has it too, but
cannot read some times that the API server accepts, such as those of the year 0, and writes back
fields of other clients, which the policy on the Lease rejects. The Lease itself comes with the
manifests, so that no right to create Leases is needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from webhook.errors import ClusterError
from webhook.kube.api import message_of
from webhook.kube.remedies import APPLY_AGAIN

if TYPE_CHECKING:
    from webhook.kube.client import Client, Object

#: Seconds after which another replica takes over an unrenewed Lease. These are the times of
#: controllers. Source: client-go and component-base, config/v1alpha1/defaults.go.
LEASE_SECONDS = 15
#: Seconds after its last renewal in which a replica counts as the holder: less than LEASE_SECONDS,
#: so that it stops before another one starts.
HELD_SECONDS = 10
#: Seconds between renewals by the holder, and between attempts of the other replicas.
RENEW_SECONDS, RETRY_SECONDS = 5, 2
_REMEDY = f"{APPLY_AGAIN}, since the webhook has no right to create it"


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
        self._identity = identity
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
        self._title = f"the Lease {namespace}/{name}"
        #: The spec that was read last, and when it was first read, by the clock.
        self._observed: object = None
        self._observed_at = 0.0
        #: When this process acquired the Lease, as written into it.
        self._acquired = ""
        self._held_until = 0.0
        #: Whether the Lease did not exist at the last attempt, so that no replica holds it.
        self.missing = False
        #: The problem of the last attempt; "" if this process or another one may hold the Lease.
        self.problem = ""

    @property
    def held(self) -> bool:
        """Whether this process holds the Lease; any thread may ask."""
        return self._clock() < self._held_until

    def attempt(self) -> float:
        """Acquire or renew the Lease; return the seconds until the next attempt."""
        began = self._clock()
        if not self.held:
            self._acquired = ""
        try:
            attempt = self._acquire()
        except ClusterError as error:
            attempt = _Attempt(problem=str(error))
        self._held_until = began + HELD_SECONDS if attempt.acquired else 0.0
        self.missing, self.problem = attempt.missing, attempt.problem
        return RENEW_SECONDS if attempt.acquired else RETRY_SECONDS

    def release(self) -> None:
        """Give the Lease back, so that another replica need not wait for its expiry."""
        if not self.held:
            return
        self._held_until = 0.0
        with suppress(ClusterError):
            status, lease = self._client.send("GET", self._path)
            if status == HTTPStatus.OK and _spec(lease).get("holderIdentity") == self._identity:
                self._write(lease, "", 1)

    def _acquire(self) -> _Attempt:
        """Acquire or renew the Lease; raises ClusterError if there is no answer."""
        status, lease = self._client.send("GET", self._path)
        if status != HTTPStatus.OK:
            return self._failure("read", status, lease)
        if not self._is_free(_spec(lease)):
            return _Attempt()
        status, answer = self._write(lease, self._identity, LEASE_SECONDS)
        if status != HTTPStatus.OK:
            return self._failure("update", status, answer)
        return _Attempt(acquired=True)

    def _is_free(self, spec: Object) -> bool:
        """Return whether this replica may take the Lease or holds it."""
        now = self._clock()
        if spec != self._observed:
            self._observed, self._observed_at = spec, now
        return (
            spec.get("holderIdentity", "") in ("", self._identity)
            or now >= self._observed_at + LEASE_SECONDS
        )

    def _write(self, lease: Object, holder: str, seconds: int) -> tuple[int, Object]:
        """Replace the Lease that was read, with the fields of its spec that the policy allows."""
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        self._acquired = self._acquired or now
        spec: Object = {
            "holderIdentity": holder,
            "leaseDurationSeconds": seconds,
            "acquireTime": self._acquired,
            "renewTime": now,
        }
        return self._client.put(self._path, {**lease, "spec": spec})

    def _failure(self, verb: str, status: int, answer: Object) -> _Attempt:
        if status == HTTPStatus.NOT_FOUND:
            return _Attempt(missing=True, problem=f"{self._title} does not exist; {_REMEDY}")
        if status == HTTPStatus.CONFLICT:  # another replica was faster
            return _Attempt()
        reason = f"the API server answered {status}: {message_of(answer)}"
        return _Attempt(problem=f"cannot {verb} {self._title}: {reason}")


class _Attempt(NamedTuple):
    """The result of an attempt to acquire or renew the Lease."""

    acquired: bool = False
    missing: bool = False
    problem: str = ""


def _spec(lease: Object) -> Object:
    spec = lease.get("spec")
    return spec if isinstance(spec, dict) else {}
