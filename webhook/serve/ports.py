"""Bind the ports of all listeners before the server starts."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable

from webhook.errors import ConfigError
from webhook.serve import dev
from webhook.serve.options import ServeOptions

BACKLOG = 2048
#: Bytes of answers that the kernel buffers for a client that does not read. They count against the
#: memory of the pod, and would be megabytes for each connection by default.
UNREAD = 64 * 1024


def bind(options: ServeOptions, names: Iterable[str]) -> dict[str, socket.socket]:
    """Return a listening socket for each listener; ConfigError names the flag to change."""
    if options.dev and options.host not in ("", "localhost", dev.HOST):
        raise ConfigError(
            f"--host {options.host!r:.80}: --dev serves on {dev.HOST} only; "
            "leave out --host, or give --tls-cert and --tls-key instead of --dev"
        )
    flags = {
        "mutate": ("--port", options.port),
        "preview": ("--preview-port", options.preview_port),
        "health": ("--health-port", options.health_port),
    }
    host = dev.HOST if options.dev else options.host
    bound: dict[str, socket.socket] = {}
    for name in names:
        flag, port = flags[name]
        try:
            bound[name] = _listen(host, port)
        except OSError as error:
            for one in bound.values():
                one.close()
            where = f"{host} port {port}" if host else f"port {port}"
            why = os.strerror(error.errno) if error.errno else error
            raise ConfigError(
                f"cannot listen on {where} ({why}): choose another with {flag}, 0 for any free one"
            ) from error
    return bound


def _listen(host: str, port: int) -> socket.socket:
    listening = _created(host, port)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD)  # accepted ones inherit it
    return listening


def _created(host: str, port: int) -> socket.socket:
    if host:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG
        )
    return socket.create_server(("", port), backlog=BACKLOG)
