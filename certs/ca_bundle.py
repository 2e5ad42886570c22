"""`caBundle`: what the API server trusts when it calls the webhook.

`CaBundle` is that of one webhook configuration, `CaBundles` that of all by which API servers call
one Service.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from certs.clock import Clock
from certs.errors import ApiError, CertificateError
from certs.installation import ADMISSION, Api, Installation, Object, WebhookConfiguration
from certs.pem import fingerprint, load_certificates, pem_fingerprint, to_pem

# `caBundle` of one webhook configuration.
#
# It is written by server-side apply of that one field, so that whoever installs the
# configuration (kubectl, Helm, Argo CD) owns the rest. An apply would also create a missing
# object, with this field alone. The object is therefore read first, and the apply carries its
# uid and resourceVersion: the API server rejects it unless the object is unchanged.

#: Seconds between two writes: at first, and at most.
SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
#: A write counts as undone if the next one follows within twice the last pause and these seconds.
STAYS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The content of `caBundle`."""

    #: The certificates, PEM; empty if the field is empty or malformed (Go would read a part of it).
    pem: bytes = b""
    fingerprints: frozenset[str] = frozenset()
    #: Of the object that contains the field; "" if there is none to write to.
    uid: str = ""
    version: str = ""
    #: Changes with every change of the object's spec, and with nothing else.
    generation: str = ""
    #: Why there is no content, or what is wrong with it; "" if nothing is.
    problem: str = ""
    #: The problem is that the field could not be read or written.
    failed: bool = False

    @property
    def edition(self) -> str:
        """Differs between two reads if the field was changed, even if it was changed back."""
        return f"{self.uid} {self.generation}"

    def holds(self, certificate: bytes) -> bool:
        """Return whether a CA (PEM) is trusted."""
        return pem_fingerprint(certificate) in self.fingerprints


class CaBundle:
    """The `caBundle` of one webhook of a webhook configuration."""

    def __init__(self, api: Api, configuration: WebhookConfiguration, clock: Clock) -> None:
        self._api = api
        self._configuration = configuration
        self._limit = WriteLimit(clock)

    def __str__(self) -> str:
        return f"caBundle of {self._configuration}"

    def read(self) -> Published:
        """Return the content; ApiError if the API server does not answer."""
        configuration = self._configuration
        found = self._api.read(configuration.path)
        if found is None:
            return Published(problem=f"{configuration} does not exist yet")
        for webhook in found.get("webhooks") or ():
            if webhook.get("name") == configuration.webhook:
                bundle = (webhook.get("clientConfig") or {}).get("caBundle") or ""
                return parse_ca_bundle(str(bundle), found["metadata"])
        return Published(problem=f"{configuration} has no webhook {configuration.webhook} yet")

    def publish(self, wanted: Iterable[bytes], found: Published) -> Published:
        """Have the API server trust exactly these CAs (PEM, one each); return the new content.

        Writes only if `found` differs. Raises ApiError if there is nothing to write to, or if
        somebody else undoes the write.
        """
        if not found.uid:
            raise ApiError(found.problem)
        pems = tuple(wanted)
        if found.fingerprints == {pem_fingerprint(one) for one in pems}:
            return found
        if self._limit.pause:
            raise ApiError(f"somebody else keeps changing {self}")
        self._api.apply(self._configuration.path, self._fields(b"".join(pems), found))
        self._limit.record_write()
        again = self.read()  # another replica may have written the same first
        if not all(again.holds(one) for one in pems):
            raise ApiError(
                f"{self} does not keep what is written to it: another client or policy reverts it"
            )
        return again

    def _fields(self, pem: bytes, found: Published) -> Object:
        client = {"caBundle": b64encode(pem).decode()}
        return {
            "apiVersion": ADMISSION,
            "kind": self._configuration.kind,
            "metadata": {
                "name": self._configuration.name,
                "uid": found.uid,
                "resourceVersion": found.version,
            },
            "webhooks": [{"name": self._configuration.webhook, "clientConfig": client}],
        }


def parse_ca_bundle(bundle: str, metadata: Object) -> Published:
    """Parse a `caBundle` (base64 of PEM); one that is malformed in part holds nothing."""
    pem, problem = b"", ""
    try:
        found = load_certificates(b64decode(bundle, validate=True)) if bundle else []
        pem = b"".join(to_pem(found))
    except (CertificateError, binascii.Error):
        found, problem = [], "it did not contain base64-encoded PEM certificates"
    return Published(
        pem=pem,
        fingerprints=frozenset(fingerprint(one) for one in found),
        uid=str(metadata.get("uid") or ""),
        version=str(metadata.get("resourceVersion") or ""),
        generation=str(metadata.get("generation") or ""),
        problem=problem if bundle else "it was empty",
    )


class WriteLimit:
    """At most one write a second; the pause doubles each time somebody undoes a write."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._delay = SHORTEST_PAUSE
        self._last: float | None = None

    @property
    def pause(self) -> float:
        """Seconds until the next write is allowed; 0 if it is now."""
        if self._last is None:
            return 0.0
        return max(0.0, self._last + self._delay - self._clock.monotonic())

    def record_write(self) -> None:
        """Count a write."""
        now = self._clock.monotonic()
        undone = self._last is not None and now - self._last < 2 * self._delay + STAYS
        self._delay = min(2 * self._delay, LONGEST_PAUSE) if undone else SHORTEST_PAUSE
        self._last = now


# `caBundle` of all webhook configurations by which API servers call one Service.
#
# A replica serves one leaf, whichever configuration a call comes from. So the CAs are published
# in each of them, and a CA counts as trusted if each one that exists has it. A configuration that
# is missing or cannot be written does not keep the replicas from serving the others.


@dataclass(frozen=True, slots=True)
class PublishedSet:
    """The content of `caBundle` in each configuration, in their order."""

    each: tuple[Published, ...]

    @property
    def known(self) -> tuple[Published, ...]:
        """Those of configurations that exist and could be read."""
        return tuple(one for one in self.each if one.uid)

    @property
    def fingerprints(self) -> frozenset[str]:
        """The CAs that are trusted whichever configuration a call comes from."""
        found = [one.fingerprints for one in self.known]
        return frozenset.intersection(*found) if found else frozenset()

    @property
    def edition(self) -> str:
        """Differs between two reads if one of the fields was changed, even if changed back."""
        return ", ".join(one.edition for one in self.each)

    @property
    def pem(self) -> bytes:
        """All certificates; one that several configurations have is there several times."""
        return b"".join(one.pem for one in self.each)

    @property
    def roots(self) -> tuple[bytes, ...]:
        """What API servers trust, without duplicates; one that is empty if nothing is known."""
        return tuple(dict.fromkeys(one.pem for one in self.known)) or (b"",)

    @property
    def missing(self) -> str:
        """Which configuration does not exist; "" if none is missing."""
        return _first(one.problem for one in self.each if not one.uid and not one.failed)

    @property
    def failure(self) -> str:
        """Why a configuration could not be read or written; "" if none failed."""
        return _first(one.problem for one in self.each if one.failed)

    def holds(self, certificate: bytes) -> bool:
        """Return whether a CA (PEM) is trusted whichever configuration a call comes from."""
        return bool(self.known) and all(one.holds(certificate) for one in self.known)

    def mentions(self, certificate: bytes) -> bool:
        """Return whether a CA (PEM) is trusted in any configuration."""
        return any(one.holds(certificate) for one in self.each)


class CaBundles:
    """The `caBundle` of each configuration of an installation."""

    def __init__(self, api: Api, installation: Installation, clock: Clock) -> None:
        """Prepare; the first of the configurations is the one that pods depend on."""
        self._bundles = tuple(CaBundle(api, one, clock) for one in installation.configurations)

    def read(self) -> PublishedSet:
        """Return the contents; ApiError if the first of them cannot be read."""
        first, *others = self._bundles
        return PublishedSet((first.read(), *map(_read, others)))

    def publish(
        self, wanted: Iterable[bytes], found: PublishedSet, note: Callable[[str], None]
    ) -> PublishedSet:
        """Have API servers trust exactly these CAs (PEM, one each); return the new contents.

        Writes only what differs, and calls `note` with what it wrote. Raises ApiError if the first
        of the configurations that exist does not have the CAs now, or if none exists.
        """
        pems = tuple(wanted)
        after = PublishedSet(
            tuple(
                _publish(bundle, pems, before, note) if before.uid else before
                for bundle, before in zip(self._bundles, found.each, strict=True)
            )
        )
        first = next((one for one in after.each if one.uid or one.failed), None)
        if first is None or first.failed:
            raise ApiError(first.problem if first else after.missing)
        return after


def _read(bundle: CaBundle) -> Published:
    try:
        return bundle.read()
    except ApiError as error:
        return Published(problem=str(error), failed=True)


def _publish(
    bundle: CaBundle, pems: tuple[bytes, ...], before: Published, note: Callable[[str], None]
) -> Published:
    try:
        after = bundle.publish(pems, before)
    except ApiError as error:
        return replace(before, problem=str(error), failed=True)
    if after is not before:
        note(f"wrote {bundle}: {before.problem or 'it had other CAs'}")
    return after


def _first(texts: Iterable[str]) -> str:
    return next(iter(texts), "")
