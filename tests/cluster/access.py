"""How to reach the API server over HTTP: its address, and credentials."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Access:
    """An API server, and its administrator's credentials: a client certificate or a token."""

    url: str
    """`https://HOST:PORT`."""
    anybody: ssl.SSLContext
    """Trusts the server, and shows no certificate."""
    administrator: ssl.SSLContext
    token: str = ""
    """The administrator's token; "" if the certificate is enough."""

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the administrator's requests."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def by_certificate(url: str, pki: Path) -> Access:
    """Return the administrator's access by the certificate that the cluster's start issued."""
    administrator = ssl.create_default_context(cafile=pki / "ca.crt")
    administrator.load_cert_chain(pki / "kubelet-client.crt", pki / "kubelet-client.key")
    return Access(url, ssl.create_default_context(cafile=pki / "ca.crt"), administrator)
