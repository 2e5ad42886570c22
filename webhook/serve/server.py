"""The server: three listeners in one process and one event loop.

    8443  HTTPS  /mutate     for the API server: pods
                 /validate   for the API server: the configuration
    8444  HTTPS  /preview    for people, anonymously
                 /fabrics    the same
                 /           the page
    8080  HTTP   /healthz, /readyz, /metrics

With `--dev`, a fourth has the page as plain HTTP on 127.0.0.1; `preview --page` has only that one.
With `--preview only`, there is no first: previews then have a process of their own in the cluster.

After SIGTERM the server keeps serving for a while, unready and with `Connection: close` on
every answer: the API server keeps using its connections until its endpoints are updated, and
does not repeat an interrupted request (kubernetes/kubernetes#127335). For the same reason,
this server does not close idle connections to /mutate, where a request may be on its way: it waits
until the API server closes them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import uvloop
from starlette.types import ASGIApp

from certs.errors import CertificateError
from certs.serving import ServingContext
from webhook.admission.expected_registration import MUTATE_PATH, VALIDATE_PATH
from webhook.decide import decide
from webhook.errors import ConfigError, WebhookError, crash_summary
from webhook.serve import dev
from webhook.serve.decision_limits import DecisionLimits
from webhook.serve.events import owner_notifier
from webhook.serve.fair_queue import FairQueue
from webhook.serve.http.apps import AdmissionApp, Health
from webhook.serve.http.local import LocalOnly
from webhook.serve.http.mutate import Mutate
from webhook.serve.http.preview import PreviewApp
from webhook.serve.http.validate import Validate
from webhook.serve.listener import Listener, bind, budgets, listener_for
from webhook.serve.log import Forward, Log
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.sources.certificates import certificate_of
from webhook.serve.sources.cluster import fact_sources
from webhook.serve.sources.configuration import configuration_source
from webhook.serve.sources.configuration_in_use import ConfigurationInUse
from webhook.serve.sources.fabric_node_counter import FabricNodeCounter
from webhook.serve.sources.permission_check import permission_check_of, require_guarded_account
from webhook.serve.sources.source import Source
from webhook.serve.state import State
from webhook.serve.status import status_writer
from webhook.serve.transport.process import (
    collect_garbage_rarely,
    configure_malloc,
    keep_memory_private,
    raise_descriptors,
)
from webhook.serve.unraisable import UnraisableLog
from webhook.serve.worker_supervisor import WorkerSupervisor

#: Python's switch interval, for the threads that read a changed configuration and the events of
#: watches. Next to a thread that is always busy, the p99 of /mutate at 100 requests/s is 20 to
#: 40 ms; with the default interval of 5 ms it is 0.6 to 0.9 s.
SWITCH_SECONDS = 0.0005

#: Seconds between checks for remaining connections while the server stops.
_CHECK_SECONDS = 0.1

__all__ = ["ServeOptions", "WebhookServer", "serve"]


def serve(options: ServeOptions) -> int:
    """Serve until SIGTERM or Ctrl-C; return the exit code: 0, or 2 if it could not start."""
    keep_memory_private()  # before the memory holds a key
    raise_descriptors()
    configure_malloc()
    try:
        server = WebhookServer(options)
    except (CertificateError, WebhookError) as error:
        sys.stderr.write(f"rdma-webhook: error: {error}\n")
        return 2
    threading.excepthook = server.report_thread
    sys.unraisablehook = UnraisableLog(server.log)
    uvloop.run(server.run())
    return 0


class WebhookServer:
    """All listeners of a server, bound to their ports from the constructor on.

    The constructor raises ConfigError or CertificateError, each with a one-line message, if the
    server cannot start.
    """

    def __init__(self, options: ServeOptions) -> None:
        require_guarded_account(os.environ)
        _require_fitting(options)
        self._options = options
        # A person at a terminal reads how to use the server first, and then its log.
        self.log = Log(options.log_level, buffered=options.dev and os.isatty(1))
        self.metrics = Metrics()
        self.state = State()
        in_use = ConfigurationInUse(self.state, self.metrics, self.log)
        self._configuration = configuration_source(
            options, self.state, self.metrics, in_use, os.environ
        )
        self._tls = ServingContext(_client_ca(options))
        certificate = certificate_of(options, self._tls, self.state, os.environ)
        #: The sources of the state; some use threads besides the event loop.
        self._sources: tuple[Source, ...] = (
            self._configuration,
            certificate,
            *(() if options.preview == "only" else self._sources_of_admission()),
        )
        self._decision_limits = DecisionLimits()
        self._worker = WorkerSupervisor(self.metrics, self.log, options.preview_seconds)
        self._apps = self._applications()
        self._sockets = bind(options, self._apps)
        self._budgets = budgets()
        #: The port of each listener: mutate, preview, health, page.
        self.ports = {name: listening.getsockname()[1] for name, listening in self._sockets.items()}
        # Only after binding: the file is named after the port, which another server may be using.
        self._ca_file = self._serve_development() if options.dev else None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()

    def _sources_of_admission(self) -> tuple[Source, ...]:
        """Return the sources that only decisions on pods, or the status, need."""
        shared = self.state, self.metrics
        return (
            *fact_sources(self._options, *shared, os.environ),
            FabricNodeCounter(self.state),
            *permission_check_of(self._options, self.state, os.environ),
            *status_writer(
                self._options,
                self._configuration,
                *shared,
                self.log,
                chain=lambda: self._tls.chain,
                environment=os.environ,
            ),
        )

    async def run(self) -> None:
        """Serve until `stop` is called or a signal arrives."""
        self._loop = asyncio.get_running_loop()
        _forward_logs(self.log)
        await self._poll(first=True)
        listeners = {name: self._listener(name) for name in self._sockets}
        with self._signals():
            async with asyncio.TaskGroup() as serving:
                for name, listener in listeners.items():
                    serving.create_task(listener.serve(sockets=[self._sockets[name]]))
                for listener in listeners.values():
                    await listener.up.wait()
                self._start_sources()
                await self._poll_until_stopped()
                await self._drain(listeners)
                await self._worker.stop()
                for listener in listeners.values():
                    listener.should_exit = True
        for source in self._sources:
            source.stop()
        self.log.write("info", "stopped")

    def report_thread(self, failure: threading.ExceptHookArgs) -> None:
        """Report a thread that an exception ended, for `threading.excepthook`.

        A source whose thread has ended keeps its last state until the process ends.
        """
        self.metrics.internal_errors.inc()
        thread = failure.thread.name if failure.thread else None
        problem = crash_summary(failure.exc_value) if failure.exc_value else {}
        self.log.write("error", "internal error", thread=thread, **problem)

    def stop(self) -> None:
        """Stop serving, from any thread; a second call ends the draining at once."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._handle_signal)

    def _handle_signal(self) -> None:
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle signals in the main thread; no other thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        assert self._loop is not None
        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            self._loop.add_signal_handler(number, self._handle_signal)
        try:
            with self._decision_limits.enforced():
                yield
        finally:
            for number in signals:
                self._loop.remove_signal_handler(number)

    def _start_sources(self) -> None:
        sys.setswitchinterval(SWITCH_SECONDS)
        collect_garbage_rarely()  # all objects so far are permanent
        for source in self._sources:
            source.start()  # may need the API server; the listeners are up and do not wait for it
        self.log.write("info", "serving", ports=self.ports)
        instructions = self._instructions()
        if self._options.announce is not None and instructions:
            self._options.announce(instructions)
        self.log.release()

    def _instructions(self) -> str:
        """Return how to use this server, for the person who started it; "" in a cluster."""
        if self._options.page_only:
            return dev.page_instructions(
                self.ports["page"],
                self._options.fabrics,
                problem=self._configuration.reason_without_fabrics,
                example=self._options.example,
            )
        if self._ca_file is None:
            return ""
        current = self.state.snapshot.current_configuration
        return dev.instructions(
            self.ports,
            self._ca_file,
            self._options.fabrics,
            current.compiled if current else None,
            command=dev.program(sys.argv[0], Path.cwd()),
            problem=self._configuration.reason_without_fabrics,
            example=self._options.example,
        )

    async def _poll_until_stopped(self) -> None:
        while not self._stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), self._options.poll_seconds)
            await self._poll()

    async def _poll(self, *, first: bool = False) -> None:
        """Poll all sources, each in a thread, so that a slow disk delays no request."""
        for source in self._sources:
            try:
                if await asyncio.to_thread(source.poll) or first:
                    source.apply(self.metrics, self.log)
            except Exception as error:  # noqa: BLE001 -- keep serving with the last good state
                self.metrics.internal_errors.inc()
                self.log.write("error", "internal error", **crash_summary(error))

    async def _drain(self, listeners: Mapping[str, Listener]) -> None:
        """Keep serving until the API server has other endpoints and has closed its connections."""
        self.state.draining = True
        seconds = 0.0 if self._options.dev else self._options.drain_seconds
        self.log.write("info", "draining", seconds=seconds)
        if not seconds:
            return
        await self._wait_for_hurry(seconds)
        mutate = listeners.get("mutate")
        if mutate is None:
            return
        mutate.stop_accepting()
        deadline = time.monotonic() + self._options.idle_seconds
        while mutate.connections and time.monotonic() < deadline:
            if await self._wait_for_hurry(_CHECK_SECONDS):
                return

    async def _wait_for_hurry(self, seconds: float) -> bool:
        """Wait; return True early on a second signal."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), seconds)
        return self._hurry.is_set()

    def _serve_development(self) -> Path | None:
        if self._options.tls_cert or self._options.page_only:
            return None
        pair, ca = dev.issue_for_development()
        self._tls.use(pair)
        return dev.store_ca(ca, self.ports["mutate"], os.environ)

    def _applications(self) -> dict[str, ASGIApp]:
        shared = self.state, self.metrics, self.log
        queue = FairQueue()
        preview = PreviewApp(*shared, self._worker, queue, example=self._options.example)
        page = {"page": LocalOnly(preview)} if self._options.dev else {}
        if self._options.page_only:
            return {**page}
        health = {"health": Health(self.state, self.metrics)}
        if self._options.preview == "only":
            return {"preview": preview, **health}
        endpoints: dict[str, ASGIApp] = {
            MUTATE_PATH: Mutate(
                *shared,
                self._decision_limits.of(decide),
                owner_notifier(self._options, self.metrics, self.log, os.environ),
                max_decisions=self._options.decision_cache,
            ),
            VALIDATE_PATH: Validate(*shared, self._worker, queue),
        }
        apps: dict[str, ASGIApp] = {"mutate": AdmissionApp(endpoints, *shared), **health}
        return apps if self._options.preview == "off" else {**apps, "preview": preview, **page}

    def _listener(self, name: str) -> Listener:
        # Clients of /preview are anonymous: the API server's proxy has no client certificate.
        tls = {"mutate": self._tls.context, "preview": self._tls.anonymous}.get(name)
        app, budget = self._apps[name], self._budgets[name]
        return listener_for(name, app, tls, self._options, self.metrics, budget=budget)


def _require_fitting(options: ServeOptions) -> None:
    """Raise ConfigError for options that contradict each other."""
    if options.preview == "only" and options.dev:
        raise ConfigError(
            "--preview only is for a cluster, and --dev is not; on your own computer, "
            "`rdma-webhook preview --page` serves the page alone"
        )


def _client_ca(options: ServeOptions) -> bytes | None:
    if options.client_ca is None:
        return None
    try:
        return options.client_ca.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read --client-ca {options.client_ca}: {error.strerror}"
        ) from error


def _forward_logs(log: Log) -> None:
    for name in ("uvicorn", "asyncio", "kubernetes", "urllib3"):
        logger = logging.getLogger(name)
        logger.handlers = [Forward(log)]
        logger.setLevel(logging.WARNING)
        logger.propagate = False
