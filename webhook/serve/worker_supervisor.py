"""The supervisor of the worker process: starts it on demand, and ends it if it does not answer.

The worker computes previews, and checks configurations for `/validate`.

There is only one. Two would need twice the memory (a replica has 1 GiB), and would answer
previews faster only by taking processor time from `/mutate`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import NamedTuple, Self

from certs.clock import MAX_PAUSE, delays
from webhook.errors import RequestError
from webhook.preview.worker.frames import (
    MAX_ANSWER_BYTES,
    MAX_HEAD_BYTES,
    PREFIX_BYTES,
    FrameError,
    Head,
    Operation,
    frame_start,
    lengths,
    read_head,
)
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics, WorkerEnd
from webhook.serve.state import PreparedConfiguration

#: The factor for the time limit of a start: on a busy node it gets only spare processor time.
START_TIME_FACTOR = 6

_LEVELS: dict[WorkerEnd, str] = {"client": "info", "stop": "info"}
TOO_LONG = "the {noun} took longer than {seconds:g} s; {advice}"
CRASHED = "the process that computed the {noun} ended; {advice}"
NOT_STARTED = "the process that computes each {noun} did not start; {advice}"
NOT_CONFIGURED = "the process that computes previews cannot use the configuration"
TOO_MANY_PARAMETERS = f"the parameters are larger than {MAX_HEAD_BYTES >> 10} KiB"
STOPPING = "the server is stopping; try again"


class WorkerRequest(NamedTuple):
    """A request to the worker."""

    operation: Operation
    parameters: Mapping[str, object]
    body: bytes
    #: For messages: the name of the computation, and the remedy for a failure.
    noun: str
    advice: str

    def message(self, template: str, seconds: float = 0.0) -> str:
        """Return a message for the sender of the request."""
        return template.format(noun=self.noun, advice=self.advice, seconds=seconds)


class WorkerSupervisor:
    """A supervisor that starts the child process on demand; it takes one request at a time."""

    def __init__(self, metrics: Metrics, log: Log, seconds: float) -> None:
        """Limit each answer to `seconds`."""
        self._metrics = metrics
        self._log = log
        self._seconds = seconds
        self._child: Child | None = None
        #: The task that ends the last child: the next one starts only once its memory is free.
        self._ending: asyncio.Task[None] | None = None
        self._delays = delays()
        self._not_before = 0.0  #: by the loop's clock
        self._stopped = asyncio.Event()

    async def ask(
        self,
        request: WorkerRequest,
        configuration: PreparedConfiguration | None = None,
        *,
        max_pause: float = MAX_PAUSE,
    ) -> WorkerAnswer:
        """Return the answer; raise RequestError with a remedy without one.

        The worker uses the `configuration`, if given. A request whose child ends is not repeated; a
        cancelled one ends its child. The next child starts after at most `max_pause` seconds.
        """
        try:
            head = {**request.parameters, "operation": request.operation}
            start = frame_start(head, len(request.body))
        except FrameError:  # before a child reads it, which would end
            raise RequestError(413, TOO_MANY_PARAMETERS) from None
        child = await self._running_child(request, max_pause)
        try:
            async with asyncio.timeout(self._seconds):
                if configuration is not None:
                    await self._configure(child, configuration)
                answer = await child.ask(start, request.body)
        except TimeoutError:
            self._end("timeout")
            raise RequestError(504, request.message(TOO_LONG, self._seconds)) from None
        except asyncio.CancelledError:
            self._end("client")
            raise
        except (EOFError, OSError, FrameError) as error:
            raise self._lost(error, request.message(CRASHED)) from None
        self._delays = delays()
        return answer

    async def stop(self) -> None:
        """End the child and start no other; waiting requests get an error."""
        self._stopped.set()
        self._end("stop")
        if self._ending is not None:
            await self._ending

    async def _running_child(self, request: WorkerRequest, max_pause: float) -> Child:
        """Return the running child, or start one, after a pause if the last one ended.

        The pauses grow until a child answers.
        """
        if self._child is not None and self._child.usable:
            return await self._ready(self._child, request)
        self._end("crash")
        if self._ending is not None:
            await asyncio.shield(self._ending)
        pause = self._not_before - asyncio.get_running_loop().time()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), min(max(0.0, pause), max_pause))
        if self._stopped.is_set():
            raise RequestError(503, STOPPING)
        try:
            self._child = Child.start()
        except OSError as error:
            raise self._lost(error, request.message(NOT_STARTED)) from None
        return await self._ready(self._child, request)

    async def _ready(self, child: Child, request: WorkerRequest) -> Child:
        """Wait until a child is ready; its start continues without waiting callers."""
        if child.is_ready:
            return child
        try:
            async with asyncio.timeout(START_TIME_FACTOR * self._seconds):
                await child.ready()
        except TimeoutError:
            self._end("timeout")
            raise RequestError(503, request.message(NOT_STARTED)) from None
        except (EOFError, OSError, FrameError) as error:
            raise self._lost(error, request.message(NOT_STARTED)) from None
        self._log.write("info", "preview worker started", pid=child.pid)
        return child

    async def _configure(self, child: Child, configuration: PreparedConfiguration) -> None:
        """Send the current configuration to the child, which reads it with the same code."""
        config_hash = configuration.config_hash
        if child.config == config_hash:
            return
        text, is_object = configuration.fabrics_text
        body = text.encode()
        start = frame_start({"operation": "configure", "object": is_object}, len(body))
        answer = await child.ask(start, body)
        if answer.head.get("config") != config_hash:
            self._metrics.internal_errors.inc()
            self._log.write("error", "preview worker not configured", config=config_hash)
            raise RequestError(503, NOT_CONFIGURED)
        child.config = config_hash

    def _lost(self, error: Exception, sentence: str) -> RequestError:
        """End a child that has crashed or sent a malformed answer; return the caller's error."""
        if self._stopped.is_set():
            return RequestError(503, STOPPING)
        self._end("malformed" if isinstance(error, FrameError) else "crash")
        return RequestError(503, sentence)

    def _end(self, reason: WorkerEnd) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        loop = asyncio.get_running_loop()
        self._not_before = loop.time() + next(self._delays)
        self._ending = loop.create_task(self._report_end(child, reason))
        self._metrics.worker.count_end(reason)

    async def _report_end(self, child: Child, reason: WorkerEnd) -> None:
        outcome = await child.end()
        level = _LEVELS.get(reason, "warning")
        self._log.write(level, "preview worker ended", pid=child.pid, reason=reason, **outcome)


# A child process that computes previews, and the socket to it.
#
# It is a freshly started program, not a fork: it inherits nothing from this process but the
# socket and one environment variable; no key, no token, no other descriptor. Its standard error
# is discarded, since it could quote a caller's documents.

#: Isolated: Python ignores its environment variables, the user's packages and the current folder.
COMMAND = (sys.executable, "-I", "-B", "-X", "utf8", "-m", "webhook.preview.worker")
#: glibc returns memory to the system from one arena only, and the worker has one thread.
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "1"}
NICEST = 19
_PIECE = 64 * 1024
_STATUSES = (200, 400, 413, 500)
_MAX_LINE_LENGTH = 200


class WorkerAnswer(NamedTuple):
    """The child's answer: its status, the head of its frame, and its body in pieces."""

    status: int
    head: Head
    pieces: tuple[bytes, ...] = ()

    @property
    def sentence(self) -> str:
        """The message to the caller, for 400 and 413."""
        return str(self.head.get("sentence", ""))

    @property
    def defect(self) -> dict[str, object]:
        """The log fields for 500: a type and lines of code, in the form of `webhook.errors`."""
        error, trace = self.head.get("error"), self.head.get("trace")
        lines = trace if isinstance(trace, list) else []
        return {
            "error": str(error)[:_MAX_LINE_LENGTH],
            "trace": [str(line)[:_MAX_LINE_LENGTH] for line in lines[-12:]],
        }


class Child:
    """A process for one request at a time."""

    def __init__(self, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self._process = process
        self._connection = connection
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._pending = False
        #: Whether the process has reported that it is ready.
        self.is_ready = False
        self._starting: asyncio.Task[None] | None = None
        #: The hash of the configuration that it has confirmed.
        self.config = ""

    @classmethod
    def start(cls) -> Self:
        """Start the program; raise OSError if that fails."""
        ours, theirs = socket.socketpair()
        with ExitStack() as cleanup:
            cleanup.enter_context(ours)
            with theirs:
                process = _spawn(theirs.fileno())
            os.setpriority(os.PRIO_PROCESS, process.pid, NICEST)
            cleanup.pop_all()
        return cls(process, ours)

    @property
    def pid(self) -> int:
        """The process ID."""
        return self._process.pid

    @property
    def usable(self) -> bool:
        """Whether the process runs and no answer is pending.

        After a cancelled request, its answer could still arrive and be mistaken for the next one.
        """
        return self._process.poll() is None and not self._pending

    async def ready(self) -> None:
        """Wait until the process reports that it is ready; raise EOFError if it ends instead.

        A cancelled wait can be repeated: the start itself continues.
        """
        if self._starting is None:
            self._starting = asyncio.create_task(self._start_up())
            self._starting.add_done_callback(_retrieve_error)
        await asyncio.shield(self._starting)

    async def _start_up(self) -> None:
        self._streams = await asyncio.open_unix_connection(sock=self._connection)
        await self._answer(self._streams[0])
        self.is_ready = True

    async def ask(self, start: bytes, body: bytes) -> WorkerAnswer:
        """Send a request, a frame with this start and body, and return the answer.

        Raises EOFError or OSError if the process ends meanwhile, FrameError if its answer is
        malformed.
        """
        assert self._streams is not None
        reader, writer = self._streams
        self._pending = True
        writer.write(start)
        writer.write(body)
        answer = await self._answer(reader)
        self._pending = False
        return answer

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()

    async def end(self) -> dict[str, object]:
        """Wait for the process to end after `kill`; return how it ended, as fields for the log."""
        code = await asyncio.to_thread(self._process.wait)
        if self._starting is not None:
            self._starting.cancel()
        if self._streams is None:
            self._connection.close()
        else:
            self._streams[1].close()
        return {"exit": code} if code >= 0 else {"signal": signal.Signals(-code).name}

    @staticmethod
    async def _answer(reader: asyncio.StreamReader) -> WorkerAnswer:
        head_bytes, body_bytes = lengths(await reader.readexactly(PREFIX_BYTES), MAX_ANSWER_BYTES)
        head = read_head(await reader.readexactly(head_bytes))
        status = head.get("status")
        if status not in _STATUSES:
            raise FrameError("the worker answered with an unknown status")
        pieces = []
        while body_bytes:
            piece = await reader.read(min(body_bytes, _PIECE))
            if not piece:
                raise EOFError
            pieces.append(piece)
            body_bytes -= len(piece)
        return WorkerAnswer(status, head, tuple(pieces))


def _retrieve_error(starting: asyncio.Task[None]) -> None:
    """Retrieve an error without waiting callers, so that asyncio does not log it."""
    if not starting.cancelled():
        starting.exception()


def _spawn(connection: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 -- a fixed command
        COMMAND,
        stdin=connection,
        stdout=connection,
        stderr=subprocess.DEVNULL,
        env=_ENVIRONMENT,
        cwd="/",
        process_group=0,  # a terminal's Ctrl-C reaches only the server, which ends this process
    )
