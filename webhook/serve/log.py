"""The log: one JSON object per line, and one write for each line.

No line contains a pod, or any of its values except names: messages of decisions and
of exceptions may quote a pod, so neither is logged.
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
_LONGEST = 2000
_OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z


class Log:
    """Writes lines to a file descriptor; `logging` takes seven times as long per line."""

    def __init__(self, level: str = "info", descriptor: int = 1, *, held: bool = False) -> None:
        """`held`: keep warnings and errors, and drop the rest, until `release` is called."""
        self._least = LEVELS[level]
        self._descriptor = descriptor
        self._held: list[bytes] | None = [] if held else None
        self._dropped = 0

    def write(self, level: str, message: str, /, **fields: object) -> None:
        """Write one line, with the fields that are not None."""
        if LEVELS[level] < self._least:
            return
        line = _begun(level, message)
        line |= {key: value for key, value in fields.items() if value is not None}
        if self._held is None:
            self._emit(_written(line))
        elif LEVELS[level] > LEVELS["info"]:
            self._held.append(_written(line))

    def release(self) -> None:
        """Write what was held, and each line at once from now on."""
        held, self._held = self._held, None
        for line in held or ():
            self._emit(line)

    def _emit(self, line: bytes) -> None:
        """Write a line, unless it would have to wait for the reader: requests matter more."""
        if not _takes_a_line(self._descriptor):
            self._dropped += 1
            return
        if self._dropped:
            lost = {**_begun("warning", "log lines dropped"), "lines": self._dropped}
            line, self._dropped = _written(lost) + line, 0
        try:
            os.write(self._descriptor, line)
        except OSError:
            return  # the reader has gone


def _takes_a_line(descriptor: int) -> bool:
    """Return whether a write returns at once: a pipe that says so takes 4 KiB, see pipe(7)."""
    asked = select.poll()
    asked.register(descriptor, select.POLLOUT)
    return bool(asked.poll(0))


def _begun(level: str, message: str) -> dict[str, object]:
    return {"ts": datetime.now(UTC), "level": level, "msg": message[:_LONGEST]}


def _written(line: dict[str, object]) -> bytes:
    """Write a line as JSON, with escapes for invisible characters."""
    try:
        written = orjson.dumps(line, option=_OPTIONS)
    except TypeError:  # half a surrogate pair, which a file's name may contain
        return f"{json.dumps(line, default=str)}\n".encode()
    if written.isascii() and b"\x7f" not in written:
        return written
    return visible_json(written.decode()).encode()


class Forward(logging.Handler):
    """Sends messages of libraries (uvicorn, asyncio) to the same log."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a library's record, with its exception but not the exception's message."""
        level = record.levelname.lower()
        error = record.exc_info[1] if record.exc_info else None
        self._log.write(
            level if level in LEVELS else "error",
            record.getMessage().strip(),
            logger=record.name,
            **(crash_summary(error) if error else {}),
        )
