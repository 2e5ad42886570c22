"""A listener of the server: its socket, and uvicorn with our own connections and limits."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from webhook.errors import ConfigError
from webhook.serve import dev
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.transport.accept import Acceptor
from webhook.serve.transport.budget import Budget, Limits
from webhook.serve.transport.connection import Connection
from webhook.serve.transport.process import max_descriptors

_MIB = 1 << 20
#: The memory that the connections of each listener may use, chosen so that no client can push
#: the process beyond 450 MiB: it uses 70 MiB at its start, and the densest body takes 120 MiB
#: during its decision. A TLS connection takes 48 KiB before its first request, so one address may
#: have 853 connections to /mutate, and with client certificates 276 handshakes; an API server has
#: at most 200 such requests in flight (--max-mutating-requests-inflight). The largest answer to a
#: preview counts as 32 MiB until its connection ends.
LIMITS = {
    "mutate": Limits(connection=48 << 10, in_all=48 * _MIB, per_address=40 * _MIB),
    "preview": Limits(connection=48 << 10, in_all=40 * _MIB, per_address=36 * _MIB),
    "health": Limits(connection=8 << 10, in_all=4 * _MIB, per_address=3 * _MIB),
}

#: A listener that counts against the limits of another: `page` serves the application of `preview`,
#: so both together hold no more than one of them.
_SHARED = {"page": "preview"}

#: The number of open files besides connections.
_OTHER_FILES = 100


class Listener(uvicorn.Server):
    """A server among several in the same event loop, without signal handlers.

    It accepts connections itself, within its own budget.
    """

    def __init__(
        self,
        name: str,
        config: uvicorn.Config,
        connection: type[Connection],
        budget: Budget,
        metrics: Metrics,
    ) -> None:
        super().__init__(config)
        self._name = name
        self._connection = connection
        self._budget = budget
        self._metrics = metrics
        self.servers = []
        self._acceptors: list[Acceptor] = []
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting connections, then set `up`."""
        await self.lifespan.startup()
        connection = partial(
            self._connection,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        for listening in sockets or ():
            acceptor = Acceptor(
                listening,
                tls=self.config.ssl,
                connection=connection,
                budget=self._budget,
                time_limit=self._connection.time_limit,
                opened=partial(self._metrics.connection_opened, self._name),
                closed=partial(self._metrics.connection_closed, self._name),
            )
            self._acceptors.append(acceptor)
            self.servers.append(cast("asyncio.Server", acceptor))
        self.started = True
        self.up.set()

    @property
    def connections(self) -> int:
        """The number of open connections, handshakes included."""
        return sum(acceptor.connections for acceptor in self._acceptors)

    def stop_accepting(self) -> None:
        """Close the listening sockets; connections continue."""
        for acceptor in self._acceptors:
            acceptor.stop_accepting()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do not handle signals."""
        yield


def budgets() -> dict[str, Budget]:
    """Return the budget of each listener, by its name."""
    connections = (max_descriptors() - _OTHER_FILES) // len(LIMITS)
    own = {name: Budget(limits.for_connections(connections)) for name, limits in LIMITS.items()}
    return own | {name: own[other] for name, other in _SHARED.items()}


def listener_for(
    name: str,
    app: ASGIApp,
    tls: ssl.SSLContext | None,
    options: ServeOptions,
    metrics: Metrics,
    *,
    budget: Budget,
) -> Listener:
    """Return the listener of this name, with TLS if there is a context."""

    class Timed(Connection):
        time_limit = options.request_seconds

    config = uvicorn.Config(
        app,
        http=Timed,
        ws="none",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=options.idle_seconds,  # type: ignore[arg-type]  # any number
        timeout_graceful_shutdown=1 if options.dev else 10,
        ssl_context_factory=(lambda _config, _default: tls) if tls else None,
    )
    return Listener(name, config, Timed, budget, metrics)


# Bind the ports of all listeners before the server starts.

BACKLOG = 2048
#: Bytes of unread answers that the kernel buffers for a client. They count against the memory of
#: the pod, and would be megabytes for each connection by default.
UNREAD = 64 * 1024


def bind(options: ServeOptions, names: Iterable[str]) -> dict[str, socket.socket]:
    """Return a listening socket for each listener; raise ConfigError with the flag to change."""
    if options.dev and options.host not in ("", "localhost", dev.HOST):
        raise ConfigError(
            f"--host {options.host!r:.80}: --dev serves on {dev.HOST} only; "
            "omit --host, or use --tls-cert and --tls-key instead of --dev"
        )
    flags = {
        "mutate": ("--port", options.port),
        "preview": ("--preview-port", options.preview_port),
        "health": ("--health-port", options.health_port),
        "page": ("--port" if options.page_only else "--page-port", options.page_port),
    }
    host = dev.HOST if options.dev else options.host
    bound: dict[str, socket.socket] = {}
    for name in names:
        flag, port = flags[name]
        try:
            bound[name] = _listen(host, port)
        except OSError as error:
            for listening in bound.values():
                listening.close()
            address = f"{host} port {port}" if host else f"port {port}"
            reason = os.strerror(error.errno) if error.errno else error
            raise ConfigError(
                f"cannot listen on {address} ({reason}); choose another port with {flag} "
                "(0 for any free one)"
            ) from error
    return bound


def _listen(host: str, port: int) -> socket.socket:
    listening = _create_socket(host, port)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD)  # accepted ones inherit it
    return listening


def _create_socket(host: str, port: int) -> socket.socket:
    if host:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG
        )
    return socket.create_server(("", port), backlog=BACKLOG)
