"""One child process that computes previews, and the socket to it.

It is a freshly started program, not a fork: it inherits nothing from this process but the socket
and one environment variable; no key, no token, no other descriptor. Its standard error is
discarded, since it could quote a caller's documents.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple, Self

from webhook.preview.worker.frames import (
    ANSWER_BYTES,
    PREFIX_BYTES,
    FrameError,
    Head,
    begun,
    lengths,
    read_head,
)

#: Isolated: Python ignores its environment variables, the user's packages and the current folder.
COMMAND = (sys.executable, "-I", "-B", "-X", "utf8", "-m", "webhook.preview.worker")
#: glibc returns memory to the system from one arena only, and the worker has one thread.
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "1"}
NICEST = 19
_PIECE = 64 * 1024
_STATUSES = (200, 400, 413, 500)
_LONGEST_LINE = 200


class WorkerAnswer(NamedTuple):
    """The child's answer: its status, the head of its frame, and its body in pieces."""

    status: int
    head: Mapping[str, Any]
    pieces: tuple[bytes, ...] = ()

    @property
    def sentence(self) -> str:
        """The message to the caller, for 400 and 413."""
        return str(self.head.get("sentence", ""))

    @property
    def defect(self) -> dict[str, Any]:
        """What to log for 500: a type and lines of code, as `webhook.defect` gives them."""
        error, trace = self.head.get("error"), self.head.get("trace")
        lines = trace if isinstance(trace, list) else []
        return {
            "error": str(error)[:_LONGEST_LINE],
            "trace": [str(line)[:_LONGEST_LINE] for line in lines[-12:]],
        }


class Child:
    """A process that answers one request at a time."""

    def __init__(self, process: subprocess.Popen[bytes], line: socket.socket) -> None:
        self._process = process
        self._line = line
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._asked = False
        #: Whether the process has reported that it is ready.
        self.is_ready = False
        self._starting: asyncio.Task[None] | None = None
        #: The hash of the configuration that it has confirmed to use.
        self.config = ""

    @classmethod
    def start(cls) -> Self:
        """Start the program; OSError if that fails."""
        ours, theirs = socket.socketpair()
        with ExitStack() as failed:
            failed.enter_context(ours)
            with theirs:
                process = _spawned(theirs.fileno())
            os.setpriority(os.PRIO_PROCESS, process.pid, NICEST)
            failed.pop_all()
        return cls(process, ours)

    @property
    def pid(self) -> int:
        """The process ID."""
        return self._process.pid

    @property
    def usable(self) -> bool:
        """Whether the process runs and no answer is pending.

        After a cancelled request, its answer could still arrive and be taken for the next one.
        """
        return self._process.poll() is None and not self._asked

    async def ready(self) -> None:
        """Wait until the process reports that it is ready; EOFError if it ends instead.

        A wait that is cancelled can be repeated: the start itself goes on.
        """
        if self._starting is None:
            self._starting = asyncio.create_task(self._start_up())
            self._starting.add_done_callback(_noticed)
        await asyncio.shield(self._starting)

    async def _start_up(self) -> None:
        self._streams = await asyncio.open_unix_connection(sock=self._line)
        await self._answer(self._streams[0])
        self.is_ready = True

    async def ask(self, head: Head, body: bytes) -> WorkerAnswer:
        """Send a request, and return the answer.

        Raises EOFError or OSError if the process ends meanwhile, FrameError if its answer is
        malformed.
        """
        assert self._streams is not None
        reader, writer = self._streams
        self._asked = True
        writer.write(begun(head, len(body)))
        writer.write(body)
        answer = await self._answer(reader)
        self._asked = False
        return answer

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()

    async def end(self) -> dict[str, Any]:
        """Wait for the process to end after `kill`; return how it ended, as fields for the log."""
        code = await asyncio.to_thread(self._process.wait)
        if self._starting is not None:
            self._starting.cancel()
        if self._streams is None:
            self._line.close()
        else:
            self._streams[1].close()
        return {"exit": code} if code >= 0 else {"signal": signal.Signals(-code).name}

    @staticmethod
    async def _answer(reader: asyncio.StreamReader) -> WorkerAnswer:
        head_bytes, body_bytes = lengths(await reader.readexactly(PREFIX_BYTES), ANSWER_BYTES)
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


def _noticed(starting: asyncio.Task[None]) -> None:
    """Take note of an error that nobody waits for any more."""
    if not starting.cancelled():
        starting.exception()


def _spawned(line: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 -- a fixed command
        COMMAND,
        stdin=line,
        stdout=line,
        stderr=subprocess.DEVNULL,
        env=_ENVIRONMENT,
        cwd="/",
        process_group=0,  # a terminal's Ctrl-C reaches only the server, which ends this process
    )
