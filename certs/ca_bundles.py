"""`caBundle` of all webhook configurations by which API servers call one Service.

A replica serves one leaf, whichever configuration a call comes from. So the CAs are published in
each of them, and a CA counts as trusted if each one that exists has it. A configuration that
is missing or cannot be written does not keep the replicas from serving the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from certs.ca_bundle import CaBundle, Published
from certs.clock import Clock
from certs.errors import ApiError
from certs.installation import Api, Installation


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
