"""The CA in its Secret: whoever creates it first decides, everybody else takes that one."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode

from certs.api import Api, Object
from certs.authority import check_authority
from certs.errors import CertificateError, ClusterError
from certs.issue import KeyPair, issue_ca

CERTIFICATE, KEY = "ca.crt", "ca.key"
#: Somebody has to create and delete it between two of our requests to need a third try.
_TRIES = 3


class CaSecret:
    """A Secret (Opaque) that holds a CA as `ca.crt` and `ca.key`."""

    def __init__(self, api: Api, namespace: str, name: str) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._collection = f"/api/v1/namespaces/{namespace}/secrets"

    def settle(self, mine: KeyPair | None = None) -> KeyPair:
        """Return the CA that is there, or else store `mine` or a new one and return that.

        Raises CertificateError for content that is no CA, which is not overwritten: it may
        be somebody else's; ClusterError where the API server did not answer.
        """
        for _ in range(_TRIES):
            found = self._read()
            if found is not None:
                return found
            ca = mine or issue_ca()
            if self._create(ca):
                return ca
        raise ClusterError(f"{self._what} comes and goes")

    @property
    def _what(self) -> str:
        return f"Secret {self._namespace}/{self._name}"

    def _read(self) -> KeyPair | None:
        secret = self._api.read(f"{self._collection}/{self._name}")
        if secret is None:
            return None
        try:
            ca = _decoded(secret)
            check_authority(ca)
        except CertificateError as error:
            msg = (
                f"{self._what}: {error}; it is left as it is: repair it, or delete it for a new CA"
            )
            raise CertificateError(msg) from error
        return ca

    def _create(self, ca: KeyPair) -> bool:
        """Create the Secret, or return False if another was faster."""
        data = {CERTIFICATE: ca.certificate, KEY: ca.key}
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "type": "Opaque",
            "data": {key: b64encode(value).decode() for key, value in data.items()},
        }
        return self._api.create(self._collection, secret)


def _decoded(secret: Object) -> KeyPair:
    data = secret.get("data") or {}
    missing = [key for key in (CERTIFICATE, KEY) if not data.get(key)]
    if missing:
        raise CertificateError(f"it has no {' and no '.join(missing)}")
    try:
        return KeyPair(
            certificate=b64decode(data[CERTIFICATE], validate=True),
            key=b64decode(data[KEY], validate=True),
        )
    except (TypeError, binascii.Error) as error:  # the API server does not store such a thing
        raise CertificateError("its data are not base64") from error
