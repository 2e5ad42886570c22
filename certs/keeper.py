"""One round of looking after certificates: `caBundle`, the Secret, and the leaf that is served.

A round starts from what is there, and does what there is to do, so what failed or was undone
is done again, and a replica that starts late takes the same way as the first. All replicas
do the same. `caBundle` is read before the Secret, and each is written only as it was read, so
nobody undoes what another wrote by later knowledge.
"""

from __future__ import annotations

from collections import deque
from itertools import repeat

from certs.authorities import Authorities, describe_changes, unexpired_cas
from certs.ca_bundle import CaBundle, Published
from certs.clock import Clock, SeenSince
from certs.errors import ApiError, CertificateError
from certs.installation import Api, Installation
from certs.lifetimes import Lifetimes
from certs.rotation import View, adopt, draining, fresh, step
from certs.secret import IMMUTABLE, CaSecret, SecretContent
from certs.served import Served
from certs.serving import ServingContext

#: Other replicas would have to be faster than this one, again and again.
_TRIES = 5
#: How many notes wait to be logged.
_NOTES = 50


class Keeper:
    """What one replica knows, and what it does with it."""

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
        self._bundle = CaBundle(api, installation, clock)
        gap = lifetimes.drain
        self._published, self._draining = SeenSince(clock, gap), SeenSince(clock, gap)
        self.served = Served(installation, serving, lifetimes, clock)
        #: As they are in the Secret, as far as known.
        self.authorities: Authorities | None = None
        #: What somebody should do though all is trusted; "" if nothing.
        self.warning = ""
        #: What was done, for the log; the oldest are lost where nobody reads them.
        self.notes: deque[str] = deque(maxlen=_NOTES)

    def round(self) -> None:
        """Do what there is to do; CertificateError or ApiError where that is impossible.

        When it returns, the API server trusts the leaf that is served.
        """
        self.served.renew()  # before anything that needs the API server
        authorities, published = self._settle()
        if self.served.issuer is None:
            self.served.serve(authorities.current)
        published = self._publish(authorities, published)
        self._published.observe(published.fingerprints, published.edition)
        self.served.follow(authorities.current, published, self._published)

    def _publish(self, authorities: Authorities, before: Published) -> Published:
        after = self._bundle.publish(authorities.trusted, before)
        if after is not before:
            self.notes.append(f"wrote {self._bundle}: {before.problem or 'it had others'}")
        return after

    def _settle(self) -> tuple[Authorities, Published]:
        """Have the Secret say what it should; return that, and `caBundle` as it was before."""
        for _ in repeat(None, _TRIES):
            published = self._bundle.read()
            self._published.observe(published.fingerprints, published.edition)
            found = self._secret.read(self._clock.now())
            self.warning = f"{self._secret}: {IMMUTABLE}" if found.immutable else ""
            authorities = self._wanted(found, published)
            if self.warning:  # what is there goes on being issued by, trusted and healed
                self.authorities = authorities
                return authorities, published
            if self._secret.write(authorities, found):
                self._remember(found, authorities)
                return authorities, published
        raise ApiError(f"{self._secret} is changed all the time by somebody else")

    def _wanted(self, found: SecretContent, published: Published) -> Authorities:
        authorities = adopt(self._known(found), *self._strangers(found, published))
        if found.immutable:
            return authorities
        self._draining.observe([draining(authorities)])
        return step(authorities, self._view)

    @property
    def _view(self) -> View:
        return View(
            now=self._clock.now(),
            lifetimes=self._lifetimes,
            published=self._published,
            draining=self._draining,
        )

    def _known(self, found: SecretContent) -> Authorities:
        """Return what is in the Secret, else what was, else a new CA."""
        known = found.authorities or self.authorities
        if known is not None:
            return known
        if found.problem:
            msg = f"{self._secret}: {found.problem}; repair it, or delete it for a new CA"
            raise CertificateError(msg)
        if self.warning:  # and empty: each replica would have a CA of its own
            raise CertificateError(self.warning)
        return Authorities(current=fresh(self._view))

    def _strangers(self, found: SecretContent, published: Published) -> list[bytes]:
        """Return the CAs in `caBundle` that somebody may serve, though the Secret lacks them.

        Who has just started, or restores the Secret, cannot know what was before: so all of
        them. Anybody else knows its own.
        """
        if self.authorities is None or found.authorities is None:
            return unexpired_cas(published.pem, self._clock.now()) if published.pem else []
        issuer = self.served.issuer
        return [issuer.certificate] if issuer and published.holds(issuer.certificate) else []

    def _remember(self, found: SecretContent, authorities: Authorities) -> None:
        if found.authorities is None:
            what = "restored" if self.authorities else "made"
            why = found.problem or "there was none"
            self.notes.append(f"{what} {self._secret}: {why}")
        self.notes.extend(describe_changes(found.authorities, authorities))
        self.authorities = authorities
