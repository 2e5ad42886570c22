"""`caBundle`: what the API server trusts when it calls the webhook.

It is written by server-side apply of that one field, so that whoever installs the
configuration (kubectl, Helm, Argo) owns the rest. An apply would also create an object that
is not there, an incomplete one; so it is read first, and its uid and resourceVersion go along:
the API server refuses an apply with these unless that very object still is as it was read.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass

from certs.clock import Clock
from certs.errors import ApiError, CertificateError
from certs.installation import Api, Installation, Object
from certs.pace import Pace
from certs.pem import fingerprint, load_certificates, pem_fingerprint, to_pem

API_VERSION = "admissionregistration.k8s.io/v1"
KIND = "MutatingWebhookConfiguration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What stands in `caBundle`."""

    #: The certificates, PEM; none where it is empty or garbage, of which Go reads less.
    pem: bytes = b""
    fingerprints: frozenset[str] = frozenset()
    #: Of the object that has it; "" if there is none to write to.
    uid: str = ""
    version: str = ""
    #: Changes with every change of what the API server does with that object, and with no other.
    generation: str = ""
    #: Why there is none; or what stands there, where it is garbage.
    problem: str = ""

    @property
    def edition(self) -> str:
        """What tells whether it was changed between two looks, and perhaps changed back."""
        return f"{self.uid} {self.generation}"

    def holds(self, certificate: bytes) -> bool:
        """Return whether a CA (PEM) is trusted."""
        return pem_fingerprint(certificate) in self.fingerprints


class Bundle:
    """The `caBundle` of one webhook of a MutatingWebhookConfiguration."""

    def __init__(self, api: Api, installation: Installation, clock: Clock) -> None:
        self._api = api
        self._configuration = installation.configuration
        self._webhook = installation.webhook
        self._path = f"/apis/{API_VERSION}/mutatingwebhookconfigurations/{self._configuration}"
        self._pace = Pace(clock)

    def __str__(self) -> str:
        return f"caBundle of {KIND} {self._configuration}"

    def read(self) -> Published:
        """Return what is there; ApiError where the API server did not answer."""
        what = f"{KIND} {self._configuration}"
        found = self._api.read(self._path)
        if found is None:
            return Published(problem=f"there is no {what} yet")
        for webhook in found.get("webhooks") or ():
            if webhook.get("name") == self._webhook:
                bundle = (webhook.get("clientConfig") or {}).get("caBundle") or ""
                return published(str(bundle), found["metadata"])
        return Published(problem=f"{what} has no webhook {self._webhook} yet")

    def publish(self, wanted: Iterable[bytes], found: Published) -> Published:
        """Have the API server trust these CAs (PEM, one each) and no others; return what it has.

        Writes only where that is not so yet. Raises ApiError if there is nothing to
        write to, or somebody else undoes it.
        """
        if not found.uid:
            raise ApiError(found.problem)
        pems = tuple(wanted)
        if found.fingerprints == {pem_fingerprint(one) for one in pems}:
            return found
        if self._pace.pause:
            raise ApiError(f"{self} is changed again and again by somebody else")
        self._pace.wrote()
        self._api.apply(self._path, self._fields(b"".join(pems), found))
        again = self.read()  # also where another replica was faster, with the same
        if not all(again.holds(one) for one in pems):
            raise ApiError(f"{self} does not keep what is written to it")
        return again

    def _fields(self, pem: bytes, found: Published) -> Object:
        client = {"caBundle": b64encode(pem).decode()}
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {
                "name": self._configuration,
                "uid": found.uid,
                "resourceVersion": found.version,
            },
            "webhooks": [{"name": self._webhook, "clientConfig": client}],
        }


def published(bundle: str, metadata: Object) -> Published:
    """Read a `caBundle` (base64 of PEM); one that is garbage in part holds nothing."""
    pem, problem = b"", ""
    try:
        found = load_certificates(b64decode(bundle, validate=True)) if bundle else []
        pem = b"".join(to_pem(found))
    except (CertificateError, binascii.Error):
        found, problem = [], "it was no base64 of PEM certificates"
    return Published(
        pem=pem,
        fingerprints=frozenset(fingerprint(one) for one in found),
        uid=str(metadata.get("uid") or ""),
        version=str(metadata.get("resourceVersion") or ""),
        generation=str(metadata.get("generation") or ""),
        problem=problem if bundle else "it was empty",
    )
