"""The API server as the cluster's own start asks it: often, and without a kubectl for each."""

from __future__ import annotations

import json
import ssl
import urllib.request
from pathlib import Path
from typing import Any


class Api:
    """GETs as the administrator whose certificate and key lie in `pki`, each within `seconds`."""

    def __init__(self, server: str, pki: Path, seconds: float = 2.0) -> None:
        self._server = server
        self._seconds = seconds
        trusted = ssl.create_default_context(cafile=pki / "ca.crt")
        trusted.load_cert_chain(pki / "kubelet-client.crt", pki / "kubelet-client.key")
        # Not by way of a proxy that the environment may name.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusted)
        )

    def text(self, path: str) -> str | None:
        """Return what is there, None where nothing is or nobody answers."""
        try:
            with self._opener.open(f"{self._server}{path}", timeout=self._seconds) as answer:
                said: bytes = answer.read()
        except OSError:  # refused, timed out, 404, 500
            return None
        return said.decode()

    def ready(self, path: str) -> bool:
        """Tell whether an object is there and, where it has conditions, its Ready is true."""
        said = self.text(path)
        if said is None:
            return False
        status: dict[str, Any] = json.loads(said).get("status") or {}
        conditions = {found["type"]: found["status"] for found in status.get("conditions") or ()}
        return str(conditions.get("Ready", True)) == "True"
