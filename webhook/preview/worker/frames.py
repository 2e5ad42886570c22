"""What the server and its worker say to each other: frames of a head in JSON and a body of bytes.

A frame begins with the two lengths, 32 bits each, the most significant byte first. Nothing
is unpickled, and what is longer than it may be, or no JSON object, is a FrameError: whoever
speaks so is not the program that was started.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, Literal

#: All that can be asked for; `webhook.preview.worker.operations` does it.
Operation = Literal["configure", "preview"]
Head = Mapping[str, Any]

_LENGTHS = struct.Struct(">II")
PREFIX_BYTES = _LENGTHS.size
HEAD_BYTES = 64 * 1024
#: Of an answer's body: the server holds it until the caller has taken it.
ANSWER_BYTES = 16 << 20


class FrameError(Exception):
    """What arrived is no frame, or one that is larger than it may be."""


def begun(head: Head, body_bytes: int) -> bytes:
    """Write a frame up to its body."""
    written = json.dumps(head).encode()
    return _LENGTHS.pack(len(written), body_bytes) + written


def lengths(prefix: bytes, most: int) -> tuple[int, int]:
    """Read how long head and body are, in bytes; `most`: of the body."""
    head, body = _LENGTHS.unpack(prefix)
    if head > HEAD_BYTES or body > most:
        raise FrameError(f"a head of {head} bytes and a body of {body} are too much")
    return head, body


def read_head(written: bytes) -> dict[str, Any]:
    """Read a head."""
    try:
        head = json.loads(written)
    except (ValueError, RecursionError):
        head = None
    if not isinstance(head, dict):
        raise FrameError("a head is no JSON object")
    return head


def read_frame(read: Callable[[int], bytes], most: int) -> tuple[dict[str, Any], bytes] | None:
    """Read a whole frame; None at the end of the input, which may also come within one.

    `read` gives as many bytes as it is asked for, and fewer only where nothing more comes.
    """
    prefix = read(PREFIX_BYTES)
    if len(prefix) < PREFIX_BYTES:
        return None
    head_bytes, body_bytes = lengths(prefix, most)
    head, body = read(head_bytes), read(body_bytes)
    if len(head) < head_bytes or len(body) < body_bytes:
        return None
    return read_head(head), body
