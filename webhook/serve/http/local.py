"""Plain HTTP on the loopback: who may ask there.

Any site that the user visits can send requests to 127.0.0.1 from the user's browser. It cannot
read the answers, unless it makes its own name resolve to 127.0.0.1 (DNS rebinding); then the Host
header has that name. So only names of the loopback are answered, and no request of another origin.
"""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from webhook.errors import RequestError
from webhook.serve.http import asgi

#: The names of the loopback. The port may be another one, forwarded by `ssh -L`.
_LOOPBACK = re.compile(rb"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
NOT_LOCAL = (
    "this server answers only requests to this computer; open it as 127.0.0.1, localhost or [::1]"
)
FOREIGN = "this server answers no requests from pages of other sites"


class LocalOnly:
    """An application that answers requests to this computer, and refuses others with 403."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse a request."""
        problem = _problem(scope["headers"])
        if problem:
            await asgi.refuse(send, RequestError(403, problem))
        else:
            await self._app(scope, receive, send)


def _problem(headers: list[tuple[bytes, bytes]]) -> str:
    """Return why a request is refused; "" if it is not."""
    hosts = [text for name, text in headers if name == b"host"]
    if len(hosts) != 1 or not _LOOPBACK.fullmatch(hosts[0]):
        return NOT_LOCAL
    own_origin = b"http://" + hosts[0].lower()
    if any(name == b"origin" and text.lower() != own_origin for name, text in headers):
        return FOREIGN
    return ""
