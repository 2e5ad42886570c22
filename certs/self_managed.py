"""Certificates that a replica looks after by itself, in a cluster.

The CA is in a Secret, the same for all replicas; the leaf is this replica's own and only in
memory. One thread does all of it, over and over: take or make the CA, serve a leaf of it,
have the API server trust it. Each round starts from what is there, so what failed or was
undone is done again, and a replica that starts late takes the same way as the first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from certs.api import Api
from certs.backoff import delays
from certs.bundle import Bundle
from certs.errors import CertificateError, ClusterError
from certs.issue import KeyPair
from certs.leaf import due, issue_service_leaf
from certs.secret import CaSecret
from certs.serving import ServingContext

#: Between two rounds while all is well; two small requests each.
SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where in which cluster a webhook lives."""

    namespace: str
    service: str
    #: The Secret of the CA, in that namespace.
    ca_secret: str
    #: The MutatingWebhookConfiguration, and the webhook in it, whose `caBundle` is ours.
    configuration: str
    webhook: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How far it has come."""

    #: What is wrong at the moment, as one line; "" if nothing is.
    problem: str
    #: The end of the leaf that is served; None while there is none.
    not_after: datetime | None = None
    #: Whether the CA of that leaf has been seen in `caBundle`.
    trusted: bool = False
    #: The exception, where the problem is a defect of ours.
    defect: Exception | None = field(default=None, compare=False)


class SelfManaged:
    """Keeps a serving context in certificates that the API server trusts."""

    def __init__(self, site: Site, serving: ServingContext, connect: Callable[[], Api]) -> None:
        """Prepare; nothing is done before `start`, `connect` included, which may be slow."""
        self.site = site
        self._serving = serving
        self._connect = connect
        self._secret: CaSecret | None = None
        self._bundle: Bundle | None = None
        self._ca: KeyPair | None = None
        self._leaf: KeyPair | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="certificates", daemon=True)
        #: Replaced as a whole, so that any thread may read it.
        self.status = Status(problem="not tried yet")

    def start(self) -> None:
        """Begin, in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """End it after the request that may be running; does not wait for that."""
        self._stop.set()

    def round(self) -> bool:
        """Do what there is to do, and return whether all of it was done; never raises."""
        trusted, defect = self.status.trusted, None
        try:
            self._converge()
        except (CertificateError, ClusterError) as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 -- this thread is all that renews the leaf
            problem = f"internal error, please report it: {type(error).__name__}"
            defect = error
        else:
            problem, trusted = "", True
        self.status = Status(
            problem=problem,
            not_after=self._serving.not_after,
            trusted=trusted,
            defect=defect,
        )
        return not problem

    def _run(self) -> None:
        failed = delays()
        while not self._stop.is_set():
            if self.round():
                failed = delays()
                self._stop.wait(SECONDS)
            else:
                self._stop.wait(next(failed))

    def _converge(self) -> None:
        if self._ca and self._leaf and due(self._leaf):
            self._serve(self._ca)  # before anything that needs the API server
        secret, bundle = self._stores()
        ca = secret.settle(self._ca)
        if self._ca is None:
            self._serve(ca)
        bundle.ensure(ca.certificate)
        if ca != self._ca:  # somebody replaced it; the API server does not trust ours any more
            self._serve(ca)

    def _stores(self) -> tuple[CaSecret, Bundle]:
        if self._secret is None or self._bundle is None:
            site, api = self.site, self._connect()
            self._secret = CaSecret(api, site.namespace, site.ca_secret)
            self._bundle = Bundle(api, site.configuration, site.webhook)
        return self._secret, self._bundle

    def _serve(self, ca: KeyPair) -> None:
        leaf = issue_service_leaf(ca, self.site.service, self.site.namespace)
        self._serving.use(leaf)
        self._ca, self._leaf = ca, leaf
