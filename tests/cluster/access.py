"""How the API server is reached by HTTP: where it is, and as whom."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Access:
    """An API server, and its administrator: by a client certificate, or by a token."""

    url: str
    """`https://HOST:PORT`."""
    anybody: ssl.SSLContext
    """Trusts the server, and shows nothing."""
    administrator: ssl.SSLContext
    token: str = ""
    """Of the administrator; "" where the certificate is enough."""

    @property
    def headers(self) -> dict[str, str]:
        """What the administrator's requests carry."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def by_certificate(url: str, pki: Path) -> Access:
    """Return the access of whom the cluster's own start issued a certificate, in `pki`."""
    administrator = ssl.create_default_context(cafile=pki / "ca.crt")
    administrator.load_cert_chain(pki / "kubelet-client.crt", pki / "kubelet-client.key")
    return Access(url, ssl.create_default_context(cafile=pki / "ca.crt"), administrator)
