"""`caBundle`: the CAs that the API server trusts when it calls the webhook.

`CaBundle` handles one webhook configuration, `CaBundles` all configurations for one Service.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from certs.clock import Clock
from certs.errors import ApiError, CertificateError
from certs.installation import ADMISSION, Api, Installation, Object, WebhookConfiguration
from certs.pem import fingerprint, is_issued_by, load_certificates, pem_fingerprint, to_pem

# `caBundle` of one webhook configuration.
#
# It is written by server-side apply of that one field, so that the installer of the
# configuration (kubectl, Helm, Argo CD) owns the rest. An apply would also create a missing
# object, with this field alone. The object is therefore read first, and the apply carries its
# uid and resourceVersion: the API server rejects it unless the object is unchanged.

#: Seconds between two writes: at first, and at most.
MIN_PAUSE, MAX_PAUSE = 1.0, 60.0
#: A write counts as undone if the next one follows within twice the last pause plus this many
#: seconds.
REVERT_WINDOW = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleContent:
    """The content of one `caBundle`."""

    #: The certificates, PEM; empty if the field is empty or malformed (Go would read a part of it).
    pem: bytes = b""
    fingerprints: frozenset[str] = frozenset()
    #: The uid of the object that contains the field; "" if there is none to write to.
    uid: str = ""
    version: str = ""
    #: The object's generation, which changes only with its spec.
    generation: str = ""
    #: The reason why there is no content, or the content's defect; "" if there is neither.
    problem: str = ""
    #: Whether the problem is a failed read or write of the field.
    failed: bool = False
    #: Whether the certificates are written as `to_pem` does. cryptography reads other forms that Go
    #: skips: labels such as `X509 CERTIFICATE`, headers, a text before the first dash on the line.
    canonical: bool = True

    @property
    def revision(self) -> str:
        """A text that changes with each change of the field, even if it is changed back."""
        return f"{self.uid} {self.generation}"

    def trusts(self, certificate: bytes) -> bool:
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

    def read(self) -> BundleContent:
        """Return the content; raise ApiError if the API server does not answer."""
        configuration = self._configuration
        body = self._api.read(configuration.path)
        if body is None:
            return BundleContent(problem=f"{configuration} does not exist yet")
        for webhook in body.get("webhooks") or ():
            if webhook.get("name") == configuration.webhook:
                bundle = (webhook.get("clientConfig") or {}).get("caBundle") or ""
                return parse_ca_bundle(str(bundle), body["metadata"])
        return BundleContent(problem=f"{configuration} has no webhook {configuration.webhook} yet")

    def publish(self, cas: Iterable[bytes], content: BundleContent) -> BundleContent:
        """Have the API server trust exactly these CAs (PEM, one each); return the new content.

        Writes only if `content` differs. Raises ApiError if there is nothing to write to, or if
        somebody else undoes the write.
        """
        if not content.uid:
            raise ApiError(content.problem)
        pems = tuple(cas)
        if content.canonical and content.fingerprints == {pem_fingerprint(pem) for pem in pems}:
            return content
        if self._limit.pause:
            raise ApiError(f"another client keeps changing {self}")
        self._api.apply(self._configuration.path, self._fields(b"".join(pems), content))
        self._limit.record_write()
        written = self.read()  # another replica may have written the same first
        if not all(written.trusts(pem) for pem in pems):
            raise ApiError(
                f"{self} does not keep its new content, since another client or a policy reverts it"
            )
        return written

    def _fields(self, pem: bytes, content: BundleContent) -> Object:
        client = {"caBundle": b64encode(pem).decode()}
        return {
            "apiVersion": ADMISSION,
            "kind": self._configuration.kind,
            "metadata": {
                "name": self._configuration.name,
                "uid": content.uid,
                "resourceVersion": content.version,
            },
            "webhooks": [{"name": self._configuration.webhook, "clientConfig": client}],
        }


def parse_ca_bundle(bundle: str, metadata: Object) -> BundleContent:
    """Parse a `caBundle` (base64 of PEM); if a part of it is malformed, it has no content."""
    raw, pem, problem = b"", b"", ""
    try:
        raw = b64decode(bundle, validate=True)
        certificates = load_certificates(raw) if bundle else []
        pem = b"".join(to_pem(certificates))
    except (CertificateError, binascii.Error):
        certificates, problem = [], "it did not contain base64-encoded PEM certificates"
    return BundleContent(
        pem=pem,
        fingerprints=frozenset(fingerprint(certificate) for certificate in certificates),
        uid=str(metadata.get("uid") or ""),
        version=str(metadata.get("resourceVersion") or ""),
        generation=str(metadata.get("generation") or ""),
        problem=problem if bundle else "it was empty",
        canonical=raw == pem,
    )


def verifies(bundle: str, chain: bytes) -> bool:
    """Return whether a `caBundle` contains the CA of a chain of certificates (PEM, leaf first)."""
    roots = load_certificates(pem) if (pem := parse_ca_bundle(bundle, {}).pem) else []
    trusted = {fingerprint(root) for root in roots}
    return any(
        fingerprint(certificate) in trusted
        or any(is_issued_by(certificate, root) for root in roots)
        for certificate in load_certificates(chain)
    )


class WriteLimit:
    """A limit of one write a second; the pause doubles each time somebody undoes a write."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._delay = MIN_PAUSE
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
        undone = self._last is not None and now - self._last < 2 * self._delay + REVERT_WINDOW
        self._delay = min(2 * self._delay, MAX_PAUSE) if undone else MIN_PAUSE
        self._last = now


# `caBundle` of all webhook configurations for one Service.
#
# A replica serves the same leaf to calls through every configuration. So the CAs are published in
# each configuration, and a CA counts as trusted if all that exist contain it. A configuration
# that is missing or cannot be written does not keep the replicas from serving the others.


@dataclass(frozen=True, slots=True)
class BundleContents:
    """The content of `caBundle` in each configuration, in their order."""

    contents: tuple[BundleContent, ...]

    @property
    def readable(self) -> tuple[BundleContent, ...]:
        """The contents from configurations that exist and could be read."""
        return tuple(content for content in self.contents if content.uid)

    @property
    def fingerprints(self) -> frozenset[str]:
        """The CAs that are trusted for calls through every configuration."""
        trusted = [content.fingerprints for content in self.readable]
        return frozenset.intersection(*trusted) if trusted else frozenset()

    @property
    def revision(self) -> str:
        """A text that changes with each change of a field, even if it is changed back."""
        return ", ".join(content.revision for content in self.contents)

    @property
    def pem(self) -> bytes:
        """All certificates, with duplicates if several configurations have the same."""
        return b"".join(content.pem for content in self.contents)

    @property
    def distinct_bundles(self) -> tuple[bytes, ...]:
        """The distinct bundles that API servers trust; a single empty one if none is readable."""
        return tuple(dict.fromkeys(content.pem for content in self.readable)) or (b"",)

    @property
    def missing_problem(self) -> str:
        """The problem of a configuration that does not exist; "" if none is missing."""
        return _first(
            content.problem for content in self.contents if not content.uid and not content.failed
        )

    @property
    def access_problem(self) -> str:
        """The problem of a configuration that could not be read or written, or ""."""
        return _first(content.problem for content in self.contents if content.failed)

    def trusted_by_all(self, certificate: bytes) -> bool:
        """Return whether a CA (PEM) is trusted for calls through every configuration."""
        return bool(self.readable) and all(content.trusts(certificate) for content in self.readable)

    def trusted_by_any(self, certificate: bytes) -> bool:
        """Return whether a CA (PEM) is trusted in at least one configuration."""
        return any(content.trusts(certificate) for content in self.contents)


class CaBundles:
    """The `caBundle` of each configuration of an installation."""

    def __init__(self, api: Api, installation: Installation, clock: Clock) -> None:
        """Prepare; pods depend on the first of the webhook configurations."""
        self._bundles = tuple(
            CaBundle(api, configuration, clock)
            for configuration in installation.webhook_configurations
        )

    def read(self) -> BundleContents:
        """Return the contents; raise ApiError if the first cannot be read."""
        first, *rest = self._bundles
        return BundleContents((first.read(), *map(_read, rest)))

    def publish(
        self, cas: Iterable[bytes], before: BundleContents, note: Callable[[str], None]
    ) -> BundleContents:
        """Have API servers trust exactly these CAs (PEM, one each); return the new contents.

        Writes only differences, and calls `note` after each write. Raises ApiError if the first
        of the configurations that exist does not have the CAs now, or if none exists.
        """
        pems = tuple(cas)
        after = BundleContents(
            tuple(
                _publish(bundle, pems, content, note) if content.uid else content
                for bundle, content in zip(self._bundles, before.contents, strict=True)
            )
        )
        first = next((content for content in after.contents if content.uid or content.failed), None)
        if first is None or first.failed:
            raise ApiError(first.problem if first else after.missing_problem)
        return after


def _read(bundle: CaBundle) -> BundleContent:
    try:
        return bundle.read()
    except ApiError as error:
        return BundleContent(problem=str(error), failed=True)


def _publish(
    bundle: CaBundle, pems: tuple[bytes, ...], before: BundleContent, note: Callable[[str], None]
) -> BundleContent:
    try:
        after = bundle.publish(pems, before)
    except ApiError as error:
        return replace(before, problem=str(error), failed=True)
    if after is not before:
        note(f"wrote {bundle}: {before.problem or 'it had other CAs'}")
    return after


def _first(texts: Iterable[str]) -> str:
    return next(iter(texts), "")
