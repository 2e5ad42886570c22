"""The protocol between server and worker: frames of a head in JSON and a body of bytes.

A frame begins with the two lengths, 32 bits each, the most significant byte first. Nothing is
unpickled. A head or body over its limit, or a head that is not a JSON object, raises FrameError:
the other side then does not run the expected program.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from typing import Literal

from webhook.model.json import Json

#: All operations; `webhook.preview.worker.operations` implements them.
Operation = Literal["configure", "preview", "validate"]
Head = Mapping[str, Json]

_LENGTHS = struct.Struct(">II")
PREFIX_BYTES = _LENGTHS.size
MAX_HEAD_BYTES = 64 * 1024
#: The largest body of an answer: the server holds it until the caller has read it.
MAX_ANSWER_BYTES = 16 << 20


class FrameError(Exception):
    """The input is not a frame, or is a frame over a limit."""


def frame_start(head: Head, body_bytes: int) -> bytes:
    """Return the beginning of a frame: everything before its body.

    FrameError if the head is over its limit: the reader would end the connection.
    """
    written = json.dumps(head).encode()
    if len(written) > MAX_HEAD_BYTES:
        raise FrameError(f"a head of {len(written)} bytes is too large")
    return _LENGTHS.pack(len(written), body_bytes) + written


def lengths(prefix: bytes, max_bytes: int) -> tuple[int, int]:
    """Read the lengths of head and body in bytes; raise FrameError if one is over its limit."""
    head, body = _LENGTHS.unpack(prefix)
    if head > MAX_HEAD_BYTES or body > max_bytes:
        raise FrameError(f"a head of {head} bytes and a body of {body} bytes are too large")
    return head, body


def read_head(written: bytes) -> Head:
    """Read the head of a frame; raise FrameError if it is not a JSON object."""
    try:
        head = json.loads(written)
    except (ValueError, RecursionError):
        head = None
    if not isinstance(head, dict):
        raise FrameError("the head is not a JSON object")
    return head


def read_frame(read: Callable[[int], bytes], max_bytes: int) -> tuple[Head, bytes] | None:
    """Read a complete frame; None at the end of the input, even in the middle of a frame.

    `read` returns as many bytes as requested, and fewer only at the end of the input.
    """
    prefix = read(PREFIX_BYTES)
    if len(prefix) < PREFIX_BYTES:
        return None
    head_bytes, body_bytes = lengths(prefix, max_bytes)
    head, body = read(head_bytes), read(body_bytes)
    if len(head) < head_bytes or len(body) < body_bytes:
        return None
    return read_head(head), body
