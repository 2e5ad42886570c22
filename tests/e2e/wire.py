"""Requests to the API server over HTTP; kubectl would take ten times as long."""

from __future__ import annotations

import json
from http.client import HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.cluster.cluster import Cluster

JSON = "application/json"
_HTTPS = 443
#: The pod name that the API server attaches to a token that the kubelet mounted.
_IN_POD = "Impersonate-Extra-authentication.kubernetes.io%2Fpod-name"


class Response(NamedTuple):
    """The API server's answer."""

    code: int
    #: The object, or a Status.
    object: dict[str, Any]
    #: The texts of the warnings.
    warnings: list[str]

    @property
    def refusal(self) -> str:
        """Why the request was rejected; "" if it was not, or if it was a deletion."""
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
) -> Response:
    """Send a request as the administrator, as `user` (in a `pod`), or as the owner of `token`."""
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
        body = json.loads(answer.read())
        warnings = [_text(header) for header in answer.headers.get_all("Warning", [])]
    finally:
        connection.close()
    return Response(answer.status, body, warnings)


def _text(header: str) -> str:
    """Return the text of `299 - "TEXT"`, whose quotes and backslashes are escaped."""
    inner = header.removeprefix('299 - "').removesuffix('"')
    return inner.replace('\\"', '"').replace("\\\\", "\\")
