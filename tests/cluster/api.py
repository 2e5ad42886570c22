"""Frequent requests to the API server during the cluster's start, without kubectl."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from tests.cluster.access import Access


class Api:
    """Sends GETs as the administrator, each with a timeout of `seconds`."""

    def __init__(self, access: Access, seconds: float = 2.0) -> None:
        self._access = access
        self._seconds = seconds
        # Do not use a proxy that the environment may name.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPSHandler(context=access.administrator),
        )

    def text(self, path: str) -> str | None:
        """Return the answer as text; None without an answer."""
        try:
            url = f"{self._access.url}{path}"
            request = urllib.request.Request(url, headers=self._access.headers)
            with self._opener.open(request, timeout=self._seconds) as answer:
                body: bytes = answer.read()
        except OSError:  # refused, timed out, 404, 500
            return None
        return body.decode()

    def ready(self, path: str) -> bool:
        """Return whether an object exists, and its Ready condition, if it has one, is true."""
        text = self.text(path)
        if text is None:
            return False
        status: dict[str, Any] = json.loads(text).get("status") or {}
        conditions = {
            condition["type"]: condition["status"] for condition in status.get("conditions") or ()
        }
        return str(conditions.get("Ready", True)) == "True"
