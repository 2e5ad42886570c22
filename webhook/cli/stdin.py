"""Read standard input, for commands that accept `-` as a file."""

from __future__ import annotations

import sys
from io import BufferedReader
from typing import cast


def read_stdin(most: int) -> bytes:
    """Read to the end, but at most `most` bytes.

    It reads piece by piece, since a single large read would continue after a Ctrl-C that comes
    between two of its system calls.
    """
    stream = cast("BufferedReader", sys.stdin.buffer)
    pieces: list[bytes] = []
    while most > 0 and (piece := stream.read1(most)):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)
