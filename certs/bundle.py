"""`caBundle`: what the API server trusts when it calls the webhook.

It is written by server-side apply of that one field, so that whoever installs the
configuration (kubectl, Helm, Argo) owns the rest. An apply would also create an object that
is not there, an incomplete one; so it is read first, and its uid goes along: the API server
refuses an apply with a uid if there is no object of that uid.
"""

from __future__ import annotations

import binascii
import ssl
from base64 import b64decode, b64encode

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certs.api import Api, Object
from certs.errors import ClusterError

API_VERSION = "admissionregistration.k8s.io/v1"
KIND = "MutatingWebhookConfiguration"


class Bundle:
    """The `caBundle` of one webhook of a MutatingWebhookConfiguration."""

    def __init__(self, api: Api, configuration: str, webhook: str) -> None:
        self._api = api
        self._configuration = configuration
        self._webhook = webhook
        self._path = f"/apis/{API_VERSION}/mutatingwebhookconfigurations/{configuration}"

    def ensure(self, ca: bytes) -> None:
        """Return as soon as the API server is told to trust this CA (PEM), read back.

        Writes only where it is not told yet. Raises ClusterError if there is no such
        configuration yet, no such webhook in it, or somebody else undoes it.
        """
        found, uid = self._read()
        if holds(found, ca):
            return
        self._api.apply(self._path, self._fields(ca, uid))
        if not holds(self._read()[0], ca):
            raise ClusterError(f"caBundle of {self._what} does not keep what is written to it")

    @property
    def _what(self) -> str:
        return f"{KIND} {self._configuration}"

    def _read(self) -> tuple[str, str]:
        """Return what stands in `caBundle` (base64), and the object's uid."""
        found = self._api.read(self._path)
        if found is None:
            raise ClusterError(f"there is no {self._what} yet")
        for webhook in found.get("webhooks") or ():
            if webhook.get("name") == self._webhook:
                bundle = (webhook.get("clientConfig") or {}).get("caBundle") or ""
                return str(bundle), str(found["metadata"]["uid"])
        raise ClusterError(f"{self._what} has no webhook {self._webhook} yet")

    def _fields(self, ca: bytes, uid: str) -> Object:
        client = {"caBundle": b64encode(ca).decode()}
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": self._configuration, "uid": uid},
            "webhooks": [{"name": self._webhook, "clientConfig": client}],
        }


def holds(bundle: str, ca: bytes) -> bool:
    """Return whether a `caBundle` (base64 of PEM) has this CA (PEM), alone or among others.

    A bundle that is garbage in part counts as one that does not: Go reads less of it.
    """
    try:
        found = x509.load_pem_x509_certificates(b64decode(bundle, validate=True))
    except (ValueError, binascii.Error):
        return False
    wanted = ssl.PEM_cert_to_DER_cert(ca.decode("ascii").strip())
    return any(one.public_bytes(Encoding.DER) == wanted for one in found)
