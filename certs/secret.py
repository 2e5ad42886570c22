"""The Secret of the CAs. Who writes it has read it: a change that was overtaken is refused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from certs.authorities import Authorities
from certs.errors import CertificateError
from certs.installation import Api, Installation, Object
from certs.stored import decoded, encoded, is_empty, same

#: What is to be done where `Found.immutable`.
IMMUTABLE = (
    "it is immutable, so its CA can be neither exchanged nor repaired: delete it, and the replicas"
    " make it again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was in the Secret."""

    #: None: there is no Secret.
    secret: Object | None
    #: None: there are none, or they cannot be used.
    authorities: Authorities | None = None
    #: Why they cannot be used; "" if they can, or if there is nothing of a CA.
    problem: str = ""

    @property
    def immutable(self) -> bool:
        """Whether its data can never be written again, by nobody (`immutable: true`)."""
        return bool(self.secret and self.secret.get("immutable"))


class CaSecret:
    """A Secret (Opaque) that holds the CAs of an installation."""

    def __init__(self, api: Api, installation: Installation) -> None:
        self._api = api
        self._namespace = installation.namespace
        self._name = installation.ca_secret
        self._collection = f"/api/v1/namespaces/{self._namespace}/secrets"
        self._path = f"{self._collection}/{self._name}"

    def __str__(self) -> str:
        return f"Secret {self._namespace}/{self._name}"

    def read(self, now: datetime) -> Found:
        """Return what is there; ApiError where the API server did not answer."""
        secret = self._api.read(self._path)
        if secret is None or is_empty(secret):
            return Found(secret=secret)
        try:
            return Found(secret=secret, authorities=decoded(secret, now))
        except CertificateError as error:
            return Found(secret=secret, problem=str(error))

    def write(self, authorities: Authorities, found: Found) -> bool:
        """Store these where they are not yet; False if it is not what was found any more."""
        if found.secret is None:
            return self._api.create(self._collection, encoded(authorities, self._new()))
        secret = encoded(authorities, found.secret)
        return same(secret, found.secret) or self._api.replace(self._path, secret)

    def _new(self) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "type": "Opaque",
        }
