"""One round of certificate maintenance: `caBundle`, the Secret, and the served leaf.

A round starts from the current state and does whatever is missing. So anything that failed or
was undone is done again, and a replica that starts late follows the same path as the first.
All replicas do the same. `caBundle` is read before the Secret, and each is written only if it
is unchanged since the read, so no replica undoes a write that is based on a newer state.
"""

from __future__ import annotations

from collections import deque

from certs.authorities import Authorities, describe_changes, unexpired_cas
from certs.ca_bundle import BundleContents, CaBundles
from certs.clock import Clock, ObservedDurations
from certs.durations import Durations
from certs.errors import ApiError, CertificateError
from certs.installation import Api, Installation
from certs.issue import expiry, issue_leaf, renewal_due
from certs.pem import KeyPair, pem_fingerprint
from certs.rotation import RotationContext, drain_id, keep_trusting, new_ca, step, step_imminent
from certs.secret import IMMUTABLE, IMMUTABLE_AND_EMPTY, CaSecret, SecretContent
from certs.serving import ServingContext

#: The number of attempts of a round to write the Secret while other replicas are faster.
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
        durations: Durations,
        clock: Clock,
    ) -> None:
        self._durations = durations
        self._clock = clock
        self._secret = CaSecret(api, installation)
        self._bundles = CaBundles(api, installation, clock)
        longest_silence = durations.drain
        self._published_durations = ObservedDurations(clock, longest_silence)
        self._drain_durations = ObservedDurations(clock, longest_silence)
        self.served = ServedLeaf(installation, serving, durations, clock)
        #: The CAs in the Secret, as last known; None before the first round.
        self.authorities: Authorities | None = None
        #: A problem for an administrator to fix, although API servers trust the leaf; "" if none.
        self.warning = ""
        #: The reason why a webhook configuration lacks the CAs although the round was completed, so
        #: that the next round comes soon; "" if none lacks them.
        self.unpublished_reason = ""
        #: The changes made, for the log; the oldest notes are dropped if nobody reads them.
        self.notes: deque[str] = deque(maxlen=_NOTES)

    @property
    def due(self) -> bool:
        """Whether a round has something to do although no object has changed."""
        authorities = self.authorities
        if authorities is None or step_imminent(authorities, self._clock.now()):
            return True
        return self.served.due(authorities.current)

    def round(self) -> None:
        """Do whatever is missing; raise CertificateError or ApiError if that is impossible.

        When it returns, the API server trusts the served leaf, at least when it calls through
        the first of the webhook configurations that exist; `unpublished_reason` and
        `warning` have the details.
        """
        self.served.renew()  # before anything that needs the API server
        authorities, bundles = self._update_secret()
        if self.served.issuer is None:
            self.served.serve(authorities.current)
        bundles = self._bundles.publish(authorities.trusted_cas, bundles, self.notes.append)
        self.unpublished_reason = bundles.access_problem
        self.warning = self.warning or bundles.missing_problem
        self._published_durations.observe(bundles.fingerprints, bundles.revision)
        self.served.follow(authorities.current, bundles, self._published_durations)

    def _update_secret(self) -> tuple[Authorities, BundleContents]:
        """Bring the Secret up to date; return its CAs, and `caBundle` as read before."""
        for _ in range(_ATTEMPTS):
            bundles = self._bundles.read()
            self._published_durations.observe(bundles.fingerprints, bundles.revision)
            content = self._secret.read(self._clock.now())
            self.warning = f"{self._secret}: {IMMUTABLE}" if content.immutable else ""
            authorities = self._next_authorities(content, bundles)
            if content.immutable:  # go on issuing from, trusting and publishing what it contains
                self.authorities = authorities
                return authorities, bundles
            if self._secret.write(authorities, content):
                self._remember(content, authorities)
                return authorities, bundles
        raise ApiError(f"another client keeps changing {self._secret}")

    def _next_authorities(self, content: SecretContent, bundles: BundleContents) -> Authorities:
        authorities = keep_trusting(
            self._base_authorities(content), *self._missing_cas(content, bundles)
        )
        if content.immutable:
            return authorities
        self._drain_durations.observe([drain_id(authorities)])
        return step(authorities, self._context)

    @property
    def _context(self) -> RotationContext:
        return RotationContext(
            now=self._clock.now(),
            durations=self._durations,
            published_durations=self._published_durations,
            drain_durations=self._drain_durations,
        )

    def _base_authorities(self, content: SecretContent) -> Authorities:
        """Return the CAs in the Secret, else those last known to this replica, else a new one."""
        authorities = content.authorities or self.authorities
        if authorities is not None:
            return authorities
        if content.problem:
            raise CertificateError(
                f"{self._secret}: {content.problem}; repair it, or delete it to get a new CA"
            )
        if content.immutable:  # each replica would have its own CA
            raise CertificateError(f"{self._secret}: {IMMUTABLE_AND_EMPTY}")
        return Authorities(current=new_ca(self._context))

    def _missing_cas(self, content: SecretContent, bundles: BundleContents) -> list[bytes]:
        """Return CAs in `caBundle` whose leaves a replica may serve, and that the Secret may lack.

        A replica that has just started, or that restores the Secret, does not have the earlier
        CAs, so it returns all of them. Any other replica returns the issuer of its own leaf.
        """
        if self.authorities is None or content.authorities is None:
            return unexpired_cas(bundles.pem, self._clock.now()) if bundles.pem else []
        served = [self.served.issuer.certificate] if self.served.issuer else []
        return [ca for ca in served if bundles.trusted_by_any(ca)]

    def _remember(self, content: SecretContent, authorities: Authorities) -> None:
        if content.authorities is None:
            action = "restored" if self.authorities else "created"
            reason = content.problem or "it did not exist"
            self.notes.append(f"{action} {self._secret}: {reason}")
        self.notes.extend(describe_changes(content.authorities, authorities))
        self.authorities = authorities


# The leaf that a replica serves, and the CA that issued it.


class ServedLeaf:
    """A leaf in memory, replaced when it is due and when another CA issues."""

    def __init__(
        self,
        installation: Installation,
        serving: ServingContext,
        durations: Durations,
        clock: Clock,
    ) -> None:
        self._names = installation.dns_names
        self._serving = serving
        self._durations = durations
        self._clock = clock
        #: None before the first leaf.
        self.issuer: KeyPair | None = None
        self.leaf: KeyPair | None = None

    def serve(self, ca: KeyPair) -> None:
        """Issue a leaf with this CA and serve it from the next handshake on."""
        now, lifetime = self._clock.now(), self._durations.leaf
        leaf = issue_leaf(ca, self._names, lifetime=lifetime, now=now)
        self._serving.use(leaf)
        self.issuer, self.leaf = ca, leaf

    def due(self, current: KeyPair) -> bool:
        """Return whether to replace the leaf: because of its age, or because another CA issues."""
        if self.leaf is None or self.issuer != current:
            return True
        return renewal_due(self.leaf, self._clock.now())

    def renew(self) -> None:
        """Replace a leaf that is due with one from the same CA; needs no API server."""
        now = self._clock.now()
        if self.issuer and self.leaf and renewal_due(self.leaf, now) and expiry(self.issuer) > now:
            self.serve(self.issuer)

    def follow(
        self, current: KeyPair, bundles: BundleContents, trust_durations: ObservedDurations
    ) -> None:
        """Change to the CA that issues now, as soon as every API server trusts it.

        Changes at once if waiting would not help: the CA of the served leaf has expired, or
        is no longer trusted.
        """
        if self.issuer in (None, current) or not bundles.trusted_by_all(current.certificate):
            return
        if self._issuer_is_trusted(bundles):
            duration = trust_durations.of(pem_fingerprint(current.certificate))
            if duration is None or duration < self._durations.propagation:
                return
        self.serve(current)

    def _issuer_is_trusted(self, bundles: BundleContents) -> bool:
        assert self.issuer is not None
        valid = expiry(self.issuer) > self._clock.now()
        return valid and bundles.trusted_by_all(self.issuer.certificate)
