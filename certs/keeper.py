"""One round of certificate maintenance: `caBundle`, the Secret, and the served leaf.

A round starts from the current state and does whatever is missing. So anything that failed or
was undone is done again, and a replica that starts late follows the same path as the first.
All replicas do the same. `caBundle` is read before the Secret, and each is written only if it
is unchanged since the read, so no replica undoes what another wrote with newer knowledge.
"""

from __future__ import annotations

from collections import deque

from certs.authorities import Authorities, describe_changes, unexpired_cas
from certs.ca_bundle import CaBundles, PublishedSet
from certs.clock import Clock, SeenSince
from certs.errors import ApiError, CertificateError
from certs.installation import Api, Installation
from certs.issue import expiry, issue_leaf, renewal_due
from certs.lifetimes import Lifetimes
from certs.pem import KeyPair, pem_fingerprint
from certs.rotation import RotationContext, adopt, drain_key, new_ca, step, step_near
from certs.secret import IMMUTABLE, CaSecret, SecretContent
from certs.serving import ServingContext

#: How many times a round tries to write the Secret while other replicas are faster.
_ATTEMPTS = 5
#: The number of notes that are kept for the log.
_NOTES = 50


class Keeper:
    """The state of one replica, and its rounds."""

    def __init__(
        self,
        installation: Installation,
        api: Api,
        serving: ServingContext,
        lifetimes: Lifetimes,
        clock: Clock,
    ) -> None:
        self._lifetimes = lifetimes
        self._clock = clock
        self._secret = CaSecret(api, installation)
        self._bundles = CaBundles(api, installation, clock)
        gap = lifetimes.drain
        self._published, self._draining = SeenSince(clock, gap), SeenSince(clock, gap)
        self.served = ServedLeaf(installation, serving, lifetimes, clock)
        #: The CAs in the Secret, as last known; None before the first round.
        self.authorities: Authorities | None = None
        #: What a person should do although everything is trusted; "" if nothing.
        self.warning = ""
        #: Why one of the configurations has not got the CAs, so that the next round tries again.
        self.failure = ""
        #: What was done, for the log; the oldest notes are dropped if nobody reads them.
        self.notes: deque[str] = deque(maxlen=_NOTES)

    @property
    def due(self) -> bool:
        """Whether a round has something to do although no object has changed."""
        known = self.authorities
        if known is None or step_near(known, self._clock.now()):
            return True
        return self.served.due(known.current)

    def round(self) -> None:
        """Do whatever is missing; CertificateError or ApiError if that is impossible.

        When it returns, the API server trusts the leaf that is served, at least when it calls
        through the first of the configurations that exist; `failure` and `warning` say more.
        """
        self.served.renew()  # before anything that needs the API server
        authorities, published = self._update_secret()
        if self.served.issuer is None:
            self.served.serve(authorities.current)
        published = self._bundles.publish(authorities.trusted, published, self.notes.append)
        self.failure, self.warning = published.failure, self.warning or published.missing
        self._published.observe(published.fingerprints, published.edition)
        self.served.follow(authorities.current, published, self._published)

    def _update_secret(self) -> tuple[Authorities, PublishedSet]:
        """Bring the Secret up to date; return its CAs, and `caBundle` as read before."""
        for _ in range(_ATTEMPTS):
            published = self._bundles.read()
            self._published.observe(published.fingerprints, published.edition)
            found = self._secret.read(self._clock.now())
            self.warning = f"{self._secret}: {IMMUTABLE}" if found.immutable else ""
            authorities = self._wanted(found, published)
            if found.immutable:  # go on issuing from, trusting and publishing what it contains
                self.authorities = authorities
                return authorities, published
            if self._secret.write(authorities, found):
                self._remember(found, authorities)
                return authorities, published
        raise ApiError(f"somebody else keeps changing {self._secret}")

    def _wanted(self, found: SecretContent, published: PublishedSet) -> Authorities:
        authorities = adopt(self._known(found), *self._missing_cas(found, published))
        if found.immutable:
            return authorities
        self._draining.observe([drain_key(authorities)])
        return step(authorities, self._view)

    @property
    def _view(self) -> RotationContext:
        return RotationContext(
            now=self._clock.now(),
            lifetimes=self._lifetimes,
            published=self._published,
            draining=self._draining,
        )

    def _known(self, found: SecretContent) -> Authorities:
        """Return the CAs in the Secret, else those that were there, else a new one."""
        known = found.authorities or self.authorities
        if known is not None:
            return known
        if found.problem:
            raise CertificateError(
                f"{self._secret}: {found.problem}; repair it, or delete it to get a new CA"
            )
        if self.warning:  # immutable and empty: each replica would have its own CA
            raise CertificateError(self.warning)
        return Authorities(current=new_ca(self._view))

    def _missing_cas(self, found: SecretContent, published: PublishedSet) -> list[bytes]:
        """Return CAs in `caBundle` that a replica may serve, although the Secret may lack them.

        A replica that has just started, or that restores the Secret, cannot know what was there
        before, so it returns all of them. Any other replica returns the issuer of its own leaf.
        """
        if self.authorities is None or found.authorities is None:
            return unexpired_cas(published.pem, self._clock.now()) if published.pem else []
        issuer = self.served.issuer
        return [issuer.certificate] if issuer and published.mentions(issuer.certificate) else []

    def _remember(self, found: SecretContent, authorities: Authorities) -> None:
        if found.authorities is None:
            what = "restored" if self.authorities else "made"
            why = found.problem or "it did not exist"
            self.notes.append(f"{what} {self._secret}: {why}")
        self.notes.extend(describe_changes(found.authorities, authorities))
        self.authorities = authorities


# The leaf that a replica serves, and the CA that issued it.


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
