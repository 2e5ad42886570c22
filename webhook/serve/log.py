"""The log: one JSON object and one write for each line.

No line contains a pod, or any of its values except names: messages of decisions and exceptions
may quote a pod, so neither is logged.
"""

from __future__ import annotations

import json
import logging
import os
import select
from datetime import UTC, datetime

import orjson

from webhook.errors import crash_summary
from webhook.text.escape import visible_json

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
#: Characters of a message; the webhook's own messages are much shorter.
_MAX_TEXT_LENGTH = 2000
_OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z


class Log:
    """A log on a file descriptor; `logging` takes seven times as long per line."""

    def __init__(self, level: str = "info", descriptor: int = 1, *, buffered: bool = False) -> None:
        """`buffered`: until `release` is called, buffer warnings and errors, and drop the rest."""
        self._least = LEVELS[level]
        self._descriptor = descriptor
        self._buffer: list[bytes] | None = [] if buffered else None
        self._dropped = 0

    def write(self, level: str, message: str, /, **fields: object) -> None:
        """Write one line with all fields except None."""
        if LEVELS[level] < self._least:
            return
        line = _line(level, message)
        line |= {key: value for key, value in fields.items() if value is not None}
        if self._buffer is None:
            self._emit(_encode(line))
        elif LEVELS[level] > LEVELS["info"]:
            self._buffer.append(_encode(line))

    def release(self) -> None:
        """Write the buffered lines, and later lines at once."""
        lines, self._buffer = self._buffer, None
        for line in lines or ():
            self._emit(line)

    def _emit(self, line: bytes) -> None:
        """Write a line, unless that would block on the reader: requests matter more."""
        if not _is_writable(self._descriptor):
            self._dropped += 1
            return
        if self._dropped:
            notice = {**_line("warning", "log lines dropped"), "lines": self._dropped}
            line, self._dropped = _encode(notice) + line, 0
        try:
            os.write(self._descriptor, line)
        except OSError:
            return  # the reader has closed the pipe


def _is_writable(descriptor: int) -> bool:
    """Return whether a write returns at once: a writable pipe takes 4 KiB, see pipe(7)."""
    writable = select.poll()
    writable.register(descriptor, select.POLLOUT)
    return bool(writable.poll(0))


def _line(level: str, message: str) -> dict[str, object]:
    return {"ts": datetime.now(UTC), "level": level, "msg": message[:_MAX_TEXT_LENGTH]}


def _encode(line: dict[str, object]) -> bytes:
    """Return a line as JSON, with escapes for invisible characters."""
    try:
        encoded = orjson.dumps(line, option=_OPTIONS)
    except TypeError:  # half a surrogate pair, which a file's name may contain
        return f"{json.dumps(line, default=str)}\n".encode()
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    return visible_json(encoded.decode()).encode()


class Forward(logging.Handler):
    """A handler that sends messages of libraries (uvicorn, asyncio) to the same log."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a library's record with its exception, but without the exception's message."""
        level = record.levelname.lower()
        error = record.exc_info[1] if record.exc_info else None
        self._log.write(
            level if level in LEVELS else "error",
            record.getMessage().strip(),
            logger=record.name,
            **(crash_summary(error) if error else {}),
        )
