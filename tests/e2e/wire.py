"""Requests to the API server by HTTP: many questions by kubectl take ten times as long."""

from __future__ import annotations

import json
from http.client import HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.cluster.cluster import Cluster

JSON = "application/json"
_HTTPS = 443
#: What the API server knows of a token that the kubelet mounted.
_IN_POD = "Impersonate-Extra-authentication.kubernetes.io%2Fpod-name"


class Said(NamedTuple):
    """An answer of the API server."""

    code: int
    #: The object, or a Status.
    object: dict[str, Any]
    #: The texts of the warnings.
    warnings: list[str]

    @property
    def refusal(self) -> str:
        """Why nothing was done; "" where it was, and for a deletion."""
        return str(self.object.get("message", "")) if self.object["kind"] == "Status" else ""


def send(
    cluster: Cluster,
    method: str,
    path: str,
    document: object = None,
    content_type: str = JSON,
    *,
    user: str = "",
    pod: str = "",
    token: str = "",
) -> Said:
    """Ask as the administrator, or as `user` in their place (in a pod), or as whose token it is."""
    access = cluster.access
    context = access.anybody if token else access.administrator
    headers = {"Content-Type": content_type, **({"Impersonate-User": user} if user else {})}
    headers |= {_IN_POD: pod} if pod else {}
    headers |= {"Authorization": f"Bearer {token}"} if token else access.headers
    address = urlsplit(access.url)
    connection = HTTPSConnection(
        str(address.hostname), address.port or _HTTPS, context=context, timeout=60
    )
    try:
        connection.request(method, f"{address.path}{path}", json.dumps(document or {}), headers)
        answer = connection.getresponse()
        said = json.loads(answer.read())
        warnings = [_text(one) for one in answer.headers.get_all("Warning", [])]
    finally:
        connection.close()
    return Said(answer.status, said, warnings)


def _text(header: str) -> str:
    """Take the text out of `299 - "TEXT"`, in which quotes and backslashes are escaped."""
    inner = header.removeprefix('299 - "').removesuffix('"')
    return inner.replace('\\"', '"').replace("\\\\", "\\")
