"""The leaf that a replica serves, and the CA that issued it."""

from __future__ import annotations

from certs.ca_bundles import PublishedSet
from certs.clock import Clock, SeenSince
from certs.installation import Installation
from certs.issue import expiry, issue_leaf, renewal_due
from certs.lifetimes import Lifetimes
from certs.pem import KeyPair, pem_fingerprint
from certs.serving import ServingContext


class ServedLeaf:
    """A leaf in memory, replaced when it is due and when another CA issues."""

    def __init__(
        self,
        installation: Installation,
        serving: ServingContext,
        lifetimes: Lifetimes,
        clock: Clock,
    ) -> None:
        self._names = installation.dns_names
        self._serving = serving
        self._lifetimes = lifetimes
        self._clock = clock
        #: None before the first leaf.
        self.issuer: KeyPair | None = None
        self.leaf: KeyPair | None = None

    def serve(self, ca: KeyPair) -> None:
        """Issue a leaf with this CA and serve it from the next handshake on."""
        now, lifetime = self._clock.now(), self._lifetimes.leaf
        leaf = issue_leaf(ca, self._names, lifetime=lifetime, now=now)
        self._serving.use(leaf)
        self.issuer, self.leaf = ca, leaf

    def due(self, current: KeyPair) -> bool:
        """Return whether the leaf is to be replaced: for its age, or since another CA issues."""
        if self.leaf is None or self.issuer != current:
            return True
        return renewal_due(self.leaf, self._clock.now())

    def renew(self) -> None:
        """Replace a leaf that is due with one from the same CA; needs no API server."""
        now = self._clock.now()
        if self.issuer and self.leaf and renewal_due(self.leaf, now) and expiry(self.issuer) > now:
            self.serve(self.issuer)

    def follow(self, current: KeyPair, published: PublishedSet, seen: SeenSince) -> None:
        """Change to the CA that issues now, as soon as every API server trusts it.

        Changes at once if waiting would not help: the CA of the served leaf has expired, or
        is no longer trusted.
        """
        if self.issuer in (None, current) or not published.holds(current.certificate):
            return
        if self._issuer_is_trusted(published):
            lasted = seen.duration(pem_fingerprint(current.certificate))
            if lasted is None or lasted < self._lifetimes.propagation:
                return
        self.serve(current)

    def _issuer_is_trusted(self, published: PublishedSet) -> bool:
        assert self.issuer is not None
        valid = expiry(self.issuer) > self._clock.now()
        return valid and published.holds(self.issuer.certificate)
