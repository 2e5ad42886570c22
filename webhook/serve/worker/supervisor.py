"""Manage the worker process: start it when it is needed, end it if it does not answer.

It computes previews, and checks configurations for `/validate`.

There is only one. Two would need twice the memory, of which a replica has 512 MiB, and would
answer previews faster only by taking processor time from `/mutate`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from certs.backoff import LONGEST, delays
from webhook.preview.worker.frames import FrameError, Operation
from webhook.refusal import RequestError
from webhook.serve.former import PreparedConfiguration
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics, WorkerEnd
from webhook.serve.worker.child import Child, WorkerAnswer

#: How many times longer it may take to start: on a busy node it gets only spare processor time.
STARTING = 6

_LEVELS: dict[WorkerEnd, str] = {"client": "info", "stop": "info"}
TOO_LONG = "the {noun} took longer than {seconds:g} s: {advice}"
CRASHED = "the process that computed the {noun} ended: {advice}"
NOT_STARTED = "the process that computes each {noun} did not start: {advice}"
NOT_CONFIGURED = "the process that computes previews cannot use the configuration"
STOPPING = "the server is stopping: try again"


class Job(NamedTuple):
    """A request to the worker."""

    operation: Operation
    parameters: Mapping[str, Any]
    body: bytes
    #: For messages: what the worker computes, and what to do if it cannot.
    noun: str
    advice: str

    def said(self, template: str, seconds: float = 0.0) -> str:
        """Return a message to whoever sent the request."""
        return template.format(noun=self.noun, advice=self.advice, seconds=seconds)


class Worker:
    """Keeps a child process that answers one request at a time; callers must take turns."""

    def __init__(self, metrics: Metrics, log: Log, seconds: float) -> None:
        """Limit each answer to `seconds`."""
        self._metrics = metrics
        self._log = log
        self._seconds = seconds
        self._child: Child | None = None
        #: Ends the last child: the next one starts only once the last one's memory is free.
        self._ending: asyncio.Task[None] | None = None
        self._delays = delays()
        self._not_before = 0.0  #: by the loop's clock
        self._stopped = asyncio.Event()

    async def ask(
        self,
        job: Job,
        configuration: PreparedConfiguration | None = None,
        *,
        patience: float = LONGEST,
    ) -> WorkerAnswer:
        """Return the answer; RequestError, which says what to do, if there is none.

        The worker uses the `configuration`, if one is given. A request during which the
        child ended is not repeated; a cancelled request ends the child. If the last child ended,
        the next one starts after a pause of at most `patience` seconds.
        """
        child = await self._started(job, patience)
        try:
            async with asyncio.timeout(self._seconds):
                if configuration is not None:
                    await self._configure(child, configuration)
                answer = await child.ask({**job.parameters, "operation": job.operation}, job.body)
        except TimeoutError:
            self._end("timeout")
            raise RequestError(504, job.said(TOO_LONG, self._seconds)) from None
        except asyncio.CancelledError:
            self._end("client")
            raise
        except (EOFError, OSError, FrameError) as error:
            raise self._lost(error, job.said(CRASHED)) from None
        self._delays = delays()
        return answer

    async def stop(self) -> None:
        """End the child and start no other; requests that wait for it get an error."""
        self._stopped.set()
        self._end("stop")
        if self._ending is not None:
            await self._ending

    async def _started(self, job: Job, patience: float) -> Child:
        """Return the running child, or start one: after a pause if the last one ended.

        The pauses grow until a child answers.
        """
        if self._child is not None and self._child.usable:
            return await self._ready(self._child, job)
        self._end("crash")
        if self._ending is not None:
            await asyncio.shield(self._ending)
        pause = self._not_before - asyncio.get_running_loop().time()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), min(max(0.0, pause), patience))
        if self._stopped.is_set():
            raise RequestError(503, STOPPING)
        try:
            self._child = Child.start()
        except OSError as error:
            raise self._lost(error, job.said(NOT_STARTED)) from None
        return await self._ready(self._child, job)

    async def _ready(self, child: Child, job: Job) -> Child:
        """Wait until a child is ready; one that nobody waits for any more goes on starting."""
        if child.is_ready:
            return child
        try:
            async with asyncio.timeout(STARTING * self._seconds):
                await child.ready()
        except TimeoutError:
            self._end("timeout")
            raise RequestError(503, job.said(NOT_STARTED)) from None
        except (EOFError, OSError, FrameError) as error:
            raise self._lost(error, job.said(NOT_STARTED)) from None
        self._log.write("info", "preview worker started", pid=child.pid)
        return child

    async def _configure(self, child: Child, configuration: PreparedConfiguration) -> None:
        """Send the child the configuration in use here; it reads it with the same code."""
        wanted = configuration.config_hash
        if child.config == wanted:
            return
        text, is_object = configuration.source
        head = {"operation": "configure", "object": is_object}
        answer = await child.ask(head, text.encode())
        if answer.head.get("config") != wanted:
            self._metrics.internal_errors.inc()
            self._log.write("error", "preview worker not configured", config=wanted)
            raise RequestError(503, NOT_CONFIGURED)
        child.config = wanted

    def _lost(self, error: Exception, sentence: str) -> RequestError:
        """End a child that has crashed or sent a malformed answer; return the caller's error."""
        if self._stopped.is_set():
            return RequestError(503, STOPPING)
        self._end("malformed" if isinstance(error, FrameError) else "crash")
        return RequestError(503, sentence)

    def _end(self, why: WorkerEnd) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        loop = asyncio.get_running_loop()
        self._not_before = loop.time() + next(self._delays)
        self._ending = loop.create_task(self._told(child, why))
        self._metrics.worker.ended(why)

    async def _told(self, child: Child, why: WorkerEnd) -> None:
        how = await child.end()
        level = _LEVELS.get(why, "warning")
        self._log.write(level, "preview worker ended", pid=child.pid, reason=why, **how)
